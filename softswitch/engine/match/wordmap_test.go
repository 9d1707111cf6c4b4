package match

import (
	"testing"

	"pgregory.net/rapid"
)

// TestWordMap compares WordMap with a built-in map. It uses few keys, so that they collide and are added again
// after deletion.
func TestWordMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m wordMap[int]
		want := map[uint64]int{}
		for i := range rapid.IntRange(1, 200).Draw(t, "steps") {
			k := rapid.Uint64Range(0, 60).Draw(t, "key") << rapid.SampledFrom([]int{0, 58}).Draw(t, "shift")
			if rapid.Bool().Draw(t, "delete") {
				m.del(k)
				delete(want, k)
			} else {
				m.put(k, &i)
				want[k] = i
			}
			if m.n != len(want) {
				t.Fatalf("%d keys, want %d", m.n, len(want))
			}
			for k := range uint64(61) {
				for _, k := range []uint64{k, k << 58} {
					v := m.get(k)
					if w, has := want[k]; (v != nil) != has || has && *v != w {
						t.Fatalf("get(%#x) = %v, want %d, %v", k, v, w, has)
					}
				}
			}
		}
		n := 0
		m.each(func(*int) { n++ })
		if n != len(want) {
			t.Fatalf("each gave %d values, want %d", n, len(want))
		}
	})
}
