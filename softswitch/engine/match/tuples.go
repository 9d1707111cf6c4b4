package match

import (
	"cmp"
	"slices"
)

// tuples is a tuple-space search (Srinivasan et al., SIGCOMM 1999): entries with the same mask
// share a hash table. The tables are searched in the order of the highest priority that each may
// contain, until no other table can contain a better entry than the one found. Ranges are checked
// entry by entry within a bucket. When there are few entries, they are scanned in order instead.
type tuples struct {
	words  int
	list   []*tuple // in falling order of max
	byMask *keyMap[tuple]
	few    []*Entry // all entries, best first, while there are at most fewEntries
	n      int
}

type tuple struct {
	mask []uint64
	max  int // no entry has a higher priority
	m    *keyMap[bucket]
	n    int
}

// bucket holds the entries with one masked key, the best first.
type bucket struct{ entries []*Entry }

const fewEntries = 8

// better orders entries: the higher priority first, then the lower order.
func better(a, b *Entry) int {
	if a.priority != b.priority {
		return cmp.Compare(b.priority, a.priority)
	}
	return cmp.Compare(a.Order, b.Order)
}

func (x *tuples) Find(key []uint64, s *Scratch) *Entry {
	if x.n <= fewEntries {
		for _, e := range x.few {
			if e.matches(key) {
				return e
			}
		}
		return nil
	}
	var best *Entry
	k := s.buffer(len(key))
	for _, t := range x.list {
		if best != nil && best.priority > t.max {
			break
		}
		for i := range k {
			k[i] = key[i] & t.mask[i]
		}
		b := t.m.get(k, &s.bytes)
		if b == nil {
			continue
		}
		for _, e := range b.entries {
			if best != nil && better(best, e) < 0 {
				break
			}
			if e.inRanges(key) {
				best = e
				break
			}
		}
	}
	return best
}

// find returns the tuple and the bucket of an entry, nil for each that does not exist.
func (x *tuples) find(e *Entry) (*tuple, *bucket) {
	var buf []byte
	t := x.byMask.get(e.mask(), &buf)
	if t == nil {
		return nil, nil
	}
	return t, t.m.get(e.value(), &buf)
}

func (x *tuples) Same(e *Entry) *Entry {
	if _, b := x.find(e); b != nil {
		for _, o := range b.entries {
			if o.priority == e.priority && slices.EqualFunc(o.spans(), e.spans(), span.equal) {
				return o
			}
		}
	}
	return nil
}

func (x *tuples) Add(e *Entry) {
	t, b := x.find(e)
	if t == nil {
		t = &tuple{mask: slices.Clone(e.mask()), max: e.priority, m: newKeyMap[bucket](x.words)}
		x.byMask.put(t.mask, t)
		x.place(t)
	} else if e.priority > t.max {
		x.list = slices.DeleteFunc(x.list, func(o *tuple) bool { return o == t })
		t.max = e.priority
		x.place(t)
	}
	if b == nil {
		b = &bucket{}
		t.m.put(e.value(), b)
	}
	i, _ := slices.BinarySearchFunc(b.entries, e, better)
	b.entries = slices.Insert(b.entries, i, e)
	t.n++
	x.n++
	x.scan()
}

// place inserts a tuple behind those with the same or a higher max.
func (x *tuples) place(t *tuple) {
	i, _ := slices.BinarySearchFunc(x.list, t.max, func(o *tuple, m int) int {
		if o.max >= m {
			return -1
		}
		return 1
	})
	x.list = slices.Insert(x.list, i, t)
}

func (x *tuples) Remove(e *Entry) {
	t, b := x.find(e)
	b.entries = slices.DeleteFunc(b.entries, func(o *Entry) bool { return o == e })
	if len(b.entries) == 0 {
		t.m.del(e.value())
	}
	t.n--
	x.n--
	if t.n == 0 {
		x.byMask.del(t.mask)
		x.list = slices.DeleteFunc(x.list, func(o *tuple) bool { return o == t })
	}
	x.scan()
}

// scan fills few if there are few entries.
func (x *tuples) scan() {
	x.few = nil
	if x.n > fewEntries {
		return
	}
	for _, t := range x.list {
		t.m.each(func(b *bucket) { x.few = append(x.few, b.entries...) })
	}
	slices.SortFunc(x.few, better)
}
