package match

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/gaissmai/bart"
)

// Index finds the entries of one table. Any number of goroutines may call Find at a time. Add and
// Remove must run alone.
type Index interface {
	// Find returns the entry that a packed key matches, nil for none.
	Find(key []uint64, s *Scratch) *Entry
	// Same finds the entry with the same key (and priority, where there are priorities).
	Same(e *Entry) *Entry
	Add(e *Entry)
	Remove(e *Entry)
}

// Scratch is memory that Find needs. It belongs to one reader at a time.
type Scratch struct {
	words []uint64
	bytes []byte
}

func (s *Scratch) buffer(n int) []uint64 {
	if cap(s.words) < n {
		s.words = make([]uint64, n)
	}
	return s.words[:n]
}

func (s *Scratch) masked(key, mask []uint64) []uint64 {
	w := s.buffer(len(key))
	for i := range w {
		w[i] = key[i] & mask[i]
	}
	return w
}

// directBits is the largest width of an exact key that is used as the index of an array.
const directBits = 12

// maxTrieBits is the largest width of an LPM field that a trie of IP addresses can hold.
const maxTrieBits = 128

// NewIndex returns the fastest index for a key.
func NewIndex(k *Key) Index {
	switch {
	case k.Kind == LPM && k.Words == 1:
		return &lengths{key: k}
	case k.Kind == LPM && k.Fields[k.lpm].Bits <= maxTrieBits:
		return newPrefixes(k)
	case k.Kind == Exact && k.Bits <= directBits:
		return make(direct, 1<<k.Bits)
	case k.Kind == Exact:
		return exact{newKeyMap[Entry](k.Words)}
	}
	// A prefix of a wide field becomes a mask, and the longer prefix has the higher priority.
	return &tuples{words: k.Words, byMask: newKeyMap[tuple](k.Words)}
}

// direct is an array with an element for every key.
type direct []*Entry

func (x direct) Find(key []uint64, _ *Scratch) *Entry { return x[key[0]&uint64(len(x)-1)] }
func (x direct) Same(e *Entry) *Entry                 { return x[e.value()[0]] }
func (x direct) Add(e *Entry)                         { x[e.value()[0]] = e }
func (x direct) Remove(e *Entry)                      { x[e.value()[0]] = nil }

// exact is a hash table.
type exact struct{ m *keyMap[Entry] }

func (x exact) Find(key []uint64, s *Scratch) *Entry { return x.m.get(key, &s.bytes) }
func (x exact) Same(e *Entry) *Entry                 { return x.m.get(e.value(), new([]byte)) }
func (x exact) Add(e *Entry)                         { x.m.put(e.value(), e) }
func (x exact) Remove(e *Entry)                      { x.m.del(e.value()) }

// prefixes has one trie of prefixes for each value of the exact fields. A prefix is moved to the
// top of an IPv4 or IPv6 address, whichever is wide enough.
type prefixes struct {
	bits, at int
	exact    []uint64            // mask of the other fields
	one      *bart.Table[*Entry] // the only trie, when the key has no other fields
	tries    *keyMap[bart.Table[*Entry]]
}

func newPrefixes(k *Key) *prefixes {
	x := &prefixes{bits: k.Fields[k.lpm].Bits, at: k.At[k.lpm]}
	if len(k.Fields) == 1 {
		x.one = new(bart.Table[*Entry])
		return x
	}
	x.exact, x.tries = make([]uint64, k.Words), newKeyMap[bart.Table[*Entry]](k.Words)
	for i, f := range k.Fields {
		if i != k.lpm {
			full := make([]uint64, (f.Bits+63)/64)
			prefixMask(full, f.Bits, f.Bits)
			place(x.exact, full, k.At[i])
		}
	}
	return x
}

// addr returns the prefix field of a packed key as an address.
func (x *prefixes) addr(key []uint64) netip.Addr {
	var v [2]uint64
	fetch(v[:(x.bits+63)/64], key, x.at, x.bits)
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

func (x *prefixes) prefix(e *Entry) netip.Prefix {
	return netip.PrefixFrom(x.addr(e.value()), e.priority)
}

// trie returns the trie for a key's exact fields, or nil if there is none.
func (x *prefixes) trie(key []uint64, s *Scratch) *bart.Table[*Entry] {
	if x.one != nil {
		return x.one
	}
	return x.tries.get(s.masked(key, x.exact), &s.bytes)
}

func (x *prefixes) Find(key []uint64, s *Scratch) *Entry {
	t := x.one
	if t == nil {
		if t = x.trie(key, s); t == nil {
			return nil
		}
	}
	e, _ := t.Lookup(x.addr(key))
	return e
}

func (x *prefixes) Same(e *Entry) *Entry {
	t := x.trie(e.value(), new(Scratch))
	if t == nil {
		return nil
	}
	old, _ := t.Get(x.prefix(e))
	return old
}

func (x *prefixes) Add(e *Entry) {
	var s Scratch
	t := x.trie(e.value(), &s)
	if t == nil {
		t = new(bart.Table[*Entry])
		x.tries.put(s.masked(e.value(), x.exact), t)
	}
	t.Insert(x.prefix(e), e)
}

func (x *prefixes) Remove(e *Entry) {
	var s Scratch
	t := x.trie(e.value(), &s)
	t.Delete(x.prefix(e))
	if x.one == nil && t.Size() == 0 {
		x.tries.del(s.masked(e.value(), x.exact))
	}
}

// fewLengths is the number of prefix lengths up to which hash tables are faster than a trie.
const fewLengths = 4

// lengths holds a hash table for each prefix length, the longest first, for keys of one word. With
// more than fewLengths lengths it turns into a trie.
type lengths struct {
	key  *Key
	list []length
	trie *prefixes // nil until there are more than fewLengths lengths
}

type length struct {
	mask uint64 // mask of the prefix and the exact fields, the same for all entries
	bits int
	m    wordMap[Entry]
}

func (x *lengths) Find(key []uint64, s *Scratch) *Entry {
	if x.trie != nil {
		return x.trie.Find(key, s)
	}
	for i := range x.list {
		l := &x.list[i]
		if e := l.m.get(key[0] & l.mask); e != nil {
			return e
		}
	}
	return nil
}

// at returns the index of a prefix length, or the index at which it would be inserted.
func (x *lengths) at(bits int) (int, bool) {
	return slices.BinarySearchFunc(x.list, bits, func(l length, bits int) int { return bits - l.bits })
}

func (x *lengths) Same(e *Entry) *Entry {
	if x.trie != nil {
		return x.trie.Same(e)
	}
	i, ok := x.at(e.priority)
	if !ok {
		return nil
	}
	return x.list[i].m.get(e.short[0])
}

func (x *lengths) Add(e *Entry) {
	i, ok := x.at(e.priority)
	switch {
	case x.trie != nil:
		x.trie.Add(e)
		return
	case !ok && len(x.list) == fewLengths:
		x.trie = newPrefixes(x.key)
		for i := range x.list {
			x.list[i].m.each(x.trie.Add)
		}
		x.list = nil
		x.trie.Add(e)
		return
	case !ok:
		x.list = slices.Insert(x.list, i, length{mask: e.short[1], bits: e.priority})
	}
	x.list[i].m.put(e.short[0], e)
}

func (x *lengths) Remove(e *Entry) {
	if x.trie != nil {
		x.trie.Remove(e)
		return
	}
	i, _ := x.at(e.priority)
	x.list[i].m.del(e.short[0])
	if x.list[i].m.n == 0 {
		x.list = slices.Delete(x.list, i, i+1)
	}
}
