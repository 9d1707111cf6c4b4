package topo

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/cbd"
)

// TestCycles: shortest paths in trees go up and then down, so no buffer depends on itself. Failed links make
// paths go down to a leaf and up again, as in DSH's Figure 16.
func TestCycles(t *testing.T) {
	leafSpine := func(failed ...string) *Graph {
		g, err := LeafSpine(4, 2, 2, line, line)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range failed {
			a, b, _ := strings.Cut(f, "–")
			na, _ := g.Find(a)
			nb, _ := g.Find(b)
			l, ok := g.LinkBetween(na, nb)
			if !ok {
				t.Fatal("no link", f)
			}
			g.Links[l].Down = true
		}
		return g
	}
	s := shapes(t)
	for _, tt := range []struct {
		name     string
		g        *Graph
		failures int
		want     string // Now, Then, Failed, Examined, With, Left
	}{
		{"star", s["star"], 2, "||[] 0 0 0"},
		{"fat-tree", s["fat-tree"], 1, "||[] 32 0 0"},
		{"leaf-spine", leafSpine(), 1, "||[] 8 0 0"},
		// Two failed links of one leaf cut it off; two of one spine leave the spine out. The other pairs, of
		// different leaves and spines, have paths that go down and up again.
		{"leaf-spine, two failures", leafSpine(), 2, "|leaf2→spine0→leaf3→spine1→leaf2|[leaf0–spine0 leaf1–spine1] 36 12 0"},
		{"DSH Figure 16", leafSpine("leaf3–spine0", "leaf0–spine1"), 1, "leaf1→spine0→leaf2→spine1→leaf1||[] 0 0 0"},
	} {
		c := tt.g.Cycles(t.Context(), tt.failures)
		if got := fmt.Sprintf("%s|%s|%v %d %d %d", c.Now, c.Then, c.Failed, c.Examined, c.With, c.Left); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestCyclesEnd: combinations that were not examined when the caller gave up are counted.
func TestCyclesEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c := shapes(t)["fat-tree"].Cycles(ctx, 2); c.Examined != 0 || c.Left != 528 {
		t.Errorf("%+v", c)
	}
}

// TestCyclesAreAllFound compares the survey, which skips irrelevant combinations, with a search of every
// combination of two failures.
func TestCyclesAreAllFound(t *testing.T) {
	for name, g := range shapes(t) {
		var links []int
		for i, l := range g.Links {
			if !g.IsHost(l.A) && !g.IsHost(l.B) {
				links = append(links, i)
			}
		}
		with := 0
		for i, a := range links {
			for _, b := range links[i:] {
				g.Links[a].Down, g.Links[b].Down = true, true
				if g.Cycles(t.Context(), 0).Now != "" {
					with++
				}
				g.Links[a].Down, g.Links[b].Down = false, false
			}
		}
		if c := g.Cycles(t.Context(), 2); c.With != with || c.Examined != len(links)*(len(links)+1)/2 {
			t.Errorf("%s: %d of %d combinations have a cycle, want %d", name, c.With, c.Examined, with)
		}
	}
}

func BenchmarkCycles(b *testing.B) {
	for _, k := range []int{4, 8, 16} {
		g, err := FatTree(k, line, line, line)
		if err != nil {
			b.Fatal(err)
		}
		for failures := range 3 {
			b.Run(fmt.Sprintf("k=%d/failures=%d", k, failures), func(b *testing.B) {
				var c cbd.Cycles
				for b.Loop() {
					c = g.Cycles(b.Context(), failures)
				}
				b.ReportMetric(float64(c.Examined), "examined")
				b.ReportMetric(float64(c.Left), "left")
				b.ReportMetric(float64(c.With), "cyclic")
			})
		}
	}
}
