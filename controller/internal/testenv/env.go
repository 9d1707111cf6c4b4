// Package testenv makes the environment of features for their tests: the example fabric
// with the embedded pipeline.
package testenv

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"go.yaml.in/yaml/v3"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/serving/tables"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src"
)

// New returns the environment of leaf1; edit, which may be nil, changes the file's text first. dir
// is the way to the repository's root. The features' sections are those given.
func New(t testing.TB, dir string, edit func(string) string, features ...*feature.Feature) *feature.Env {
	t.Helper()
	text, err := os.ReadFile(dir + "/examples/leaf-spine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		text = []byte(edit(string(text)))
	}
	sections := []config.Section{}
	read := map[string]bool{}
	for _, f := range features {
		if s := f.Section; s.Key != "" {
			sections = append(sections, s)
			read[s.Key] = true
		}
	}
	keys := map[string]any{}
	if err := yaml.Unmarshal(text, &keys); err != nil {
		t.Fatal(err)
	}
	for key := range keys {
		if core := []string{"name", "scale", "switches", "hosts", "links", "applications", "controller"}; !read[key] && !slices.Contains(core, key) {
			sections = append(sections, unread(key))
		}
	}
	c, err := config.Parse("leaf-spine.yaml", text, nil, sections...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pipeline.Load(p4src.P4Info, p4src.JSON())
	if err != nil {
		t.Fatal(err)
	}
	g := topology.New(c)
	return AtSwitch(&feature.Env{Config: c, Graph: g, Pipeline: p}, "leaf1")
}

// unread is a section of the file that the test's features do not have.
func unread(key string) config.Section {
	read := func(m *yamlnode.Map, _ *config.Config) any {
		m.AllowUnknown()
		return nil
	}
	return config.Section{Key: key, Read: read, ReadSwitch: read}
}

// Lines returns a feature's entities of a switch as lines, with the routes of a
// fabric in full health.
func Lines(t testing.TB, f *feature.Feature, env *feature.Env, sw string) []string {
	t.Helper()
	env = AtSwitch(env, sw)
	list, err := f.Desired(env)
	if err != nil {
		t.Fatal(err)
	}
	if f.Route != nil {
		return append(describe(env, list), RouteLines(t, f, env, sw, topology.State{})...)
	}
	return describe(env, list)
}

// RouteLines returns a feature's entities for routes of a switch as lines.
func RouteLines(t testing.TB, r *feature.Feature, env *feature.Env, sw string, s topology.State) []string {
	t.Helper()
	env = AtSwitch(env, sw)
	var list []*p4v1.Entity
	for _, route := range env.Graph.Routes(s).ForSwitch(sw) {
		if len(route.NextHops) == 0 {
			continue
		}
		entities, err := r.Route(env, route)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, entities...)
	}
	return describe(env, list)
}

func describe(env *feature.Env, list []*p4v1.Entity) []string {
	lines := make([]string, len(list))
	for i, e := range list {
		lines[i] = env.Pipeline.Describe(e)
	}
	return lines
}

// Callbacks records the calls of features.
type Callbacks struct {
	Samples []feature.Sample
	Seen    []string
	Events  []*pb.Event
}

// Sample implements feature.Callbacks.
func (h *Callbacks) Sample(s feature.Sample) { h.Samples = append(h.Samples, s) }

// LinkSeen implements feature.Callbacks.
func (h *Callbacks) LinkSeen(link, at string) { h.Seen = append(h.Seen, link+" at "+at) }

// Event implements feature.Callbacks.
func (h *Callbacks) Event(e *pb.Event) { h.Events = append(h.Events, e) }

// Switch records packets, polled ports and writes.
type Switch struct {
	Switch  string
	Out     []*p4v1.PacketOut
	Polled  []uint32
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

// Poll implements feature.Switch; quiet is not looked at.
func (s *Switch) Poll(_ time.Time, _ time.Duration, ports ...uint32) error {
	s.Polled = append(s.Polled, ports...)
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

// Shown returns the switch of a name with a feature's status of it.
func Shown(f *feature.Feature, sw string) *pb.SwitchStatus {
	s := &pb.SwitchStatus{Name: sw, Features: &pb.FeatureStatus{}}
	f.Status(sw, s.Features)
	return s
}

// Number returns what a switch shows for a metric, by the keys of its row; false when it
// shows none.
func Number(s *pb.SwitchStatus, metric string, keys ...string) (float64, bool) {
	for _, t := range tables.All {
		rows := t.Rows(s.GetFeatures())
		c := slices.IndexFunc(t.Columns, func(c tables.Column) bool { return c.GetMetric() == metric })
		r := slices.IndexFunc(rows, func(r tables.Row) bool { return slices.Equal(r.Keys, keys) })
		if c >= 0 && r >= 0 {
			return tables.Number(rows[r].Values[c])
		}
	}
	return 0, false
}
