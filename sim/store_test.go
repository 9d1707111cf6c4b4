package sim

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestStoreAgainstSlices compares lists that share a store with slices: pushed packets come out in order, a
// packet that was taken stays unchanged until the next is taken, and no slot is lost.
func TestStoreAgainstSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStore()
		lists, want := make([]list, 3), make([][]int32, 3)
		var taken *packet
		var was int32
		for n := range int32(rapid.IntRange(1, 300).Draw(t, "steps")) {
			i := rapid.IntRange(0, len(lists)-1).Draw(t, "list")
			if len(want[i]) == 0 || rapid.IntRange(0, 4).Draw(t, "push") > 1 {
				to := s.push(&lists[i], &packet{flow: n})
				to.route++
				want[i] = append(want[i], n)
			} else {
				taken, was = s.pop(&lists[i]), want[i][0]
				want[i] = want[i][1:]
			}
			if taken != nil && (taken.flow != was || taken.route != 1) {
				t.Fatalf("the packet that was taken is %+v, want flow %d", taken, was)
			}
			for i := range lists {
				var got []int32
				s.each(lists[i], func(e *packet) bool { got = append(got, e.flow); return true })
				if !slices.Equal(got, want[i]) || lists[i].head == 0 != (len(got) == 0) {
					t.Fatalf("list %d at %+v holds %v, want %v", i, lists[i], got, want[i])
				}
			}
		}
		for i := range lists {
			for range want[i] {
				s.pop(&lists[i])
			}
		}
		slots := 1 // index 0, which is never used
		if s.left != 0 {
			slots++
		}
		for i := s.free; i != 0; i = s.slots[i].next {
			slots++
		}
		if slots != len(s.slots) {
			t.Errorf("%d slots are free or left of %d", slots, len(s.slots))
		}
	})
}
