package bytestring

import (
	"bytes"
	"encoding/binary"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// The rows of the specification's tables of valid and invalid encodings.
func TestSpecificationTables(t *testing.T) {
	for _, c := range []struct {
		width int
		in    string
		canon string // "" means rejected
	}{
		{8, "\x63", "\x63"},
		{16, "\x00\x63", "\x63"},
		{16, "\x63", "\x63"},
		{16, "\x30\x64", "\x30\x64"},
		{16, "\x00\x30\x64", "\x30\x64"},
		{12, "\x00\x63", "\x63"},
		{12, "\x00\x00\x63", "\x63"},
		{8, "\x00", "\x00"},
		{8, "\x01\x63", ""},
		{8, "", ""},
		{16, "\x01\x00\x63", ""},
		{12, "\x10\x63", ""},
		{12, "\x01\x00\x63", ""},
		{12, "\x00\x40\x63", ""},
	} {
		if ok := Fits([]byte(c.in), c.width); ok != (c.canon != "") {
			t.Errorf("Fits(%x, %d) = %v", c.in, c.width, ok)
		} else if got := Canonical([]byte(c.in)); ok && string(got) != c.canon {
			t.Errorf("Canonical(%x) = %x, want %x", c.in, got, c.canon)
		}
	}
	for _, c := range []struct {
		width int
		in    string
		canon string
	}{
		{8, "\x63", "\x63"},
		{8, "\x9d", "\x9d"},
		{8, "\xff\x9d", "\x9d"},
		{12, "\xfd\x1d", "\xfd\x1d"},
		{16, "\x00\x00", "\x00"},
		{16, "\x00", "\x00"},
		{8, "\x00\x9d", ""},
		{12, "\x8d\x1d", ""},
		{16, "", ""},
	} {
		if ok := FitsSigned([]byte(c.in), c.width); ok != (c.canon != "") {
			t.Errorf("FitsSigned(%x, %d) = %v", c.in, c.width, ok)
		} else if got := CanonicalSigned([]byte(c.in)); ok && string(got) != c.canon {
			t.Errorf("CanonicalSigned(%x) = %x, want %x", c.in, got, c.canon)
		}
	}
}

func TestAgainstBigIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "a")
		b := rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "b")
		width := rapid.IntRange(1, 170).Draw(t, "width")
		x, y := new(big.Int).SetBytes(a), new(big.Int).SetBytes(b)
		if got := Bits(a); got != x.BitLen() {
			t.Fatalf("Bits(%x) = %d", a, got)
		}
		if got := Compare(a, b); got != x.Cmp(y) {
			t.Fatalf("Compare(%x, %x) = %d", a, b, got)
		}
		if got := Within(a, b); got != (new(big.Int).AndNot(x, y).Sign() == 0) {
			t.Fatalf("Within(%x, %x) = %v", a, b, got)
		}
		if got := LowBitsZero(a, width); got != (x.Sign() == 0 || x.TrailingZeroBits() >= uint(width)) {
			t.Fatalf("LowBitsZero(%x, %d) = %v", a, width, got)
		}
		top := new(big.Int).Lsh(big.NewInt(1), uint(width))
		top.Sub(top, big.NewInt(1))
		if got := IsMax(a, width); got != (x.Cmp(top) == 0) {
			t.Fatalf("IsMax(%x, %d) = %v", a, width, got)
		}
		if !IsMax(top.Bytes(), width) {
			t.Fatalf("IsMax(%x, %d) = false", top.Bytes(), width)
		}
		// A signed number survives the conversion to its unsigned form and back.
		if s := CanonicalSigned(a); FitsSigned(s, width) && !bytes.Equal(SignExtend(Truncate(s, width), width), s) {
			t.Fatalf("signed %x, width %d: %x, %x", s, width, Truncate(s, width), SignExtend(Truncate(s, width), width))
		}
		v := rapid.Uint64().Draw(t, "v")
		if got, ok := Uint(binary.BigEndian.AppendUint64(nil, v)); !ok || got != v {
			t.Fatalf("Uint of %d = %d, %v", v, got, ok)
		}
	})
}
