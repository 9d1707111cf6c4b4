package match

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// wordMap maps words to non-nil pointers by open addressing with linear probing. It is at most
// half full. A lookup, which every packet does, takes less than half of a built-in map's time.
// Growing takes several times as long, but no packet waits for it. The hash is seeded, because
// senders of packets can choose the keys through a learning controller.
type wordMap[V any] struct {
	slots []wordSlot[V] // length a power of two, or zero
	n     int
	shift uint8 // 64 − log2 of the number of slots
	seed  uint64
}

type wordSlot[V any] struct {
	key uint64
	val *V // nil in a free slot
}

// home returns the first slot to probe for a key. It folds the product, so that all bits of the
// key count (Yi Wang, wyhash).
func (m *wordMap[V]) home(k uint64) int {
	hi, lo := bits.Mul64(k^m.seed, 0x9e3779b97f4a7c15)
	return int((hi ^ lo) * 0xd6e8feb86659fd93 >> m.shift)
}

// get returns the value of a key, or nil if the map does not have the key.
func (m *wordMap[V]) get(k uint64) *V {
	if m.n == 0 {
		return nil
	}
	mask := len(m.slots) - 1
	for i := m.home(k); ; i++ {
		s := &m.slots[i&mask]
		if s.val == nil || s.key == k {
			return s.val
		}
	}
}

func (m *wordMap[V]) put(k uint64, v *V) {
	if 2*(m.n+1) > len(m.slots) {
		m.grow()
	}
	mask := len(m.slots) - 1
	for i := m.home(k); ; i++ {
		s := &m.slots[i&mask]
		if s.val == nil {
			*s = wordSlot[V]{k, v}
			m.n++
			return
		}
		if s.key == k {
			s.val = v
			return
		}
	}
}

func (m *wordMap[V]) grow() {
	old := m.slots
	size := max(8, 2*len(old))
	m.slots, m.n = make([]wordSlot[V], size), 0
	clear(m.slots) // writing first saves the kernel's second page fault
	m.shift = uint8(64 - bits.TrailingZeros(uint(size)))
	m.seed = rand.Uint64()
	for i := range old {
		if old[i].val != nil {
			m.put(old[i].key, old[i].val)
		}
	}
}

// del removes a key and closes the gap, because a search ends at a free slot.
func (m *wordMap[V]) del(k uint64) {
	if m.n == 0 {
		return
	}
	mask := len(m.slots) - 1
	i := m.home(k) & mask
	for ; m.slots[i].key != k || m.slots[i].val == nil; i = (i + 1) & mask {
		if m.slots[i].val == nil {
			return
		}
	}
	m.n--
	for j := (i + 1) & mask; m.slots[j].val != nil; j = (j + 1) & mask {
		// The value at j may move to the gap at i unless its home lies between them.
		if home := m.home(m.slots[j].key) & mask; (j-home)&mask >= (j-i)&mask {
			m.slots[i] = m.slots[j]
			i = j
		}
	}
	m.slots[i] = wordSlot[V]{}
}

func (m *wordMap[V]) each(f func(*V)) {
	for i := range m.slots {
		if m.slots[i].val != nil {
			f(m.slots[i].val)
		}
	}
}

// keyMap maps packed keys of a fixed number of words to pointers. Short keys are compared as
// words, others as strings of bytes.
type keyMap[V any] struct {
	words int
	short wordMap[V]
	long  map[string]*V
}

func newKeyMap[V any](words int) *keyMap[V] {
	return &keyMap[V]{words: words, long: map[string]*V{}}
}

func wide(k []uint64, buf []byte) []byte {
	buf = buf[:0]
	for _, v := range k {
		buf = binary.LittleEndian.AppendUint64(buf, v)
	}
	return buf
}

// get looks k up. buf is scratch memory for long keys and may grow.
func (m *keyMap[V]) get(k []uint64, buf *[]byte) *V {
	if m.words == 1 {
		return m.short.get(k[0])
	}
	*buf = wide(k, *buf)
	return m.long[string(*buf)]
}

func (m *keyMap[V]) put(k []uint64, v *V) {
	if m.words == 1 {
		m.short.put(k[0], v)
	} else {
		m.long[string(wide(k, nil))] = v
	}
}

func (m *keyMap[V]) del(k []uint64) {
	if m.words == 1 {
		m.short.del(k[0])
	} else {
		delete(m.long, string(wide(k, nil)))
	}
}

// each calls f for every value.
func (m *keyMap[V]) each(f func(*V)) {
	m.short.each(f)
	for _, v := range m.long {
		f(v)
	}
}
