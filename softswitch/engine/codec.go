package engine

import (
	"encoding/binary"
)

// headerCodec reads and writes headers of one type. A field of up to 57 bits is one load
// of eight bytes when it is read; for writing, fields are gathered in groups of at most
// 64 bits that start and end on byte boundaries, so that a group is one store. What does
// not fit is handled bit by bit.
type headerCodec struct {
	loads  []loadOp
	stores []storeOp
	slow   bool // the length is variable, or no groups can be formed
	fields []field
}

// loadOp reads one field: eight bytes at off, shifted to the right and masked.
type loadOp struct {
	mask  uint64
	word  uint32
	off   uint16
	shift uint8
}

// storeOp adds one field to the group's value, which is kept at the top of 64 bits, and
// stores the group if the field is its last.
type storeOp struct {
	word  uint32
	off   uint16
	shift uint8
	bytes uint8 // 0: the group goes on
	whole bool  // eight bytes may be written, what is too much is overwritten later
}

func newCodec(t *headerType) *headerCodec {
	c := &headerCodec{fields: t.fields}
	if t.vl >= 0 || t.bits > 1<<16 {
		c.slow = true
		return c
	}
	list := pieces(t)
	for _, f := range list {
		off, skip := f.bit/8, f.bit%8
		if skip+f.bits > 64 {
			c.slow = true
			return c
		}
		c.loads = append(c.loads, loadOp{lastMask(f.bits), uint32(f.word), uint16(off), uint8(64 - skip - f.bits)})
	}
	first := 0
	for i, f := range list {
		start := list[first].bit
		end := f.bit + f.bits
		if end-start > 64 {
			c.slow = true // the group has no byte boundary in 64 bits
			return c
		}
		s := storeOp{word: uint32(f.word), off: uint16(start / 8), shift: uint8(64 - (end - start))}
		next := end - start + 65
		if i+1 < len(list) {
			next = end - start + list[i+1].bits
		}
		if (end-start)%8 == 0 && (end-start >= 32 || next > 64) {
			s.bytes = uint8((end - start) / 8)
			s.whole = start/8+8 <= t.bits/8
			first = i + 1
		}
		c.stores = append(c.stores, s)
	}
	return c
}

// piece is a field of at most 64 bits, or one word of a wider one.
type piece struct{ word, bit, bits int }

// pieces lists the fields of a header type in the order of the wire.
func pieces(t *headerType) []piece {
	var list []piece
	for i := range t.fields {
		f := &t.fields[i]
		bit := f.bit
		for k := f.words - 1; k >= 0; k-- {
			n := max(0, min(64, f.bits-64*k))
			list = append(list, piece{f.word + k, bit, n})
			bit += n
		}
	}
	return list
}

// extract reads a header of fixed length from b, which has slack bytes behind it, into w.
func (c *headerCodec) extract(w []uint64, b []byte) {
	if c.slow {
		bit := 0
		for i := range c.fields {
			f := &c.fields[i]
			readField(w[f.word:f.word+f.words], b, bit, f.bits)
			bit += f.bits
		}
		return
	}
	load(c.loads, w, b)
}

// load reads fields from b, which has slack bytes behind the header, into w.
func load(loads []loadOp, w []uint64, b []byte) {
	for i := range loads {
		o := &loads[i]
		w[o.word] = binary.BigEndian.Uint64(b[o.off:]) >> (o.shift & 63) & o.mask
	}
}

// deparse writes a header of fixed length to b.
func (c *headerCodec) deparse(w []uint64, b []byte) {
	if c.slow {
		bit := 0
		for i := range c.fields {
			f := &c.fields[i]
			writeField(b, bit, w[f.word:f.word+f.words], f.bits)
			bit += f.bits
		}
		return
	}
	storeFields(c.stores, w, b)
}

// patches is the stores of the fields of a header type that are chosen, and of neighbors
// that share bytes with them, whose words it returns as well.
func (c *headerCodec) patches(t *headerType, chosen func(word int) bool) (list []storeOp, words []int) {
	all := pieces(t)
	for i := 0; i < len(all); i++ {
		if all[i].bits == 0 || !chosen(all[i].word) {
			continue
		}
		first := i
		for all[first].bit%8 != 0 {
			first--
		}
		start, end := all[first].bit, all[i].bit+all[i].bits
		for end%8 != 0 {
			i++
			end += all[i].bits
		}
		for _, f := range all[first : i+1] {
			shift := 64 - (f.bit + f.bits - start)
			list = append(list, storeOp{word: uint32(f.word), off: uint16(start / 8), shift: uint8(shift)})
			words = append(words, f.word)
		}
		list[len(list)-1].bytes = uint8((end - start) / 8)
	}
	return list, words
}

