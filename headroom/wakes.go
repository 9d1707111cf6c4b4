package headroom

import "github.com/headgate/headgate/units"

// wakes is a heap of paused queues or ports by what they hold, least first. Its owner is an
// MMU. It never grows beyond the size it was made with.
type wakes struct {
	order []waiting
	place []int32 // per id: place in order + 1, or 0
}

// waiting is a paused queue or port. The key is beside its id, since a comparison that has
// to look it up elsewhere costs as much as all the rest of a step.
type waiting struct {
	key units.Bytes
	id  int32
}

// degree of the heap: four children share a cache line.
const degree = 4

func newWakes(n int) wakes { return wakes{make([]waiting, 0, n), make([]int32, n)} }

// first returns the id with the least key; ok is false when there is none.
func (w *wakes) first() (id int32, key units.Bytes, ok bool) {
	if len(w.order) == 0 {
		return 0, 0, false
	}
	return w.order[0].id, w.order[0].key, true
}

// put adds an id or changes its key.
func (w *wakes) put(id int32, key units.Bytes) {
	at := int(w.place[id]) - 1
	if at < 0 {
		w.order = append(w.order, waiting{})
		at = len(w.order) - 1
	} else if w.order[at].key == key {
		return
	}
	w.fix(at, waiting{key, id})
}

// remove takes an id out, if it is there.
func (w *wakes) remove(id int32) {
	at := int(w.place[id]) - 1
	if at < 0 {
		return
	}
	w.place[id] = 0
	last := len(w.order) - 1
	moved := w.order[last]
	w.order = w.order[:last]
	if at != last {
		w.fix(at, moved)
	}
}

// fix puts x at a free place, or where its key belongs above or below it.
func (w *wakes) fix(at int, x waiting) {
	order := w.order
	for at > 0 {
		parent := (at - 1) / degree
		if order[parent].key <= x.key {
			break
		}
		order[at] = order[parent]
		w.place[order[at].id] = int32(at + 1)
		at = parent
	}
	for {
		child := degree*at + 1
		if child >= len(order) {
			break
		}
		least := child
		for i := child + 1; i < min(child+degree, len(order)); i++ {
			if order[i].key < order[least].key {
				least = i
			}
		}
		if x.key <= order[least].key {
			break
		}
		order[at] = order[least]
		w.place[order[at].id] = int32(at + 1)
		at = least
	}
	order[at] = x
	w.place[x.id] = int32(at + 1)
}
