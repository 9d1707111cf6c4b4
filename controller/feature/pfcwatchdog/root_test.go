package pfcwatchdog

import (
	"context"
	"strings"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/internal/externs"
)

// TestRoot: leaf1 has a storm of class 3 at a port. The storms of other switches lead to its origin. Each switch
// is read once, leaf1 first, and then again. Ports 3 and 4 of leaf n lead to port n of both spines; ports 1 and 2
// lead to hosts.
func TestRoot(t *testing.T) {
	type storms map[string][]uint32 // ports by switch
	for name, tt := range map[string]struct {
		storms    storms
		root      string // "" for a circle
		immediate bool
	}{
		"its own host":            {storms{"leaf1": {1}}, "h1", true},
		"a host of another leaf":  {storms{"leaf1": {3}, "spine1": {2}, "leaf2": {1}}, "h3", false},
		"a spine's port":          {storms{"leaf1": {3}}, "spine1:1", false},
		"a leaf's port":           {storms{"leaf1": {3}, "spine1": {4}}, "leaf4:3", false},
		"not the port back":       {storms{"leaf1": {3}, "spine1": {1}}, "spine1:1", false},
		"another class":           {storms{"leaf1": {3}, "spine1 class 4": {2}}, "spine1:1", false},
		"a circle":                {storms{"leaf1": {3}, "spine1": {2}, "leaf2": {4}, "spine2": {1}}, "", false},
		"the lowest of two ports": {storms{"leaf1": {3}, "spine1": {4, 2}, "leaf2": {2}}, "h4", false},
	} {
		t.Run(name, func(t *testing.T) {
			callbacks := &testenv.Callbacks{}
			f := New(callbacks)
			env := newEnv(t, f, watched, nil)
			var loops []feature.Loop
			for _, sw := range []string{"leaf1", "leaf2", "leaf3", "leaf4", "spine1", "spine2"} {
				var list []externs.Storm
				for _, p := range tt.storms[sw] {
					list = append(list, externs.Storm{Port: p, Class: 3, On: true, Count: 1})
				}
				for _, p := range tt.storms[sw+" class 4"] {
					list = append(list, externs.Storm{Port: p, Class: 4, On: true, Count: 1})
				}
				s := &testenv.Switch{Switch: sw, Answer: func([]*p4v1.Entity) []*p4v1.Entity { return []*p4v1.Entity{externs.StormsEntity(list)} }}
				loops = append(loops, f.Attach(testenv.AtSwitch(env, sw), s))
			}
			start := time.Now()
			round := func(n int) (told []string) {
				for _, l := range loops {
					if err := l.Tick(context.Background(), start.Add(time.Duration(n)*time.Second)); err != nil {
						t.Fatal(err)
					}
				}
				for _, e := range callbacks.Events {
					if e.Subject == "leaf1" {
						told = append(told, e.Message)
					}
				}
				return told
			}
			if told := round(0); len(told) > 0 != tt.immediate {
				t.Errorf("after the first reading %q", told)
			}
			round(1)
			want := "; it began at " + tt.root
			if tt.root == "" {
				want = "; the storms lead in a circle"
			}
			if told := round(2); len(told) != 1 || !strings.HasSuffix(told[0], want) {
				t.Errorf("events %q, want one that ends with %q", told, want)
			}
			roots := testenv.Shown(f, "leaf1").Features.GetPfcwatchdog().GetRoots()
			if tt.root == "" && len(roots) != 0 || tt.root != "" && (len(roots) != 1 || roots[0].Root != tt.root || roots[0].Class != 3) {
				t.Errorf("roots %v, want %q", roots, tt.root)
			}
		})
	}
}

// TestRootOfShortStorm: a storm that another switch caused is reported even if it ends before its second
// reading.
func TestRootOfShortStorm(t *testing.T) {
	callbacks := &testenv.Callbacks{}
	f := New(callbacks)
	env := newEnv(t, f, watched, nil)
	storm := externs.Storm{Port: 3, Class: 3, On: true, Count: 1}
	sw := &testenv.Switch{Switch: "leaf1", Answer: func([]*p4v1.Entity) []*p4v1.Entity {
		return []*p4v1.Entity{externs.StormsEntity([]externs.Storm{storm})}
	}}
	l := f.Attach(testenv.AtSwitch(env, "leaf1"), sw)
	for range 3 {
		if err := l.Tick(context.Background(), time.Now()); err != nil {
			t.Fatal(err)
		}
		storm.On = false
	}
	var kinds []string
	for _, e := range callbacks.Events {
		kinds = append(kinds, e.Kind)
	}
	if got := strings.Join(kinds, " "); got != "pfc.received_storm pfc.received_storm_over" {
		t.Errorf("events %s", got)
	}
}
