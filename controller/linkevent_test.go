package controller

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/p4runtime/reconcile"
)

// large is a fabric of leaves, two spines, and so many hosts at each leaf.
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

// TestLinkEvents compares what is computed from what was wanted before with what is computed
// from nothing, for links that go and come back, and looks at what was computed at all.
func TestLinkEvents(t *testing.T) {
	c, err := New(options())
	if err != nil {
		t.Fatal(err)
	}
	cfg := large(t, 3, 4)
	p := c.prepare(cfg)
	wants := c.wants(p, nil)
	for _, e := range []struct {
		link string
		up   bool
		want string // switches with new wants, and of these those with a new base
	}{
		{"s0:1-s3:1", false, "s0 s1 s2 s3, []"},
		{"s0:3-h0-0", false, "s0 s1 s2 s3 s4, [s0]"},
		{"s0:2-s4:1", false, "s0 s1 s2 s3 s4, []"}, // nobody reaches s0's hosts
		{"s0:2-s4:1", true, "s0 s1 s2 s3 s4, []"},
		{"s0:3-h0-0", true, "s0 s1 s2 s3 s4, [s0]"},
		{"s0:1-s3:1", true, "s0 s1 s2 s3, []"},
	} {
		if changed, err := c.links.set(e.link, e.up); err != nil || !changed {
			t.Fatalf("%s: %v, %v", e.link, changed, err)
		}
		next, fresh := c.wants(p, wants), c.wants(p, nil)
		var touched, rebuilt []string
		for _, s := range cfg.Switches {
			w := next.by[s.Name]
			if w.Err != nil || fresh.by[s.Name].Err != nil {
				t.Fatalf("%s: %v, %v", s.Name, w.Err, fresh.by[s.Name].Err)
			}
			for _, plan := range []reconcile.Plan{reconcile.Diff(w.State, fresh.by[s.Name].State, nil), reconcile.Diff(fresh.by[s.Name].State, w.State, nil)} {
				if plan.Len() != 0 {
					t.Errorf("%s up %v: %s differs from what is computed from nothing: %v", e.link, e.up, s.Name, plan)
				}
			}
			if w != wants.by[s.Name] {
				touched = append(touched, s.Name)
				if w.base != wants.by[s.Name].base {
					rebuilt = append(rebuilt, s.Name)
				}
			}
		}
		if got := fmt.Sprintf("%s, %v", strings.Join(touched, " "), rebuilt); got != e.want {
			t.Errorf("%s up %v: computed %s, want %s", e.link, e.up, got, e.want)
		}
		wants = next
	}
}

// BenchmarkLinkEvent is what the controller computes when a link goes or comes back: the wants
// of all switches, and what to write.
func BenchmarkLinkEvent(b *testing.B) {
	for _, leaves := range []int{4, 20} {
		b.Run(fmt.Sprintf("switches=%d/hosts=%d", leaves+2, leaves*500), func(b *testing.B) {
			c, err := New(options())
			if err != nil {
				b.Fatal(err)
			}
			p := c.prepare(large(b, leaves, 500))
			wants := c.wants(p, nil)
			up, updates := true, 0
			b.ReportAllocs()
			for b.Loop() {
				up = !up
				if _, err := c.links.set(p.config.Links[0].Name, up); err != nil {
					b.Fatal(err)
				}
				next := c.wants(p, wants)
				for name, w := range next.by {
					if w == wants.by[name] {
						continue
					}
					updates += reconcile.Diff(wants.by[name].State, w.State, nil).Len()
				}
				wants = next
			}
			b.ReportMetric(float64(updates)/float64(b.N), "updates/op")
		})
	}
}