// storeFields writes groups of fields to b.
func storeFields(stores []storeOp, w []uint64, b []byte) {
	var v uint64
	for i := range stores {
		o := &stores[i]
		v |= w[o.word] << (o.shift & 63)
		switch {
		case o.bytes == 0:
			continue
		case o.whole:
			binary.BigEndian.PutUint64(b[o.off:], v)
		default:
			storeTop(b[o.off:], v, int(o.bytes))
		}
		v = 0
	}
}

// storeTop writes the n ≤ 8 most significant bytes of v.
func storeTop(b []byte, v uint64, n int) {
	switch n {
	case 2:
		binary.BigEndian.PutUint16(b, uint16(v>>48))
	case 4:
		binary.BigEndian.PutUint32(b, uint32(v>>32))
	case 6:
		binary.BigEndian.PutUint32(b, uint32(v>>32))
		binary.BigEndian.PutUint16(b[4:], uint16(v>>16))
	case 8:
		binary.BigEndian.PutUint64(b, v)
	default:
		for i := range n {
			b[i] = byte(v >> (56 - 8*i))
		}
	}
}

// readBits reads n ≤ 64 bits at bit offset off.
func readBits(b []byte, off, n int) uint64 {
	var v uint64
	for n > 0 {
		used := off % 8
		k := min(8-used, n) // bits that come from this byte
		v = v<<k | uint64(b[off/8]>>(8-used-k)&(1<<k-1))
		off += k
		n -= k
	}
	return v
}

// readField reads a field of any width into words, least significant first.
func readField(dst []uint64, b []byte, off, bits int) {
	for k := range dst {
		n := min(64, bits-64*k)
		if n <= 0 {
			dst[k] = 0
			continue
		}
		dst[k] = readBits(b, off+bits-64*k-n, n)
	}
}

// writeBits writes the n ≤ 64 low bits of v at bit offset off and keeps the bits around.
func writeBits(b []byte, off int, v uint64, n int) {
	for n > 0 {
		i, used := off/8, off%8
		k := min(8-used, n) // bits that go to this byte
		part := byte(v>>(n-k)) & (1<<k - 1)
		sh := 8 - used - k
		b[i] = b[i]&^((1<<k-1)<<sh) | part<<sh
		off += k
		n -= k
	}
}

// writeField writes a field of any width.
func writeField(b []byte, off int, src []uint64, bits int) {
	for k := len(src) - 1; k >= 0; k-- {
		n := min(64, bits-64*k)
		if n <= 0 {
			continue
		}
		writeBits(b, off, src[k], n)
		off += n
	}
}

// bitWriter gathers fields of any width, without padding between them. The last byte is
// padded with zeros.
type bitWriter struct {
	b []byte
	n int // bits
}

func (w *bitWriter) reset() { w.b, w.n = w.b[:0], 0 }

func (w *bitWriter) grow(bits int) {
	need := (w.n + bits + 7) / 8
	for len(w.b) < need {
		w.b = append(w.b, 0)
	}
}

// word appends the n ≤ 64 low bits of v.
func (w *bitWriter) word(v uint64, n int) {
	if w.n%8 == 0 && n%8 == 0 {
		switch n {
		case 32:
			w.b = binary.BigEndian.AppendUint32(w.b, uint32(v))
		case 16:
			w.b = binary.BigEndian.AppendUint16(w.b, uint16(v))
		case 8:
			w.b = append(w.b, byte(v))
		default:
			for s := n - 8; s >= 0; s -= 8 {
				w.b = append(w.b, byte(v>>s))
			}
		}
		w.n += n
		return
	}
	w.grow(n)
	writeBits(w.b, w.n, v, n)
	w.n += n
}

// field appends a field of any width.
func (w *bitWriter) field(src []uint64, bits int) {
	for k := len(src) - 1; k >= 0; k-- {
		if n := min(64, bits-64*k); n > 0 {
			w.word(src[k], n)
		}
	}
}

// bytes appends whole bytes.
func (w *bitWriter) bytes(b []byte) {
	if w.n%8 == 0 {
		w.b = append(w.b, b...)
		w.n += 8 * len(b)
		return
	}
	for _, x := range b {
		w.word(uint64(x), 8)
	}
}
