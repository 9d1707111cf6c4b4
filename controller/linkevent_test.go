package controller

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/p4runtime/reconcile"
)

// large is a fabric of leaves, two spines and n hosts per leaf.
func large(t testing.TB, leaves, hosts int) *config.Config {
	t.Helper()
	var switches, list, links strings.Builder
	for i := range leaves + 2 {
		fmt.Fprintf(&switches, "  - {name: s%d, device_id: %d, address: \"127.0.0.1:%d\", target: embedded}\n", i, i+1, 10000+i)
	}
	for i := range leaves {
		for s := range 2 {
			fmt.Fprintf(&links, "  - {a: \"s%d:%d\", b: \"s%d:%d\", rate: 100Gbps}\n", i, s+1, leaves+s, i+1)
		}
		for h := range hosts {
			fmt.Fprintf(&list, "  - {name: h%d-%d, ipv4: 10.%d.%d.%d}\n", i, h, i, h/250, h%250+1)
			fmt.Fprintf(&links, "  - {a: \"s%d:%d\", b: h%d-%d, rate: 100Gbps}\n", i, h+3, i, h)
		}
	}
	cfg, err := config.Parse("large.yaml", fmt.Appendf(nil, "name: large\nswitches:\n%shosts:\n%slinks:\n%s", &switches, &list, &links), nil, Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestLinkEvents compares the incremental computation with a full one while links fail and return,
// and checks how much was recomputed.
func TestLinkEvents(t *testing.T) {
	c, err := New(options())
	if err != nil {
		t.Fatal(err)
	}
	cfg := large(t, 3, 4)
	in := c.inputs(cfg)
	last := c.desired(in, in.graph.Routes(c.links.state()), nil)
	for _, e := range []struct {
		link string
		up   bool
		want string // switches with a new desired state
	}{
		{"s0:1-s3:1", false, "s0 s1 s2 s3"},
		{"s0:3-h0-0", false, "s0"},
		{"s0:2-s4:1", false, "s0 s1 s2 s3 s4"}, // no switch reaches s0's hosts
		{"s0:2-s4:1", true, "s0 s1 s2 s3 s4"},
		{"s0:3-h0-0", true, "s0"},
		{"s0:1-s3:1", true, "s0 s1 s2 s3"},
	} {
		if changed, err := c.links.set([]string{e.link}, e.up, nil); err != nil || len(changed) != 1 {
			t.Fatalf("%s: %v, %v", e.link, changed, err)
		}
		next, fresh := c.desired(in, in.graph.Routes(c.links.state()), last), c.desired(in, in.graph.Routes(c.links.state()), nil)
		var touched []string
		for _, s := range cfg.Switches {
			w, f := next[s.Name], fresh[s.Name]
			if w.Err != nil || f.Err != nil {
				t.Fatalf("%s: %v, %v", s.Name, w.Err, f.Err)
			}
			for _, plan := range []reconcile.Plan{reconcile.Diff(w.State, f.State, nil), reconcile.Diff(f.State, w.State, nil)} {
				if plan.Len() != 0 {
					t.Errorf("%s up %v: %s differs from what is computed from nothing: %v", e.link, e.up, s.Name, plan)
				}
			}
			if w != last[s.Name] {
				touched = append(touched, s.Name)
			}
		}
		if got := strings.Join(touched, " "); got != e.want {
			t.Errorf("%s up %v: computed %s, want %s", e.link, e.up, got, e.want)
		}
		last = next
	}
}

// BenchmarkLinkEvent measures the controller's work when a link fails or returns: all switches'
// desired state, and the writes.
func BenchmarkLinkEvent(b *testing.B) {
	for _, leaves := range []int{4, 20} {
		b.Run(fmt.Sprintf("switches=%d/hosts=%d", leaves+2, leaves*500), func(b *testing.B) {
			c, err := New(options())
			if err != nil {
				b.Fatal(err)
			}
			in := c.inputs(large(b, leaves, 500))
			last := c.desired(in, in.graph.Routes(c.links.state()), nil)
			up, updates := true, 0
			b.ReportAllocs()
			for b.Loop() {
				up = !up
				if _, err := c.links.set([]string{in.config.Links[0].Name}, up, nil); err != nil {
					b.Fatal(err)
				}
				next := c.desired(in, in.graph.Routes(c.links.state()), last)
				for name, w := range next {
					if w != last[name] {
						updates += reconcile.Diff(last[name].State, w.State, nil).Len()
					}
				}
				last = next
			}
			b.ReportMetric(float64(updates)/float64(b.N), "updates/op")
		})
	}
}
