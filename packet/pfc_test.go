package packet_test

import (
	"encoding/hex"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// A PFC frame byte by byte, as IEEE Std 802.1Qbb has it: classes 3 and 7, one paused for as
// long as possible, the other resumed.
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

func TestQuantaTime(t *testing.T) {
	for _, tt := range []struct {
		quanta uint16
		rate   units.Rate
		want   units.Time
	}{
		{0, units.Gbps, 0},
		{1, 100 * units.Gbps, 5120},
		{1, 10 * units.Gbps, 51200},
		{packet.MaxQuanta, 100 * units.Gbps, 65535 * 5120},
		{packet.MaxQuanta, 20 * units.Mbps, 65535 * 512 * 50 * units.Nanosecond},
	} {
		if got := packet.QuantaTime(tt.quanta, tt.rate); got != tt.want {
			t.Errorf("%d quanta at %v last %v, want %v", tt.quanta, tt.rate, got, tt.want)
		}
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
