package packet_test

import (
	"encoding/hex"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// A PFC frame byte by byte, by IEEE Std 802.1Qbb: class 3 is paused for the longest time, class 7 is resumed.
const pfcOnWire = "0180c2000001" + "020000000102" + "8808" + "0101" + "0088" +
	"0000" + "0000" + "0000" + "ffff" + "0000" + "0000" + "0000" + "0000" +
	"0000000000000000000000000000000000000000000000000000"

func pfcFrame() packet.PFC {
	return packet.PFC{Src: packet.MAC{2, 0, 0, 0, 1, 2}, Enabled: 1<<3 | 1<<7, Quanta: [8]uint16{3: packet.MaxQuanta}}
}

func TestPFCOnTheWire(t *testing.T) {
	p := pfcFrame()
	p.Quanta[0] = 99 // of a class that is not enabled
	wire := p.Append(nil)
	if got := hex.EncodeToString(wire); got != pfcOnWire {
		t.Errorf("frame\n%s, want\n%s", got, pfcOnWire)
	}
	if len(wire) != packet.PFCLen {
		t.Errorf("%d bytes, want %d", len(wire), packet.PFCLen)
	}
}

func TestPFCDecodeRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		bad  func([]byte) []byte
		want error
	}{
		{"nothing", func([]byte) []byte { return nil }, packet.ErrNotMACControl},
		{"cut in the EtherType", func(b []byte) []byte { return b[:13] }, packet.ErrNotMACControl},
		{"IPv4", func(b []byte) []byte { b[12], b[13] = 8, 0; return b }, packet.ErrNotMACControl},
		{"no opcode", func(b []byte) []byte { return b[:14] }, packet.ErrShortPFC},
		{"without its padding", func(b []byte) []byte { return b[:59] }, packet.ErrShortPFC},
		{"PAUSE of 802.3x", func(b []byte) []byte { b[15] = 0x01; b[14] = 0; return b }, packet.ErrPFCOpcode},
		{"unicast", func(b []byte) []byte { b[0] = 2; return b }, packet.ErrPFCAddress},
		{"reserved bit", func(b []byte) []byte { b[16] = 1; return b }, packet.ErrPFCReserved},
	} {
		f := pfcFrame()
		var got packet.PFC
		if err := got.Decode(tt.bad(f.Append(nil))); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
	}
}

func TestPFCRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := packet.PFC{Enabled: rapid.Byte().Draw(t, "enabled")}
		copy(p.Src[:], rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "source"))
		for c := range p.Quanta {
			if p.Enabled>>c&1 != 0 {
				p.Quanta[c] = rapid.Uint16().Draw(t, "quanta")
			}
		}
		wire := p.Append(nil)
		wire[packet.PFCLen-1] = 0xff // padding is ignored
		var got packet.PFC
		if err := got.Decode(append(wire, 0, 0, 0, 0)); err != nil || got != p {
			t.Fatalf("%+v became %+v, %v", p, got, err)
		}
	})
}

// TestPauses: a pause replaces the previous one, and counts only while it lasts.
func TestPauses(t *testing.T) {
	const us = units.Microsecond
	var p packet.Pauses
	for _, tt := range []struct {
		now, until units.Time
		want       packet.Pauses
	}{
		{5 * us, 0, packet.Pauses{}},
		{10 * us, 100 * us, packet.Pauses{Count: 1, Until: 100 * us, Time: 90 * us}},
		{50 * us, 120 * us, packet.Pauses{Count: 1, Until: 120 * us, Time: 110 * us}},
		{60 * us, 60 * us, packet.Pauses{Count: 1, Until: 60 * us, Time: 50 * us}},
		{60 * us, 61 * us, packet.Pauses{Count: 2, Until: 61 * us, Time: 51 * us}},
		{70 * us, 0, packet.Pauses{Count: 2, Until: 61 * us, Time: 51 * us}},
	} {
		if p.Set(tt.now, tt.until); p != tt.want {
			t.Errorf("after %v until %v: %+v, want %+v", tt.now, tt.until, p, tt.want)
		}
	}
	if p.Set(80*us, 90*us); p.Total(84*us) != 55*us || p.Total(99*us) != 61*us {
		t.Errorf("paused for %v by 84 µs and %v by 99 µs", p.Total(84*us), p.Total(99*us))
	}
}

func FuzzPFC(f *testing.F) {
	p := pfcFrame()
	f.Add(p.Append(nil))
	f.Add(p.Append(nil)[:34])
	f.Fuzz(func(t *testing.T, b []byte) {
		var got packet.PFC
		if got.Decode(b) != nil {
			return
		}
		var again packet.PFC
		if err := again.Decode(got.Append(nil)); err != nil || again != got {
			t.Fatalf("%x was read as %+v, what is built from it as %+v, %v", b, got, again, err)
		}
	})
}

func BenchmarkPFC(b *testing.B) {
	p := pfcFrame()
	buf := p.Append(nil)
	b.ReportAllocs()
	for b.Loop() {
		buf = p.Append(buf[:0])
		if err := p.Decode(buf); err != nil {
			b.Fatal(err)
		}
	}
}
