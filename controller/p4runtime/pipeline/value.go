package pipeline

import (
	"fmt"

	"github.com/headgate/headgate/internal/canon"
)

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

// and returns a & mask, both padded to one length.
func and(a, mask []byte) []byte {
	out := make([]byte, len(a))
	for i := range a {
		out[i] = a[i] & mask[i]
	}
	return out
}
