package phv

import "encoding/binary"

// Slack is the number of bytes that must follow a header in memory, because a load always reads
// eight bytes.
const Slack = 16

// Load reads one field: it reads the eight bytes at Off, shifts them right and masks them. It
// serves fields of up to 57 bits, and longer ones that begin on a byte boundary.
type Load struct {
	Mask  uint64
	Word  uint32 // counted from the header's base, or from the vector's start in a list for one header
	Off   uint16
	Shift uint8
}

// Store adds one field to a group. The group's value is at the top of 64 bits. If the field is the
// group's last, Store writes the group at once: a group has at most 64 bits, and begins and ends
// on byte boundaries.
type Store struct {
	Word  uint32 // see Load
	Off   uint16
	Shift uint8
	Bytes uint8 // 0: the group continues; 8 also if later stores overwrite the excess
}

// compile computes the loads and stores of a type. A type is Slow if it has variable length or its
// fields form no groups.
func (t *Type) compile() {
	list := pieces(t)
	t.Slow = t.VL >= 0 || t.Bits > 1<<16 || t.Bits%8 != 0
	first := 0
	for i, f := range list {
		skip, start, end := f.bit%8, list[first].bit, f.bit+f.bits
		if t.Slow = t.Slow || skip+f.bits > 64 || end-start > 64; t.Slow {
			return
		}
		t.Loads = append(t.Loads, Load{LastMask(f.bits), uint32(f.word), uint16(f.bit / 8), uint8(64 - skip - f.bits)})
		s := Store{Word: uint32(f.word), Off: uint16(start / 8), Shift: uint8(64 - (end - start))}
		next := end - start + 65
		if i+1 < len(list) {
			next = end - start + list[i+1].bits
		}
		if (end-start)%8 == 0 && (end-start >= 32 || next > 64) {
			if s.Bytes = uint8((end - start) / 8); start/8+8 <= t.Bits/8 {
				s.Bytes = 8
			}
			first = i + 1
		}
		t.Stores = append(t.Stores, s)
	}
}

// piece is a field of at most 64 bits, or one word of a wider one.
type piece struct{ word, bit, bits int }

// pieces lists a header type's fields in wire order.
func pieces(t *Type) []piece {
	var list []piece
	for i := range t.Fields {
		f := &t.Fields[i]
		bit := f.Bit
		for k := f.Words - 1; k >= 0; k-- {
			n := max(0, min(64, f.Bits-64*k))
			list = append(list, piece{f.Word + k, bit, n})
			bit += n
		}
	}
	return list
}

// Extract reads a header from b, with n bytes for its variable-length field.
func (v *Vector) Extract(h *Header, b []byte, n int) {
	if !h.Type.Slow {
		LoadFields(h.Type.Loads, v.Words(h), b)
		return
	}
	bit := 0
	for i := range h.Type.Fields {
		f := &h.Type.Fields[i]
		if !f.Variable {
			ReadField(v.Field(Ref{h, f}), b, bit, f.Bits)
			bit += f.Bits
			continue
		}
		v.W[h.Base+f.Word] = uint64(8 * n)
		for k := range n {
			v.VL[h.VLOff+k] = byte(ReadBits(b, bit+8*k, 8))
		}
		bit += 8 * n
	}
}

// Deparse writes a header to b.
func (v *Vector) Deparse(h *Header, b []byte) {
	if !h.Type.Slow {
		StoreFields(h.Type.Stores, v.Words(h), b)
		return
	}
	bit := 0
	for i := range h.Type.Fields {
		f := &h.Type.Fields[i]
		if !f.Variable {
			WriteField(b, bit, v.Field(Ref{h, f}), f.Bits)
			bit += f.Bits
			continue
		}
		for _, x := range v.Variable(Ref{h, f}) {
			WriteBits(b, bit, uint64(x), 8)
			bit += 8
		}
	}
}

// LoadFields reads fields from b into words. b must have Slack bytes behind the header.
func LoadFields(loads []Load, w []uint64, b []byte) {
	for i := range loads {
		o := &loads[i]
		at := uint(o.Off)
		w[o.Word] = binary.BigEndian.Uint64(b[at:at+8]) >> (o.Shift & 63) & o.Mask
	}
}

// Patches returns the stores of the chosen fields of a header type, and of the neighbors that
// share bytes with them. It also returns the words of all these fields.
func (t *Type) Patches(chosen func(word int) bool) (list []Store, words []int) {
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
			list = append(list, Store{Word: uint32(f.word), Off: uint16(start / 8), Shift: uint8(shift)})
			words = append(words, f.word)
		}
		list[len(list)-1].Bytes = uint8((end - start) / 8)
	}
	return list, words
}

// StoreFields writes groups of fields to b.
func StoreFields(stores []Store, w []uint64, b []byte) {
	var v uint64
	for i := range stores {
		o := &stores[i]
		v |= w[o.Word] << (o.Shift & 63)
		at := uint(o.Off)
		switch o.Bytes {
		case 0:
			continue
		case 1:
			b[at] = byte(v >> 56)
		case 2:
			binary.BigEndian.PutUint16(b[at:at+2], uint16(v>>48))
		case 4:
			binary.BigEndian.PutUint32(b[at:at+4], uint32(v>>32))
		case 6:
			c := b[at : at+6]
			binary.BigEndian.PutUint32(c, uint32(v>>32))
			binary.BigEndian.PutUint16(c[4:], uint16(v>>16))
		case 8:
			binary.BigEndian.PutUint64(b[at:at+8], v)
		default:
			for i := range uint(o.Bytes) {
				b[at+i] = byte(v >> (56 - 8*i))
			}
		}
		v = 0
	}
}
