package cbd

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestCycle compares Cycle with a search for paths from each channel back to itself. It finds a cycle if there is
// one; each channel of the cycle depends on the next, and none appears twice.
func TestCycle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "channels")
		d := make(dependencies, n)
		for range rapid.IntRange(0, 2*n).Draw(t, "edges") {
			from, to := rapid.IntRange(0, n-1).Draw(t, "from"), int32(rapid.IntRange(0, n-1).Draw(t, "to"))
			if int(to) != from && !slices.Contains(d[from], to) { // no packet returns on the link that it came by
				d[from] = append(d[from], to)
			}
		}
		there := false
		for start := range n {
			reached := map[int32]bool{}
			var visit func(c int32)
			visit = func(c int32) {
				for _, out := range d[c] {
					if !reached[out] {
						reached[out] = true
						visit(out)
					}
				}
			}
			visit(int32(start))
			there = there || reached[int32(start)]
		}
		cycle := d.cycle()
		if (cycle != nil) != there {
			t.Fatalf("%v: cycle %v, want one: %v", d, cycle, there)
		}
		for i, c := range cycle {
			next := cycle[(i+1)%len(cycle)]
			if !slices.Contains(d[c], int32(next)) || slices.Contains(cycle[:i], c) {
				t.Fatalf("%v: %v is no cycle", d, cycle)
			}
		}
	})
}

// ring is a ring of four switches in which packets go one way, over two links.
func ring(lossless func(int) bool) *Fabric {
	var ports [][]Port
	for i := range 4 {
		ports = append(ports, []Port{{(i + 1) % 4, i}, {-1, 4 + i}})
	}
	return New(ports, lossless, func(leaf int, down []bool) [][]int {
		next := make([][]int, 4)
		for _, back := range []int{1, 2} { // nodes one and two links before the leaf
			n := (leaf + 4 - back) % 4
			if down[n] || back == 2 && len(next[(n+1)%4]) == 0 {
				break
			}
			next[n] = []int{0}
		}
		return next
	})
}

func TestRing(t *testing.T) {
	all := func(int) bool { return true }
	if got := ring(all).cycle(make([]bool, 4)); !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Errorf("a ring: %v", got)
	}
	// A failed link, or a switch without PFC, breaks the cycle.
	if got := ring(all).cycle([]bool{false, true, false, false}); got != nil {
		t.Errorf("without a link: %v", got)
	}
	if got := ring(func(n int) bool { return n != 2 }).cycle(make([]bool, 4)); got != nil {
		t.Errorf("switch 2 pauses nobody: %v", got)
	}
}
