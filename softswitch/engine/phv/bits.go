package phv

import (
	"encoding/binary"
	"math/big"
)

// Words returns the number of words that hold a number of the given width in bits.
func Words(bits int) int { return (bits + 63) / 64 }

// LastMask returns the mask of the most significant word of a number of the given width in bits.
func LastMask(bits int) uint64 {
	if bits%64 == 0 && bits > 0 {
		return ^uint64(0)
	}
	return 1<<(bits%64) - 1
}

// ReadBits reads n ≤ 64 bits at bit offset off.
func ReadBits(b []byte, off, n int) uint64 {
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

// ReadField reads a field of any width into words, least significant first.
func ReadField(dst []uint64, b []byte, off, bits int) {
	for k := range dst {
		n := min(64, bits-64*k)
		if n <= 0 {
			dst[k] = 0
			continue
		}
		dst[k] = ReadBits(b, off+bits-64*k-n, n)
	}
}

// WriteBits writes the n ≤ 64 low bits of v at bit offset off and keeps the bits around them.
func WriteBits(b []byte, off int, v uint64, n int) {
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

// WriteField writes a field of any width.
func WriteField(b []byte, off int, src []uint64, bits int) {
	for k := len(src) - 1; k >= 0; k-- {
		n := min(64, bits-64*k)
		if n <= 0 {
			continue
		}
		WriteBits(b, off, src[k], n)
		off += n
	}
}

// Writer appends numbers of any width without padding between them. It pads the last byte with
// zeros.
type Writer struct {
	B    []byte
	Bits int
}

// Reset empties the writer and keeps its memory.
func (w *Writer) Reset() { w.B, w.Bits = w.B[:0], 0 }

// Append adds a number.
func (w *Writer) Append(src []uint64, bits int) {
	for k := len(src) - 1; k >= 0; k-- {
		if n := min(64, bits-64*k); n > 0 {
			w.append(src[k], n)
		}
	}
}

// append adds a number of n bits, 1 to 64. It writes eight bytes and keeps those that
// hold bits of the number.
func (w *Writer) append(v uint64, n int) {
	used := w.Bits % 8 // bits of the last byte
	if used+n > 64 {
		w.append(v>>8, n-8)
		w.append(v&0xff, 8)
		return
	}
	full := w.Bits / 8
	v <<= uint(64-used-n) & 63
	if used > 0 {
		v |= uint64(w.B[full]) << 56
	}
	w.B = binary.BigEndian.AppendUint64(w.B[:full], v)[:full+(used+n+7)/8]
	w.Bits += n
}

// AppendBytes adds whole bytes.
func (w *Writer) AppendBytes(b []byte) {
	for _, x := range b {
		w.append(uint64(x), 8)
	}
}

// PutWords writes k modulo 2^bits to the words of dst.
func PutWords(dst []uint64, k *big.Int, bits int) {
	words := k.Bits()
	negative, carry := k.Sign() < 0, uint64(1)
	n := Words(bits)
	for i := range dst[:n] {
		w := uint64(0)
		if i < len(words) {
			w = uint64(words[i])
		}
		if dst[i] = w; negative { // −k is ~k + 1; the carry passes words that are zero
			if dst[i] = ^w + carry; w != 0 {
				carry = 0
			}
		}
	}
	if n > 0 {
		dst[n-1] &= LastMask(bits)
	}
}

// PutBytes writes a big-endian number to dst, the words of a number of the given width in bits. It
// cuts a wider number and returns false.
func PutBytes(dst []uint64, b []byte, bits int) (fits bool) {
	clear(dst)
	fits = true
	for i, x := range b {
		at := 8 * (len(b) - 1 - i)
		if at >= 64*len(dst) {
			fits = fits && x == 0
			continue
		}
		dst[at/64] |= uint64(x) << (at % 64)
	}
	if last := &dst[len(dst)-1]; *last&^LastMask(bits) != 0 {
		*last &= LastMask(bits)
		fits = false
	}
	return fits
}

// Low returns k modulo 2^64.
func Low(k *big.Int) uint64 {
	var w [1]uint64
	PutWords(w[:], k, 64)
	return w[0]
}
