package engine

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/gaissmai/bart"
)

// lookup is the structure that finds entries of one table. The instance's lock guards it:
// readers may share it, add and remove exclude everyone.
type lookup interface {
	find(p *Packet, key []uint64) *entry
	// same finds the entry with the same key (and priority, where there are priorities).
	same(e *entry) *entry
	add(e *entry)
	remove(e *entry)
}

func newLookup(t *tableSpec) lookup {
	switch t.kind {
	case LPM:
		return newLPMLookup(t)
	case Ternary, Range:
		return &ternaryLookup{spec: t, byMask: newKeyMap[*tuple](t.limbs)}
	}
	if n := t.bits(); n <= directBits {
		return make(directLookup, 1<<n)
	}
	return &exactLookup{m: newKeyMap[*entry](t.limbs)}
}

// directBits is up to how many bits a key of exact fields is the index of an array.
const directBits = 12

// directLookup has a place for every key.
type directLookup []*entry

func (x directLookup) find(_ *Packet, key []uint64) *entry { return x[key[0]&uint64(len(x)-1)] }
func (x directLookup) same(e *entry) *entry                { return x[e.value[0]] }
func (x directLookup) add(e *entry)                        { x[e.value[0]] = e }
func (x directLookup) remove(e *entry)                     { x[e.value[0]] = nil }

type exactLookup struct{ m *keyMap[*entry] }

func (x *exactLookup) find(p *Packet, key []uint64) *entry {
	e, _ := x.m.get(key, &p.kbuf)
	return e
}

func (x *exactLookup) same(e *entry) *entry {
	var buf []byte
	old, _ := x.m.get(e.value, &buf)
	return old
}

func (x *exactLookup) add(e *entry)    { x.m.put(e.value, e) }
func (x *exactLookup) remove(e *entry) { x.m.del(e.value) }

// lpmLookup holds one prefix trie per value of the exact fields. Keys are moved to the top
// of an IPv4 or IPv6 address, whichever is wide enough; wider keys go to hash tables, one
// per prefix length, the longest first.
type lpmLookup struct {
	spec  *tableSpec
	bits  int // of the LPM field
	at    int
	exact []uint64 // mask of the other fields, nil when there are none
	one   *bart.Table[*entry]
	tries *keyMap[*bart.Table[*entry]]
	long  []*prefixTable
}

type prefixTable struct {
	length int
	mask   []uint64
	m      *keyMap[*entry]
}

const maxTrieBits = 128

func newLPMLookup(t *tableSpec) *lpmLookup {
	k := t.key[t.lpm]
	x := &lpmLookup{spec: t, bits: k.bits, at: k.at}
	if len(t.key) > 1 {
		x.exact = make([]uint64, t.limbs)
		for i := range t.key {
			if i != t.lpm {
				full := make([]uint64, (t.key[i].bits+63)/64)
				prefixMask(full, t.key[i].bits, t.key[i].bits)
				place(x.exact, full, t.key[i].at)
			}
		}
		x.tries = newKeyMap[*bart.Table[*entry]](t.limbs)
	} else {
		x.one = new(bart.Table[*entry])
	}
	return x
}

// addr is the LPM field of a packed key, moved to the top of an address.
func (x *lpmLookup) addr(key []uint64) netip.Addr {
	var v [2]uint64
	n := (x.bits + 63) / 64
	fetch(v[:n], key, x.at, x.bits)
	if x.bits <= 32 {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(v[0]<<(32-x.bits)))
		return netip.AddrFrom4(b)
	}
	if s := uint(128 - x.bits); s >= 64 {
		v[1], v[0] = v[0]<<(s-64), 0
	} else if s > 0 {
		v[1] = v[1]<<s | v[0]>>(64-s)
		v[0] <<= s
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], v[1])
	binary.BigEndian.PutUint64(b[8:], v[0])
	return netip.AddrFrom16(b)
}

// others masks the exact fields of key.
func (x *lpmLookup) others(key, dst []uint64) []uint64 {
	for i := range dst {
		dst[i] = key[i] & x.exact[i]
	}
	return dst
}

func (x *lpmLookup) trie(key []uint64, create bool) *bart.Table[*entry] {
	if x.one != nil {
		return x.one
	}
	k := x.others(key, make([]uint64, len(key)))
	var buf []byte
	t, ok := x.tries.get(k, &buf)
	if !ok && create {
		t = new(bart.Table[*entry])
		x.tries.put(k, t)
	}
	return t
}

func (x *lpmLookup) find(p *Packet, key []uint64) *entry {
	if x.bits > maxTrieBits {
		return x.findLong(p, key)
	}
	t := x.one
	if t == nil {
		if cap(p.wide) < len(key) {
			p.wide = make([]uint64, len(key))
		}
		t, _ = x.tries.get(x.others(key, p.wide[:len(key)]), &p.kbuf)
		if t == nil {
			return nil
		}
	}
	e, _ := t.Lookup(x.addr(key))
	return e
}

func (x *lpmLookup) findLong(p *Packet, key []uint64) *entry {
	if cap(p.wide) < len(key) {
		p.wide = make([]uint64, len(key))
	}
	k := p.wide[:len(key)]
	for _, t := range x.long {
		for i := range k {
			k[i] = key[i] & t.mask[i]
		}
		if e, ok := t.m.get(k, &p.kbuf); ok {
			return e
		}
	}
	return nil
}

func (x *lpmLookup) table(length int, create bool) *prefixTable {
	i, ok := slices.BinarySearchFunc(x.long, length, func(t *prefixTable, l int) int { return cmp.Compare(l, t.length) })
	if ok {
		return x.long[i]
	}
	if !create {
		return nil
	}
	t := &prefixTable{length: length, mask: make([]uint64, x.spec.limbs), m: newKeyMap[*entry](x.spec.limbs)}
	pm := make([]uint64, (x.bits+63)/64)
	prefixMask(pm, x.bits, length)
	place(t.mask, pm, x.at)
	for i, v := range x.exact {
		t.mask[i] |= v
	}
	x.long = slices.Insert(x.long, i, t)
	return t
}

func (x *lpmLookup) prefix(e *entry) netip.Prefix {
	return netip.PrefixFrom(x.addr(e.value), e.prefix)
}

func (x *lpmLookup) same(e *entry) *entry {
	if x.bits > maxTrieBits {
		if t := x.table(e.prefix, false); t != nil {
			var buf []byte
			old, _ := t.m.get(e.value, &buf)
			return old
		}
		return nil
	}
	t := x.trie(e.value, false)
	if t == nil {
		return nil
	}
	old, _ := t.Get(x.prefix(e))
	return old
}

func (x *lpmLookup) add(e *entry) {
	if x.bits > maxTrieBits {
		x.table(e.prefix, true).m.put(e.value, e)
		return
	}
	x.trie(e.value, true).Insert(x.prefix(e), e)
}

func (x *lpmLookup) remove(e *entry) {
	if x.bits > maxTrieBits {
		x.table(e.prefix, true).m.del(e.value)
		return
	}
	t := x.trie(e.value, true)
	t.Delete(x.prefix(e))
	if x.tries != nil && t.Size() == 0 {
		x.tries.del(x.others(e.value, make([]uint64, len(e.value))))
	}
}
