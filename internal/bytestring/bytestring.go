// Package bytestring works on P4Runtime's byte strings (specification 1.4, "Bytestrings"):
// unsigned big-endian numbers of any width, canonical when no shorter string has the same
// value. Zero is the one byte 0; the empty string is not a number.
package bytestring

import (
	"bytes"
	"cmp"
	"math/big"
	"math/bits"
)

// Canonical returns the canonical form of b, sharing its memory. An empty string stays empty.
func Canonical(b []byte) []byte {
	for len(b) > 1 && b[0] == 0 {
		b = b[1:]
	}
	return b
}

// Bits returns how many bits the value of b needs; 0 for zero.
func Bits(b []byte) int {
	for i, x := range b {
		if x != 0 {
			return bits.Len8(x) + 8*(len(b)-i-1)
		}
	}
	return 0
}

// Fits reports whether b is a number of at most width bits.
func Fits(b []byte, width int) bool { return len(b) > 0 && Bits(b) <= width }

// IsZero reports whether the value is zero.
func IsZero(b []byte) bool { return Bits(b) == 0 }

// Compare orders two numbers by value: -1, 0 or +1.
func Compare(a, b []byte) int {
	a, b = Canonical(a), Canonical(b)
	return cmp.Or(cmp.Compare(len(a), len(b)), bytes.Compare(a, b))
}

// Within reports whether every bit set in value is set in mask too.
func Within(value, mask []byte) bool {
	v := number(value)
	return v.AndNot(v, number(mask)).Sign() == 0
}

// LowBitsZero reports whether the n least significant bits of b are zero.
func LowBitsZero(b []byte, n int) bool {
	return IsZero(b) || number(b).TrailingZeroBits() >= uint(n)
}

// IsMax reports whether b is the largest number of width bits.
func IsMax(b []byte, width int) bool {
	v := number(b)
	return v.BitLen() == width && v.Add(v, big.NewInt(1)).BitLen() > width
}

func number(b []byte) *big.Int { return new(big.Int).SetBytes(b) }

// Uint returns the value of b, and whether it fits 64 bits.
func Uint(b []byte) (v uint64, ok bool) {
	if Bits(b) > 64 {
		return 0, false
	}
	return Low64(b), true
}

// Low64 returns the low 64 bits of b.
func Low64(b []byte) (v uint64) {
	for _, x := range b {
		v = v<<8 | uint64(x)
	}
	return v
}

// SignExtend returns the canonical form of the two's complement number of width bits that
// is held, not sign-extended, in the low bits of b.
func SignExtend(b []byte, width int) []byte {
	out := low(b, width, 0)
	if top := (width - 1) % 8; width > 0 && out[0]>>top&1 == 1 {
		out[0] |= 0xff << top
	}
	return CanonicalSigned(out)
}

// CanonicalSigned returns the canonical form of a sign-extended two's complement number.
func CanonicalSigned(b []byte) []byte {
	for len(b) > 1 && (b[0] == 0 && b[1] < 0x80 || b[0] == 0xff && b[1] >= 0x80) {
		b = b[1:]
	}
	return b
}

// FitsSigned reports whether b is a two's complement number of at most width bits.
func FitsSigned(b []byte, width int) bool {
	if len(b) == 0 {
		return false
	}
	b = CanonicalSigned(b)
	x := b[0]
	if x >= 0x80 {
		x = ^x
	}
	return bits.Len8(x)+8*(len(b)-1)+1 <= width
}

// Truncate returns the low width bits of a two's complement number, as an unsigned one.
func Truncate(b []byte, width int) []byte {
	fill := byte(0)
	if len(b) > 0 && b[0] >= 0x80 {
		fill = 0xff
	}
	return Canonical(low(b, width, fill))
}

// low returns the low width bits of b, which has bytes of fill before it, in as few bytes as hold them.
func low(b []byte, width int, fill byte) []byte {
	n := (width + 7) / 8
	out := append(bytes.Repeat([]byte{fill}, max(0, n-len(b))), b[max(0, len(b)-n):]...)
	if n > 0 {
		out[0] &= 0xff >> (8*n - width)
	}
	return out
}
