package topology

import (
	"fmt"
	"testing"
)

// TestCycles: leaf-spine.yaml has 4 leaves and 2 spines. It has no buffer cycle, also with any
// single link out of service. With two links out, of different leaves and spines, paths go up again
// at a leaf and form a cycle.
func TestCycles(t *testing.T) {
	g := leafSpine(t)
	all := func(string) bool { return true }
	const first = "leaf3:3→spine1:3→spine1:4→leaf4:3→leaf4:4→spine2:4→spine2:3→leaf3:4→leaf3:3"
	for _, tt := range []struct {
		name     string
		down     []string
		failures int
		lossless func(string) bool
		want     string
	}{
		{"as it is", nil, 0, all, "|[] 0 0 0"},
		{"any one failure", nil, 1, all, "|[] 8 0 0"},
		{"any two", nil, 2, all, "|" + first + "[leaf1:3-spine1:1 leaf2:4-spine2:2] 36 12 0"},
		{"one is out already", []string{"leaf1:3-spine1:1"}, 1, all, "|" + first + "[leaf2:4-spine2:2] 7 3 0"},
		{"bounced routes", []string{"leaf1:3-spine1:1", "leaf2:4-spine2:2"}, 1, all, first + "|[] 0 0 0"},
		{"DSH Figure 16", []string{"leaf4:3-spine1:4", "leaf1:4-spine2:1"}, 0, all, "leaf2:3→spine1:2→spine1:3→leaf3:3→leaf3:4→spine2:3→spine2:2→leaf2:4→leaf2:3|[] 0 0 0"},
		{"a host's link", []string{"leaf1:1-h1"}, 1, all, "|[] 8 0 0"},
		{"nobody pauses at the spines", []string{"leaf1:3-spine1:1", "leaf2:4-spine2:2"}, 0, func(s string) bool { return s[0] == 'l' }, "|[] 0 0 0"},
	} {
		down := map[string]bool{}
		for _, l := range tt.down {
			down[l] = true
		}
		c := g.Cycles(t.Context(), down, tt.failures, tt.lossless)
		if got := fmt.Sprintf("%s|%s%v %d %d %d", c.Now, c.Then, c.Failed, c.Examined, c.With, c.Left); got != tt.want {
			t.Errorf("%s:\n%s, want\n%s", tt.name, got, tt.want)
		}
	}
}
