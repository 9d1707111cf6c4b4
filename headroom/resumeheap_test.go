package headroom

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/units"
)

func TestResumeHeapAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 20
		w := newResumeHeap(n)
		model := map[int32]units.Bytes{}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			id := rapid.Int32Range(0, n-1).Draw(t, "id")
			if rapid.Bool().Draw(t, "put") {
				key := units.Bytes(rapid.IntRange(0, 9).Draw(t, "key"))
				w.put(id, key)
				model[id] = key
			} else {
				w.remove(id)
				delete(model, id)
			}
			least := units.Bytes(1 << 60)
			for _, key := range model {
				least = min(least, key)
			}
			first, key, ok := w.first()
			if ok != (len(model) > 0) || ok && (key != least || model[first] != least) {
				t.Fatalf("first is %d with %d (%v), want one with %d of %v", first, key, ok, least, model)
			}
			if len(w.order) != len(model) {
				t.Fatalf("%d wait, want %d", len(w.order), len(model))
			}
		}
	})
}
