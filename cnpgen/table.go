package cnpgen

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// entry is a flow of the last list. Only live entries are in the table in the paper's sense.
type entry struct {
	key              FlowKey
	bytes, congested uint64  // in the present period: txBytes, N_cong
	carry            float64 // fraction left of the last share, below 1 CNP
	row              int32   // index in the last list of flows
	tick             uint32  // tick of the last list that named the flow
	live             bool
}

// table holds at most limit live entries and as many others. Port owns it.
type table struct {
	limit   int
	live    int
	tick    uint32
	entries []entry
	free    []int32
	index4  map[uint64]int32  // of flows between IPv4 addresses
	index   map[FlowKey]int32 // of all others
	order   []int32           // entries by row of the present list
	before  []int32           // and of the one before
	rank    []int32           // scratch of fit
}

func newTable(limit int) table {
	return table{limit: limit, index4: make(map[uint64]int32), index: make(map[FlowKey]int32)}
}

// read replaces the list of flows. It forgets flows that are not in the new one.
func (t *table) read(flows []FlowCount, st *Stats) {
	t.tick++
	t.before, t.order = t.order, t.before[:0]
	at := 0 // where the next flow is expected in the previous list
	for r := range flows {
		f := &flows[r]
		i := t.find(f.Key, at)
		if i < 0 {
			i = t.add(f.Key, st)
		} else if e := &t.entries[i]; e.tick == t.tick {
			st.Ignored++
			i = -1
		} else {
			at = int(e.row) + 1
		}
		if i >= 0 {
			e := &t.entries[i]
			e.bytes, e.congested = f.Bytes, f.Congested
			e.row, e.tick = int32(len(t.order)), t.tick
			t.order = append(t.order, i)
		}
	}
	t.forget()
}

// find returns the entry of a flow or -1. Lists hardly change from tick to tick, so it looks first
// where the previous list had the flow.
func (t *table) find(k FlowKey, at int) int32 {
	if at < len(t.before) {
		if i := t.before[at]; t.entries[i].key == k {
			return i
		}
	}
	var i int32
	var ok bool
	if k4, is4 := key4(k); is4 {
		i, ok = t.index4[k4]
	} else {
		i, ok = t.index[k]
	}
	if !ok {
		return -1
	}
	return i
}

// key4 packs a key of IPv4 addresses into a word, which takes a fraction of the time to hash.
func key4(k FlowKey) (uint64, bool) {
	if !k.Src.Is4() || !k.Dst.Is4() {
		return 0, false
	}
	src, dst := k.Src.As4(), k.Dst.As4()
	return uint64(binary.BigEndian.Uint32(src[:]))<<32 | uint64(binary.BigEndian.Uint32(dst[:])), true
}

func (t *table) add(k FlowKey, st *Stats) int32 {
	if len(t.index)+len(t.index4) >= 2*t.limit {
		st.Ignored++
		return -1
	}
	var i int32
	if n := len(t.free); n > 0 {
		i, t.free = t.free[n-1], t.free[:n-1]
		t.entries[i] = entry{key: k}
	} else {
		i = int32(len(t.entries))
		t.entries = append(t.entries, entry{key: k})
	}
	if k4, is4 := key4(k); is4 {
		t.index4[k4] = i
	} else {
		t.index[k] = i
	}
	return i
}

// forget frees the entries of flows that the present list does not have.
func (t *table) forget() {
	for _, i := range t.before {
		e := &t.entries[i]
		if e.tick == t.tick {
			continue
		}
		if e.live {
			t.live--
		}
		if k4, is4 := key4(e.key); is4 {
			delete(t.index4, k4)
		} else {
			delete(t.index, e.key)
		}
		*e = entry{}
		t.free = append(t.free, i)
	}
}

// fit adds the flows that have sent enough or were congested to the table. When there are more than
// it has room for, it leaves out the least congested, and among equals those with fewer bytes.
func (t *table) fit(least float64, st *Stats) {
	wants := func(e *entry) bool { return !e.live && (e.congested > 0 || float64(e.bytes) >= least) }
	n := 0
	for _, i := range t.order {
		if wants(&t.entries[i]) {
			n++
		}
	}
	if t.live+n <= t.limit {
		for _, i := range t.order {
			if e := &t.entries[i]; wants(e) {
				e.live = true
			}
		}
		t.live += n
		return
	}
	t.rank = t.rank[:0]
	for _, i := range t.order {
		if e := &t.entries[i]; e.live || wants(e) {
			t.rank = append(t.rank, i)
		}
	}
	slices.SortFunc(t.rank, func(a, b int32) int { return t.entries[a].compare(&t.entries[b]) })
	for r, i := range t.rank {
		t.entries[i].live = r < t.limit
	}
	st.Evicted += uint64(len(t.rank) - t.limit)
	t.live = t.limit
}

// compare orders entries by congestion, most congested first. The other criteria make the order
// total.
func (e *entry) compare(o *entry) int {
	order := cmp.Or(cmp.Compare(o.congested, e.congested), cmp.Compare(o.bytes, e.bytes))
	switch {
	case order != 0 || e.live == o.live:
		return cmp.Or(order, cmp.Compare(e.row, o.row))
	case e.live:
		return -1
	}
	return 1
}

// congested returns ΣN_cong of the table.
func (t *table) congested() uint64 {
	var sum uint64
	for _, i := range t.order {
		if e := &t.entries[i]; e.live {
			sum += e.congested
		}
	}
	return sum
}

// carried returns the sum of the carries of the flows that get CNPs now.
func (t *table) carried() float64 {
	sum := 0.0
	for _, i := range t.order {
		if e := &t.entries[i]; e.live && e.congested > 0 {
			sum += e.carry
		}
	}
	return sum
}

// age removes the flows that have sent fewer than least bytes in the period from the table.
func (t *table) age(least float64, st *Stats) {
	for _, i := range t.order {
		if e := &t.entries[i]; e.live && float64(e.bytes) < least {
			e.live, e.carry = false, 0
			t.live--
			st.Aged++
		}
	}
}
