package match

import "encoding/binary"

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
