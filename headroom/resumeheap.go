package headroom

import "github.com/headgate/headgate/units"

// resumeHeap is a heap of an MMU's paused queues or ports, fewest bytes first. A key may be less than the queue's
// present length, because moving the queue with every packet would cost more than all other work. The heap never
// grows beyond its first size.
type resumeHeap struct {
	order []resumeEntry
	place []int32 // per id: place in order + 1, or 0
}

// resumeEntry is a paused queue or port. The key is here, and not only in the queue, to save a cache miss per step.
type resumeEntry struct {
	key units.Bytes
	id  int32
}

// degree of the heap: four children share a cache line.
const degree = 4

func newResumeHeap(n int) resumeHeap { return resumeHeap{make([]resumeEntry, 0, n), make([]int32, n)} }

func (w *resumeHeap) first() (id int32, key units.Bytes, ok bool) {
	if len(w.order) == 0 {
		return 0, 0, false
	}
	return w.order[0].id, w.order[0].key, true
}

func (w *resumeHeap) put(id int32, key units.Bytes) {
	at := int(w.place[id]) - 1
	switch {
	case at < 0:
		w.add(id, key)
	case key < w.order[at].key:
		w.rise(at, resumeEntry{key, id})
	case key > w.order[at].key:
		w.sink(at, resumeEntry{key, id})
	}
}

// lower adds an id or lowers its key. It keeps a key that is already lower.
func (w *resumeHeap) lower(id int32, key units.Bytes) {
	at := int(w.place[id]) - 1
	if at < 0 {
		w.add(id, key)
	} else if key < w.order[at].key {
		w.rise(at, resumeEntry{key, id})
	}
}

func (w *resumeHeap) add(id int32, key units.Bytes) {
	w.order = append(w.order, resumeEntry{})
	w.rise(len(w.order)-1, resumeEntry{key, id})
}

func (w *resumeHeap) remove(id int32) {
	at := int(w.place[id]) - 1
	if at < 0 {
		return
	}
	w.place[id] = 0
	last := len(w.order) - 1
	moved := w.order[last]
	w.order = w.order[:last]
	switch {
	case at == last:
	case at > 0 && moved.key < w.order[(at-1)/degree].key:
		w.rise(at, moved)
	default:
		w.sink(at, moved)
	}
}

// rise puts x at a free place or above it.
func (w *resumeHeap) rise(at int, x resumeEntry) {
	order, place := w.order, w.place
	for at > 0 {
		parent := (at - 1) / degree
		up := order[parent]
		if up.key <= x.key {
			break
		}
		order[at] = up
		place[up.id] = int32(at + 1)
		at = parent
	}
	order[at] = x
	place[x.id] = int32(at + 1)
}

// sink puts x at a free place or below it.
func (w *resumeHeap) sink(at int, x resumeEntry) {
	order, place := w.order, w.place
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
		down := order[least]
		if x.key <= down.key {
			break
		}
		order[at] = down
		place[down.id] = int32(at + 1)
		at = least
	}
	order[at] = x
	place[x.id] = int32(at + 1)
}
