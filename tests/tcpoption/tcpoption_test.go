package tcpoption_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/headgate/headgate/tests/tcpoption"
)

var (
	wire       = []byte{254, 8, 0x48, 0x47, 0x12, 0x34, 0xab, 0xcd}
	timestamps = []byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2}
	offer      = []byte{254, 4, 0x48, 0x47}
)

func TestOptionWireForm(t *testing.T) {
	want := tcpoption.Option{MaxQD: 0x1234, Echo: 0xabcd}
	if got := want.Append(nil); !bytes.Equal(got, wire) {
		t.Errorf("wire form %x, want %x", got, wire)
	}
	var got tcpoption.Option
	if err := got.Decode(wire); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if got := tcpoption.AppendOffer(nil); !bytes.Equal(got, offer) || !tcpoption.Offered(got) {
		t.Errorf("offer %x (offered: %t), want %x", got, tcpoption.Offered(got), offer)
	}
	for _, b := range [][]byte{nil, wire[:7], offer, {253, 8, 0x48, 0x47, 0, 0, 0, 0},
		{254, 10, 0x48, 0x47, 0, 0, 0, 0, 0, 0}, {254, 8, 0x47, 0x48, 0, 0, 0, 0}} {
		if err := got.Decode(b); !errors.Is(err, tcpoption.ErrOption) {
			t.Errorf("%x: error %v, want %v", b, err, tcpoption.ErrOption)
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
		{"alone", [][]byte{wire}, 0},
		{"behind timestamps", [][]byte{timestamps, wire}, 12},
		{"behind another experiment", [][]byte{foreign, wire}, 8},
		{"behind the offer", [][]byte{offer, wire}, 4},
		{"unaligned", [][]byte{{1}, wire}, 1},
		{"none", nil, -1},
		{"behind the end of options", [][]byte{{0}, wire}, -1},
		{"cut short", [][]byte{timestamps, wire[:7]}, -1},
		{"within another option", [][]byte{{5, 10}, wire}, -1},
		{"behind an option of length 0", [][]byte{{3, 0}, wire}, -1},
		{"behind an option that is too long", [][]byte{{3, 40}, wire}, -1},
	} {
		if got := tcpoption.Find(bytes.Join(tt.options, nil)); got != tt.want {
			t.Errorf("%s: at %d, want %d", tt.name, got, tt.want)
		}
	}
}

// sum is RFC 1071's sum of a TCP header whose length is even.
func sum(b []byte) uint16 {
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
	binary.BigEndian.PutUint16(h[16:], ^sum(h))
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
		h := header(timestamps, wire)
		was := bytes.Clone(h)
		if got := tcpoption.StampOption(h, tt.own); got != tt.want {
			t.Errorf("%s: changed %t, want %t", tt.name, got, tt.want)
		}
		if tt.want {
			binary.BigEndian.PutUint16(was[36:], tt.own)
			copy(was[16:18], h[16:18])
		}
		if !bytes.Equal(h, was) || sum(h) != 0xffff {
			t.Errorf("%s: header %x with sum %#x, want %x with sum 0xffff", tt.name, h, sum(h), was)
		}
	}
	short := header(wire)[:24]
	offset := header(wire)
	offset[12] = 4 << 4
	for name, h := range map[string][]byte{"no option": header(timestamps), "cut": short, "data offset 4": offset,
		"odd": header([]byte{1}, wire, []byte{0, 0, 0}), "empty": nil} {
		was := bytes.Clone(h)
		if tcpoption.StampOption(h, 0xffff) || !bytes.Equal(h, was) {
			t.Errorf("%s: the header changed", name)
		}
	}
}

// No bytes make Find and StampOption go out of bounds, and a stamp changes two fields alone.
func FuzzStampOption(f *testing.F) {
	f.Add(header(timestamps, wire), uint16(0xffff))
	f.Add(header(wire), uint16(0x2000))
	f.Add(header([]byte{254, 0}), uint16(1))
	f.Fuzz(func(t *testing.T, h []byte, own uint16) {
		was := bytes.Clone(h)
		if !tcpoption.StampOption(h, own) {
			if !bytes.Equal(h, was) {
				t.Fatalf("%x became %x without a stamp", was, h)
			}
			return
		}
		length := int(h[12]>>4) * 4
		at := 20 + tcpoption.Find(h[20:length])
		var o, old tcpoption.Option
		if err := errors.Join(o.Decode(h[at:]), old.Decode(was[at:])); err != nil || o.MaxQD != own || o.Echo != old.Echo {
			t.Fatalf("%x became %x: %v", was[at:], h[at:], err)
		}
		if a, b := sum(h[:length]), sum(was[:length]); a != b && a%0xffff != b%0xffff {
			t.Fatalf("sum %#x became %#x", b, a)
		}
		copy(h[16:18], was[16:18])
		copy(h[at+4:at+6], was[at+4:at+6])
		if !bytes.Equal(h, was) {
			t.Fatalf("%x became %x", was, h)
		}
	})
}
