// Package testenv makes the environment of features for their tests: the example fabric
// with the embedded pipeline.
package testenv

import (
	"context"
	"os"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/p4src"
)

// New returns the environment; edit, which may be nil, changes the file's text first. dir
// is the way to the repository's root.
func New(t testing.TB, dir string, edit func(string) string) *feature.Env {
	t.Helper()
	text, err := os.ReadFile(dir + "/examples/leaf-spine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		text = []byte(edit(string(text)))
	}
	c, err := config.Parse("leaf-spine.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pipeline.Load(p4src.P4Info, p4src.JSON)
	if err != nil {
		t.Fatal(err)
	}
	g := topology.New(c)
	return &feature.Env{Config: c, Graph: g, Routes: g.Routes(topology.State{}), Pipeline: p}
}

// Lines returns what a feature wants on a switch, as lines.
func Lines(t testing.TB, f feature.Feature, env *feature.Env, sw string) []string {
	t.Helper()
	list, err := f.Desired(env, sw)
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]string, len(list))
	for i, e := range list {
		lines[i] = env.Pipeline.Describe(e)
	}
	return lines
}

// Hub records what features say.
type Hub struct {
	Samples []view.Sample
	Seen    []string
	Events  []view.Event
	Buffers map[string]*view.Buffer
	Loops   []view.PACC
}

// Sample implements feature.Hub.
func (h *Hub) Sample(s view.Sample) { h.Samples = append(h.Samples, s) }

// LinkSeen implements feature.Hub.
func (h *Hub) LinkSeen(link, at string) { h.Seen = append(h.Seen, link+" at "+at) }

// Event implements feature.Hub.
func (h *Hub) Event(e view.Event) { h.Events = append(h.Events, e) }

// Buffer implements feature.Hub.
func (h *Hub) Buffer(sw string, b *view.Buffer) {
	if h.Buffers == nil {
		h.Buffers = map[string]*view.Buffer{}
	}
	h.Buffers[sw] = b
}

// PACC implements feature.Hub.
func (h *Hub) PACC(p view.PACC) { h.Loops = append(h.Loops, p) }

// Switch records packets, overlays and writes.
type Switch struct {
	Switch  string
	Out     []*p4v1.PacketOut
	Over    []*p4v1.Entity
	Written []*p4v1.Update
	// Answer answers reads; nil reads nothing.
	Answer func(requests []*p4v1.Entity) []*p4v1.Entity
	Err    error
}

// Name implements feature.Switch.
func (s *Switch) Name() string { return s.Switch }

// PacketOut implements feature.Switch.
func (s *Switch) PacketOut(p *p4v1.PacketOut) error {
	s.Out = append(s.Out, p)
	return s.Err
}

// Write implements feature.Switch.
func (s *Switch) Write(_ context.Context, updates []*p4v1.Update) error {
	s.Written = append(s.Written, updates...)
	return s.Err
}

// Read implements feature.Switch.
func (s *Switch) Read(_ context.Context, requests ...*p4v1.Entity) ([]*p4v1.Entity, error) {
	if s.Err != nil || s.Answer == nil {
		return nil, s.Err
	}
	return s.Answer(requests), nil
}

// Overlay implements feature.Switch.
func (s *Switch) Overlay(entities []*p4v1.Entity) error {
	s.Over = entities
	return s.Err
}
