package engine

import "encoding/binary"

// keyMap maps packed keys of a fixed number of limbs to values. Short keys are compared
// as machine words.
type keyMap[V any] struct {
	limbs int
	m1    wordMap[V]
	m2    map[[2]uint64]V
	m4    map[[4]uint64]V
	ms    map[string]V
}

func newKeyMap[V any](limbs int) *keyMap[V] {
	m := &keyMap[V]{limbs: limbs}
	switch {
	case limbs <= 1:
	case limbs == 2:
		m.m2 = map[[2]uint64]V{}
	case limbs <= 4:
		m.m4 = map[[4]uint64]V{}
	default:
		m.ms = map[string]V{}
	}
	return m
}

// four pads a key of three or four limbs.
func four(k []uint64) (f [4]uint64) {
	copy(f[:], k)
	return f
}

// wideKey writes a long key as bytes to buf.
func wideKey(k []uint64, buf []byte) []byte {
	buf = buf[:0]
	for _, v := range k {
		buf = binary.LittleEndian.AppendUint64(buf, v)
	}
	return buf
}

// get looks k up; buf is scratch space for long keys and returned, possibly grown.
func (m *keyMap[V]) get(k []uint64, buf *[]byte) (v V, ok bool) {
	switch {
	case m.limbs <= 1:
		return m.m1.get(k[0])
	case m.limbs == 2:
		v, ok = m.m2[[2]uint64{k[0], k[1]}]
	case m.limbs <= 4:
		v, ok = m.m4[four(k)]
	default:
		*buf = wideKey(k, *buf)
		v, ok = m.ms[string(*buf)]
	}
	return v, ok
}

func (m *keyMap[V]) put(k []uint64, v V) {
	switch {
	case m.limbs <= 1:
		m.m1.put(k[0], v)
	case m.limbs == 2:
		m.m2[[2]uint64{k[0], k[1]}] = v
	case m.limbs <= 4:
		m.m4[four(k)] = v
	default:
		m.ms[string(wideKey(k, nil))] = v
	}
}

func (m *keyMap[V]) del(k []uint64) {
	switch {
	case m.limbs <= 1:
		m.m1.del(k[0])
	case m.limbs == 2:
		delete(m.m2, [2]uint64{k[0], k[1]})
	case m.limbs <= 4:
		delete(m.m4, four(k))
	default:
		delete(m.ms, string(wideKey(k, nil)))
	}
}

// each calls f for every value.
func (m *keyMap[V]) each(f func(V)) {
	m.m1.each(f)
	for _, v := range m.m2 {
		f(v)
	}
	for _, v := range m.m4 {
		f(v)
	}
	for _, v := range m.ms {
		f(v)
	}
}
