package dataplane

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

var (
	wireForm = []byte{254, 8, 0x48, 0x47, 0x12, 0x34, 0xab, 0xcd}
	stamps   = []byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2}
	offer    = []byte{254, 4, 0x48, 0x47}
)

func TestOptionWireForm(t *testing.T) {
	want := tcpOption{MaxQD: 0x1234, Echo: 0xabcd}
	if got := want.Append(nil); !bytes.Equal(got, wireForm) {
		t.Errorf("wireForm form %x, want %x", got, wireForm)
	}
	var got tcpOption
	if err := got.Decode(wireForm); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if got := appendOffer(nil); !bytes.Equal(got, offer) || !offered(got) {
		t.Errorf("offer %x (offered: %t), want %x", got, offered(got), offer)
	}
	for _, b := range [][]byte{nil, wireForm[:7], offer, {253, 8, 0x48, 0x47, 0, 0, 0, 0},
		{254, 10, 0x48, 0x47, 0, 0, 0, 0, 0, 0}, {254, 8, 0x47, 0x48, 0, 0, 0, 0}} {
		if err := got.Decode(b); !errors.Is(err, errOption) {
			t.Errorf("%x: error %v, want %v", b, err, errOption)
		}
	}
}

func TestFind(t *testing.T) {
	foreign := []byte{254, 8, 0xe2, 0xd4, 0x48, 0x47, 0, 0}
	for _, tt := range []struct {
		name    string
		options [][]byte
		want    int
	}{
		{"alone", [][]byte{wireForm}, 0},
		{"behind stamps", [][]byte{stamps, wireForm}, 12},
		{"behind another experiment", [][]byte{foreign, wireForm}, 8},
		{"behind the offer", [][]byte{offer, wireForm}, 4},
		{"unaligned", [][]byte{{1}, wireForm}, 1},
		{"none", nil, -1},
		{"behind the end of options", [][]byte{{0}, wireForm}, -1},
		{"cut short", [][]byte{stamps, wireForm[:7]}, -1},
		{"within another option", [][]byte{{5, 10}, wireForm}, -1},
		{"behind an option of length 0", [][]byte{{3, 0}, wireForm}, -1},
		{"behind an option that is too long", [][]byte{{3, 40}, wireForm}, -1},
	} {
		if got := findOption(bytes.Join(tt.options, nil)); got != tt.want {
			t.Errorf("%s: at %d, want %d", tt.name, got, tt.want)
		}
	}
}

// checksumOf is RFC 1071's sum of a TCP header of even length.
func checksumOf(b []byte) uint16 {
	var s uint32
	for ; len(b) > 1; b = b[2:] {
		s += uint32(binary.BigEndian.Uint16(b))
	}
	for s > 0xffff {
		s = s&0xffff + s>>16
	}
	return uint16(s)
}

func header(options ...[]byte) []byte {
	h := append(make([]byte, 20), bytes.Join(options, nil)...)
	h[12] = byte(len(h) / 4 << 4)
	binary.BigEndian.PutUint16(h[16:], ^checksumOf(h))
	return h
}

func TestStampOption(t *testing.T) {
	for _, tt := range []struct {
		name string
		own  uint16
		want bool
	}{
		{"smaller", 0x1233, false}, {"equal", 0x1234, false}, {"larger", 0x1235, true}, {"largest", 0xffff, true},
	} {
		h := header(stamps, wireForm)
		was := bytes.Clone(h)
		if got := stampOption(h, tt.own); got != tt.want {
			t.Errorf("%s: changed %t, want %t", tt.name, got, tt.want)
		}
		if tt.want {
			binary.BigEndian.PutUint16(was[36:], tt.own)
			copy(was[16:18], h[16:18])
		}
		if !bytes.Equal(h, was) || checksumOf(h) != 0xffff {
			t.Errorf("%s: header %x with sum %#x, want %x with sum 0xffff", tt.name, h, checksumOf(h), was)
		}
	}
	short := header(wireForm)[:24]
	offset := header(wireForm)
	offset[12] = 4 << 4
	for name, h := range map[string][]byte{"no option": header(stamps), "cut": short, "data offset 4": offset,
		"odd": header([]byte{1}, wireForm, []byte{0, 0, 0}), "empty": nil} {
		was := bytes.Clone(h)
		if stampOption(h, 0xffff) || !bytes.Equal(h, was) {
			t.Errorf("%s: the header changed", name)
		}
	}
}

// For any bytes, Find and StampOption stay within bounds, and a stamp changes only two fields.
func FuzzStampOption(f *testing.F) {
	f.Add(header(stamps, wireForm), uint16(0xffff))
	f.Add(header(wireForm), uint16(0x2000))
	f.Add(header([]byte{254, 0}), uint16(1))
	f.Fuzz(func(t *testing.T, h []byte, own uint16) {
		was := bytes.Clone(h)
		if !stampOption(h, own) {
			if !bytes.Equal(h, was) {
				t.Fatalf("%x became %x without a stamp", was, h)
			}
			return
		}
		length := int(h[12]>>4) * 4
		at := 20 + findOption(h[20:length])
		var o, old tcpOption
		if err := errors.Join(o.Decode(h[at:]), old.Decode(was[at:])); err != nil || o.MaxQD != own || o.Echo != old.Echo {
			t.Fatalf("%x became %x: %v", was[at:], h[at:], err)
		}
		if a, b := checksumOf(h[:length]), checksumOf(was[:length]); a != b && a%0xffff != b%0xffff {
			t.Fatalf("sum %#x became %#x", b, a)
		}
		copy(h[16:18], was[16:18])
		copy(h[at+4:at+6], was[at+4:at+6])
		if !bytes.Equal(h, was) {
			t.Fatalf("%x became %x", was, h)
		}
	})
}
