package heap

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type item struct{ key, at int }

// TestOrder makes random operations on a heap and compares it with a sorted list.
func TestOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	h := New(func(a, b *item) bool { return a.key < b.key }, func(x *item, at int) { x.at = at })
	var all []*item
	for range 5000 {
		switch n := r.IntN(4); {
		case n < 2 || len(all) == 0:
			x := &item{key: r.IntN(100), at: Outside}
			all = append(all, x)
			h.Push(x)
		case n == 2:
			i := r.IntN(len(all))
			x := all[i]
			all = slices.Delete(all, i, i+1)
			if h.Remove(x.at) != x || x.at != Outside {
				t.Fatal("another element was removed")
			}
		default:
			x := all[r.IntN(len(all))]
			x.key = r.IntN(100)
			h.Fix(x.at)
		}
		least := 100
		for _, x := range all {
			least = min(least, x.key)
			if h.list[x.at] != x {
				t.Fatalf("an element is not at its place %d", x.at)
			}
		}
		if h.Len() != len(all) || h.Len() > 0 && h.First().key != least {
			t.Fatalf("%d elements, want %d; the first is not the least, %d", h.Len(), len(all), least)
		}
	}
}
