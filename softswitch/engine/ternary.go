package engine

import (
	"cmp"
	"slices"
)

// ternaryLookup is a tuple-space search (Srinivasan et al., SIGCOMM 1999): entries with
// the same mask share a hash table, and the tables are tried in the order of the highest
// priority they may hold, until none can beat what was found. Ranges are checked entry by
// entry within a bucket. Few entries are simply scanned in order of priority.
type ternaryLookup struct {
	spec   *tableSpec
	tuples []*tuple // by falling max
	byMask *keyMap[*tuple]
	few    []*entry // all entries by rank while there are at most fewEntries
	n      int
}

type tuple struct {
	mask []uint64
	max  int // no entry has a higher priority
	n    int
	m    *keyMap[*bucket]
}

// bucket holds the entries with one masked key, the best first.
type bucket struct{ entries []*entry }

const fewEntries = 8

// rank orders entries: higher priority first, then the older one.
func rank(a, b *entry) int {
	if a.priority != b.priority {
		return cmp.Compare(b.priority, a.priority)
	}
	return cmp.Compare(a.handle, b.handle)
}

func (x *ternaryLookup) find(p *Packet, key []uint64) *entry {
	if x.n <= fewEntries {
		for _, e := range x.few {
			if e.matches(key) {
				return e
			}
		}
		return nil
	}
	if cap(p.wide) < len(key) {
		p.wide = make([]uint64, len(key))
	}
	k := p.wide[:len(key)]
	var best *entry
	for _, t := range x.tuples {
		if best != nil && best.priority > t.max {
			break
		}
		for i := range k {
			k[i] = key[i] & t.mask[i]
		}
		b, ok := t.m.get(k, &p.kbuf)
		if !ok {
			continue
		}
		for _, e := range b.entries {
			if best != nil && rank(best, e) < 0 {
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

// matches compares a packed key with the entry.
func (e *entry) matches(key []uint64) bool {
	for i := range key {
		if key[i]&e.mask[i] != e.value[i] {
			return false
		}
	}
	return e.inRanges(key)
}

func (e *entry) inRanges(key []uint64) bool {
	for i := range e.ranges {
		r := &e.ranges[i]
		if len(r.lo) == 1 {
			var v [1]uint64
			fetch(v[:], key, r.at, r.bits)
			if v[0] < r.lo[0] || v[0] > r.hi[0] {
				return false
			}
		} else if !r.wide(key) {
			return false
		}
	}
	return true
}

// wide checks a range of more than 64 bits.
func (r *entryRange) wide(key []uint64) bool {
	var buf [8]uint64
	v := buf[:]
	if len(r.lo) > len(v) {
		v = make([]uint64, len(r.lo))
	}
	v = v[:len(r.lo)]
	fetch(v, key, r.at, r.bits)
	return cmpWords(v, r.lo) >= 0 && cmpWords(v, r.hi) <= 0
}

func (x *ternaryLookup) tuple(mask []uint64) *tuple {
	var buf []byte
	t, _ := x.byMask.get(mask, &buf)
	return t
}

func (x *ternaryLookup) same(e *entry) *entry {
	t := x.tuple(e.mask)
	if t == nil {
		return nil
	}
	var buf []byte
	b, _ := t.m.get(e.value, &buf)
	if b == nil {
		return nil
	}
	for _, o := range b.entries {
		if o.priority == e.priority && slices.EqualFunc(o.ranges, e.ranges, entryRange.equal) {
			return o
		}
	}
	return nil
}

func (x *ternaryLookup) add(e *entry) {
	t := x.tuple(e.mask)
	if t == nil {
		t = &tuple{mask: slices.Clone(e.mask), max: e.priority, m: newKeyMap[*bucket](x.spec.limbs)}
		x.byMask.put(e.mask, t)
		x.place(t)
	}
	if e.priority > t.max {
		x.tuples = slices.Delete(x.tuples, slices.Index(x.tuples, t), slices.Index(x.tuples, t)+1)
		t.max = e.priority
		x.place(t)
	}
	var buf []byte
	b, ok := t.m.get(e.value, &buf)
	if !ok {
		b = &bucket{}
		t.m.put(e.value, b)
	}
	i, _ := slices.BinarySearchFunc(b.entries, e, rank)
	b.entries = slices.Insert(b.entries, i, e)
	t.n++
	x.n++
	if x.n <= fewEntries {
		i, _ := slices.BinarySearchFunc(x.few, e, rank)
		x.few = slices.Insert(x.few, i, e)
	} else {
		x.few = nil
	}
}

// place inserts a tuple behind those with the same or a higher max.
func (x *ternaryLookup) place(t *tuple) {
	i, _ := slices.BinarySearchFunc(x.tuples, t.max, func(o *tuple, m int) int {
		if o.max >= m {
			return -1
		}
		return 1
	})
	x.tuples = slices.Insert(x.tuples, i, t)
}

func (x *ternaryLookup) remove(e *entry) {
	t := x.tuple(e.mask)
	if t == nil {
		return
	}
	var buf []byte
	b, _ := t.m.get(e.value, &buf)
	if b == nil {
		return
	}
	b.entries = slices.DeleteFunc(b.entries, func(o *entry) bool { return o == e })
	if len(b.entries) == 0 {
		t.m.del(e.value)
	}
	t.n--
	x.n--
	if t.n == 0 {
		x.byMask.del(t.mask)
		x.tuples = slices.DeleteFunc(x.tuples, func(o *tuple) bool { return o == t })
	}
	switch {
	case x.n < fewEntries:
		x.few = slices.DeleteFunc(x.few, func(o *entry) bool { return o == e })
	case x.n == fewEntries:
		x.few = x.all()
	}
}

// all lists the entries by rank.
func (x *ternaryLookup) all() []*entry {
	var list []*entry
	add := func(b *bucket) { list = append(list, b.entries...) }
	for _, t := range x.tuples {
		t.m.each(add)
	}
	slices.SortFunc(list, rank)
	return list
}
