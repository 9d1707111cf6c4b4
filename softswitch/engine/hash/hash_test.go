package hash

import (
	"hash/crc32"
	"testing"
)

// The expected values are the check values of the CRC catalogue for "123456789" (Ross Williams,
// 1993; for xmodem and others, reveng's catalogue).
func TestNamed(t *testing.T) {
	check := []byte("123456789")
	for _, tt := range []struct {
		name string
		want uint64
	}{
		{"crc32", 0xcbf43926},
		{"crc16", 0xbb3d},
		{"crcCCITT", 0x29b1},
		{"xmodem", 0x31c3},
		{"kermit", 0x2189},
		{"modbus", 0x4b37},
		{"crc_32c", 0xe3069283},
		{"crc_32_bzip2", 0xfc891918},
		{"crc_64_we", 0x62ec59e3f1a4f00a},
		{"crc_8", 0xf4},
		{"poly_0x104c11db7_init_0xffffffff_xout_0xffffffff", 0xcbf43926},
		{"poly_0x11021_init_0x0_not_rev_xout_0x0", 0x31c3},
		{"xor16", 0x3132 ^ 0x3334 ^ 0x3536 ^ 0x3738 ^ 0x3900},
		{"identity", 0x3132333435363738},
		{"toeplitz", 0},
	} {
		f := Named(tt.name)
		if f == nil {
			t.Errorf("%s is not known", tt.name)
			continue
		}
		if got := f(check); got != tt.want {
			t.Errorf("%s: %#x, want %#x", tt.name, got, tt.want)
		}
	}
	for _, name := range []string{"", "crc99", "poly_0x4c11db7", "poly_0x104c11db7_init", "poly_0x104c11db7_start_0x0"} {
		if Named(name) != nil {
			t.Errorf("%q is known", name)
		}
	}
}

// TestCRC32 compares ieee with package crc32 for all lengths up to those that ieee leaves to it.
func TestCRC32(t *testing.T) {
	b := make([]byte, longInput+8)
	for i := range b {
		b[i] = byte(i * i * 37)
	}
	for n := range b {
		if got, want := Named("crc32")(b[:n]), uint64(crc32.ChecksumIEEE(b[:n])); got != want {
			t.Errorf("%d bytes: %#x, want %#x", n, got, want)
		}
	}
}

// The example of RFC 1071, section 3.
func TestInternet(t *testing.T) {
	b := []byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}
	if got := Internet(b); got != 0x220d {
		t.Errorf("%#x, want 0x220d", got)
	}
	if got := Internet(append(b, 0)); got != 0x220d {
		t.Errorf("with a byte 0 more: %#x, want 0x220d", got)
	}
}

func TestRobin(t *testing.T) {
	var r, consistent Robin
	for i, in := range []struct {
		text string
		want uint64 // result of the consistent calculation
	}{{"a", 0}, {"b", 1}, {"a", 0}, {"c", 2}} {
		if got := r.Next(false, []byte(in.text)); got != uint64(i) {
			t.Errorf("call %d: %d", i, got)
		}
		if got := consistent.Next(true, []byte(in.text)); got != in.want {
			t.Errorf("%s: %d, want %d", in.text, got, in.want)
		}
	}
}
