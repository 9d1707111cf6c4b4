package maxqd_test

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/units"
)

func TestWireForm(t *testing.T) {
	tests := []struct {
		shim maxqd.Shim
		wire []byte
	}{
		{maxqd.Shim{Next: maxqd.BTH, MaxQD: 0x1234}, []byte{0x10, 1, 0x12, 0x34}},
		{maxqd.Shim{Echo: true, Next: maxqd.BTH, MaxQD: 0xffff}, []byte{0x18, 1, 0xff, 0xff}},
		{maxqd.Shim{}, []byte{0x10, 0, 0, 0}},
	}
	for _, tt := range tests {
		if got := tt.shim.Append(nil); !bytes.Equal(got, tt.wire) {
			t.Errorf("%+v: wire form %x, want %x", tt.shim, got, tt.wire)
		}
		var got maxqd.Shim
		if err := got.Decode(append(tt.wire, 9, 9)); err != nil || got != tt.shim {
			t.Errorf("%x: %+v, %v; want %+v", tt.wire, got, err, tt.shim)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	tests := []struct {
		wire []byte
		want error
	}{
		{nil, maxqd.ErrShort},
		{[]byte{0x10, 1, 0}, maxqd.ErrShort},
		{[]byte{0x00, 1, 0, 0}, maxqd.ErrVersion},
		{[]byte{0x20, 1, 0, 0}, maxqd.ErrVersion},
		{[]byte{0x11, 1, 0, 0}, maxqd.ErrReserved},
		{[]byte{0x1c, 1, 0, 0}, maxqd.ErrReserved},
	}
	for _, tt := range tests {
		var s maxqd.Shim
		if err := s.Decode(tt.wire); !errors.Is(err, tt.want) {
			t.Errorf("%x: error %v, want %v", tt.wire, err, tt.want)
		}
	}
}

// On any path, the shim ends up with the largest delay, for any order of hops.
func TestStampKeepsTheLargest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := maxqd.Shim{Echo: rapid.Bool().Draw(t, "echo"), MaxQD: rapid.Uint16().Draw(t, "start")}
		want := s.MaxQD
		for _, own := range rapid.SliceOf(rapid.Uint16()).Draw(t, "hops") {
			if !s.Echo {
				want = max(want, own)
			}
			s.Stamp(own)
		}
		if s.MaxQD != want {
			t.Fatalf("maxQD %d, want %d", s.MaxQD, want)
		}
	})
}

func TestUnit(t *testing.T) {
	u, err := maxqd.NewUnit(8 * units.Microsecond)
	if err != nil || u.Time() != 8*units.Microsecond {
		t.Fatalf("unit %v, %v; want 8us", u.Time(), err)
	}
	for _, tt := range []struct {
		delay units.Time
		want  uint16
	}{
		{-1, 0}, {0, 0}, {8*units.Microsecond - 1, 0}, {8 * units.Microsecond, 1},
		{65535 * 8 * units.Microsecond, 65535}, {units.MaxTime, 65535},
	} {
		if got := u.Encode(tt.delay); got != tt.want {
			t.Errorf("Encode(%v) = %d, want %d", tt.delay, got, tt.want)
		}
	}
	for _, bad := range []units.Time{0, -1, 2 * units.Second} {
		if _, err := maxqd.NewUnit(bad); err == nil {
			t.Errorf("a unit of %d ps was taken", int64(bad))
		}
	}
}

// The pipeline shifts the delay in its clock's ticks, 1 µs on BMv2, and saturates.
func TestEncodeAgreesWithThePipeline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shift := uint(rapid.IntRange(0, 15).Draw(t, "shift"))
		u, err := maxqd.NewUnit(units.Microsecond << shift)
		if err != nil {
			t.Fatal(err)
		}
		delay := units.Time(rapid.Int64Range(0, int64(1000*units.Second)).Draw(t, "delay"))
		ticks := uint64(delay / units.Microsecond)
		if got, want := u.Encode(delay), uint16(min(ticks>>shift, 65535)); got != want {
			t.Fatalf("%v: %d, the pipeline has %d", delay, got, want)
		}
		v := u.Encode(delay)
		if v < 65535 && (u.Decode(v) > delay || u.Decode(v)+u.Time() <= delay) {
			t.Fatalf("%v became %d, which stands for %v", delay, v, u.Decode(v))
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{0x10, 1, 0x12, 0x34})
	f.Add([]byte{0x18, 0, 0xff, 0xff, 7})
	f.Add([]byte{0x21})
	f.Fuzz(func(t *testing.T, b []byte) {
		var s maxqd.Shim
		if err := s.Decode(b); err != nil {
			return
		}
		if got := s.Append(nil); !bytes.Equal(got, b[:maxqd.Len]) {
			t.Fatalf("%x decodes to %+v, which encodes to %x", b[:maxqd.Len], s, got)
		}
	})
}

func BenchmarkStamp(b *testing.B) {
	wire := maxqd.Shim{Next: maxqd.BTH, MaxQD: 5}.Append(nil)
	b.ReportAllocs()
	for b.Loop() {
		var s maxqd.Shim
		if err := s.Decode(wire); err != nil {
			b.Fatal(err)
		}
		s.Stamp(9)
		wire = s.Append(wire[:0])
	}
}
