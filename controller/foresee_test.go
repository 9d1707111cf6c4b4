package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/serving/events"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/internal/yamlnode"
)

// without removes links from a fabric's file.
func without(yaml string, links ...string) string {
	for _, l := range links {
		a, b, _ := strings.Cut(l, "-")
		line := fmt.Sprintf("  - {a: %q, b: %q, rate: 50Mbps, delay: 1us}\n", a, b)
		if !strings.Contains(yaml, line) {
			panic("no line " + line)
		}
		yaml = strings.Replace(yaml, line, "", 1)
	}
	return yaml
}

// TestCyclesAreRefused: a leaf-spine fabric that lacks two links of different leaves and spines has
// paths through other leaves, which form a buffer cycle. plan reports it, and apply refuses it
// unless the file allows it. Lossy classes do not matter.
func TestCyclesAreRefused(t *testing.T) {
	const section = "\nbuffer: {policy: dsh, size: 1MB, lossless: [0]"
	const cycle = "leaf3:3→spine1:3→spine1:4→leaf4:3→leaf4:4→spine2:4→spine2:3→leaf3:4→leaf3:3"
	f := newFabric(t)
	whole := string(f.yaml)
	bounced := without(whole, "leaf1:3-spine1:1", "leaf2:4-spine2:2")
	for _, tt := range []struct {
		name, yaml string
		failures   int
		notes      []string
		refused    bool
	}{
		{"whole", whole + section + "}\n", 0, nil, false},
		{"whole, any failure", whole + section + "}\n", 1, []string{"class 0: with up to 1 failed link between switches, 8 combinations looked at: no cycle"}, false},
		{"whole, any two", whole + section + "}\n", 2, []string{"36 combinations looked at: in 12 of them buffers depend on each other in a cycle, which PFC can stop for good; without leaf1:3-spine1:1 and leaf2:4-spine2:2: " + cycle}, false},
		{"bounced, not lossless", bounced, 2, nil, false},
		{"bounced", bounced + section + "}\n", 1, []string{"apply refuses this: buffer.allow_cycles: is false; class 0: buffers depend on each other in a cycle, which PFC can stop for good: " + cycle + "; want true"}, true},
		{"bounced, allowed", bounced + section + ", allow_cycles: true}\n", 0, []string{cycle}, false},
	} {
		notes, err := notesOf(t, f.c, tt.yaml, tt.failures)
		if err != nil || len(notes) != len(tt.notes) || len(notes) > 0 && !strings.Contains(notes[0], tt.notes[0]) {
			t.Errorf("%s: %q, %v, want %q", tt.name, notes, err, tt.notes)
		}
		_, _, err = f.c.commitOf(tt.yaml)
		var faults *yamlnode.Error
		if tt.refused != errors.As(err, &faults) || tt.refused && (faults.Faults[0].Field != "buffer.allow_cycles" || faults.Faults[0].Line == 0) {
			t.Errorf("%s: apply gives %v", tt.name, err)
		}
	}
}

// commitOf applies a file without waiting for the switches.
func (c *Controller) commitOf(yaml string) (uint64, *applied, error) {
	cfg, err := config.Parse("f.yaml", []byte(yaml), nil, Sections()...)
	if err != nil {
		return 0, nil, err
	}
	return c.commit(context.Background(), cfg, nil)
}

// TestLinksOutOfService: an operator takes two links out of service, and the remaining routes may
// deadlock. An event reports it, a new configuration with these routes is refused, and another
// event reports the end.
func TestLinksOutOfService(t *testing.T) {
	f := newFabric(t)
	yaml := string(f.yaml) + "\nbuffer: {policy: dsh, size: 1MB, lossless: [0]}\n"
	if _, _, err := f.c.commitOf(yaml); err != nil {
		t.Fatal(err)
	}
	sub := f.c.events.Subscribe(events.Options[*pb.Event]{Recent: 1000, Match: func(e *pb.Event) bool { return strings.HasPrefix(e.Kind, "routes.") }})
	defer sub.Close()
	var kinds []string
	risk := func() []string {
		list, _ := sub.Take()
		for _, e := range list {
			kinds = append(kinds, e.Kind)
		}
		return kinds
	}
	set := func(a, b string, up bool) {
		t.Helper()
		if err := f.c.SetLink(context.Background(), a, b, up); err != nil {
			t.Fatal(err)
		}
	}
	set("leaf1", "spine1", false)
	if got := risk(); got != nil {
		t.Errorf("one link is out: %v", got)
	}
	set("leaf2", "spine2", false)
	if got := risk(); fmt.Sprint(got) != "[routes.risk]" {
		t.Errorf("two links are out: %v", got)
	}
	if notes, err := notesOf(t, f.c, yaml, 0); err != nil || len(notes) != 1 || !strings.HasPrefix(notes[0], "with the links that are out of service now: class 0: buffers depend") {
		t.Errorf("notes %q, %v", notes, err)
	}
	if _, _, err := f.c.commitOf(yaml); err != nil {
		t.Errorf("a configuration is refused for links that are out of service: %v", err)
	}
	set("leaf1", "spine1", true)
	if got := risk(); fmt.Sprint(got) != "[routes.risk routes.risk_over]" {
		t.Errorf("one link is back: %v", got)
	}
}

// notesOf returns the notes of a plan.
func notesOf(t *testing.T, c *Controller, yaml string, failures int) ([]string, error) {
	cfg, err := config.Parse("f.yaml", []byte(yaml), nil, Sections()...)
	if err != nil {
		return nil, err
	}
	return c.notes(t.Context(), cfg, topology.New(cfg), failures), nil
}
