package pipeline

import (
	"encoding/binary"
	"fmt"

	"github.com/headgate/headgate/internal/canon"
)

// Uint returns v as a byte string for builders.
func Uint(v uint64) []byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], v)
	return canon.Of(b[:])
}

// value checks that b fits a field of that many bits and returns its canonical form.
func value(what string, b []byte, width int32) ([]byte, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%s: the value is empty", what)
	}
	c := canon.Of(b)
	if n := canon.Bits(c); width > 0 && n > int(width) {
		return nil, fmt.Errorf("%s: the value 0x%x has %d bits, want at most %d", what, c, n, width)
	}
	return append([]byte(nil), c...), nil
}

// padded returns b left-padded to the bytes of a field of that many bits.
func padded(b []byte, width int32) []byte {
	out := make([]byte, (int(width)+7)/8)
	if len(b) > len(out) {
		b = b[len(b)-len(out):]
	}
	copy(out[len(out)-len(b):], b)
	return out
}

// ones returns a field of that many bits whose high n bits are set.
func ones(width, n int32) []byte {
	out := make([]byte, (int(width)+7)/8)
	for i := int32(0); i < n; i++ {
		bit := width - 1 - i // from the least significant
		out[len(out)-1-int(bit/8)] |= 1 << (bit % 8)
	}
	return out
}

// and returns a & mask, both padded to one length.
func and(a, mask []byte) []byte {
	out := make([]byte, len(a))
	for i := range a {
		out[i] = a[i] & mask[i]
	}
	return out
}

// Number returns a byte string's value; over 64 bits it is cut to the low ones.
func Number(b []byte) uint64 {
	if len(b) > 8 {
		b = b[len(b)-8:]
	}
	var v uint64
	for _, x := range b {
		v = v<<8 | uint64(x)
	}
	return v
}
