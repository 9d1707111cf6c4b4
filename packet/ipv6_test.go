package packet_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"testing"

	"github.com/headgate/headgate/packet"
)

func dataIPv6() packet.Frame {
	f := data()
	f.Src, f.Dst = netip.MustParseAddr("2001:db8:1::1"), netip.MustParseAddr("2001:db8:4::1")
	f.FlowLabel = 0xabcde
	return f
}

// The ICRC of Linux' soft RoCE (rxe_icrc_hdr of drivers/infiniband/sw/rxe/rxe_icrc.c, evaluated with Python's
// zlib): over eight bytes of ones, then IPv6, UDP and BTH with ones in traffic class, flow label, hop limit, UDP
// checksum and the byte of FECN and BECN, then the payload.
const icrcIPv6 = `020000000001020000000002` + `86dd` +
	`6c0abcde00281140` + `20010db8000400000000000000000001` + `20010db8000100000000000000000001` +
	`c35012b700280000` + `8100ffff4000011800000000` + `00000000000000000000000000000000` + `df8206de`

func TestICRCOverIPv6(t *testing.T) {
	wire, err := hex.DecodeString(icrcIPv6)
	if err != nil {
		t.Fatal(err)
	}
	var f packet.Frame
	if err := f.Decode(wire); err != nil {
		t.Fatal(err)
	}
	if f.FlowLabel != 0xabcde || f.DSCP != 48 || f.TTL != 64 || f.CheckCNP() != nil {
		t.Errorf("decoded %+v", f)
	}
	if ours := f.Append(nil); !bytes.Equal(ours, wire) {
		t.Errorf("ours %x\nwant %x", ours, wire)
	}
}

// The ICRC stays valid if IPv6 fields change that switches may change, and becomes invalid with any other change.
func TestICRCMasksOfIPv6(t *testing.T) {
	f := dataIPv6()
	base := f.Append(nil)
	const ip, udp = 14, 54
	for _, tt := range []struct {
		name  string
		at    int
		bits  byte
		valid bool
	}{
		{"traffic class", ip, 0x0f, true}, {"ECN", ip + 1, 0x30, true}, {"flow label", ip + 3, 0xff, true}, {"hop limit", ip + 7, 0xff, true},
		{"UDP checksum", udp + 7, 1, true}, {"source address", ip + 8, 1, false}, {"destination address", ip + 39, 1, false},
		{"source port", udp, 1, false},
	} {
		wire := bytes.Clone(base)
		wire[tt.at] ^= tt.bits
		var got packet.Frame
		if err := got.Decode(wire); tt.valid && err != nil || !tt.valid && !errors.Is(err, packet.ErrICRC) {
			t.Errorf("%s changed: %v", tt.name, err)
		}
	}
}

func TestDecodeRefusesIPv6(t *testing.T) {
	const ip = 14
	for _, tt := range []struct {
		name string
		bad  func([]byte) []byte
		want error
	}{
		{"header cut", func(b []byte) []byte { return b[:ip+47] }, packet.ErrShort},
		{"version 4", func(b []byte) []byte { b[ip] = 0x45; return b }, packet.ErrIPv6},
		{"frame cut", func(b []byte) []byte { return b[:100] }, packet.ErrIPv6Len},
		{"payload shorter than UDP", func(b []byte) []byte { b[ip+4], b[ip+5] = 0, 7; return b }, packet.ErrIPv6Len},
		{"extension header", func(b []byte) []byte { b[ip+6] = 0; return b }, packet.ErrNotUDP},
	} {
		f := dataIPv6()
		var got packet.Frame
		if err := got.Decode(tt.bad(f.Append(nil))); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
	}
}

func TestIPv6DoesNotAllocate(t *testing.T) {
	f := dataIPv6()
	buf := make([]byte, 0, 2000)
	var got packet.Frame
	if a := testing.AllocsPerRun(100, func() {
		buf = f.Append(buf[:0])
		if err := got.Decode(buf); err != nil {
			t.Error(err)
		}
	}); a != 0 {
		t.Errorf("%v allocations", a)
	}
}
