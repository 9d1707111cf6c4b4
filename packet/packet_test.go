package packet_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"pgregory.net/rapid"

	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/packet"
)

func data() packet.Frame {
	return packet.Frame{
		DstMAC: packet.MAC{2, 0, 0, 0, 0, 1}, SrcMAC: packet.MAC{2, 0, 0, 0, 0, 2},
		Src: netip.MustParseAddr("10.0.1.1"), Dst: netip.MustParseAddr("10.0.4.1"),
		DSCP: 10, ECN: packet.ECT0, TTL: 64, SrcPort: 50000, DstPort: maxqd.Port,
		Shim:    maxqd.Shim{Next: maxqd.BTH, MaxQD: 77},
		BTH:     packet.BTH{Opcode: packet.SendMiddle, PKey: packet.DefaultPKey, DestQP: 0x123456, AckReq: true, PSN: 0xabcdef},
		Payload: bytes.Repeat([]byte{0x5a}, 1000),
	}
}

func ack() packet.Frame {
	f := data()
	f.BTH = packet.BTH{Opcode: packet.Acknowledge, PKey: packet.DefaultPKey, DestQP: 7, PSN: 9, BECN: true}
	f.AETH = packet.AETH{Syndrome: packet.ACK, MSN: 5}
	f.Shim.Echo = true
	f.Payload = nil
	return f
}

var sameFrame = cmp.Options{cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{}), cmpopts.IgnoreUnexported(packet.Frame{})}

func TestLengths(t *testing.T) {
	d, a := data(), ack()
	if got := len(d.Append(nil)); got != 1062 || packet.DataOverhead != 62 {
		t.Errorf("a data frame of 1000 B payload has %d B", got)
	}
	if got := len(a.Append(nil)); got != 66 || packet.ACKLen != 66 {
		t.Errorf("an ACK frame has %d B", got)
	}
}

// A CNP that a ConnectX-4 Lx sent, from the capture in Scapy's RoCE tests: its ICRC is
// what hardware computes.
const capturedCNP = `e41d2dab2bc27cfe90643b32080045c2003c718c4000401191610a0011010a00
1201000012b7002800008100ffff40000118000000000000000000000000000000000000000082fd002a`

func TestICRCOfHardware(t *testing.T) {
	wire, err := hex.DecodeString(strings.ReplaceAll(capturedCNP, "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	var f packet.Frame
	if err := f.Decode(wire); err != nil {
		t.Fatal(err)
	}
	if f.BTH.Opcode != packet.CNP || !f.BTH.BECN || f.BTH.DestQP != 0x118 || len(f.Payload) != 16 {
		t.Errorf("decoded %+v", f)
	}
	wire[20] ^= 0xff // TTL may change on the way; the IPv4 checksum with it
	binary.BigEndian.PutUint16(wire[24:], 0)
	wire[15] ^= 0xff
	var again packet.Frame
	if err := again.Decode(wire); !errors.Is(err, packet.ErrIPv4Sum) {
		t.Errorf("a wrong checksum gives %v", err)
	}
}

func frames(t *rapid.T) packet.Frame {
	f := data()
	if rapid.Bool().Draw(t, "IPv6") {
		f = dataIPv6()
		f.FlowLabel = rapid.Uint32Range(0, packet.MaxFlowLabel).Draw(t, "flow label")
	}
	f.DSCP = rapid.Uint8Range(0, 63).Draw(t, "dscp")
	f.ECN = packet.ECN(rapid.Uint8Range(0, 3).Draw(t, "ecn"))
	f.TTL = rapid.Uint8().Draw(t, "ttl")
	f.SrcPort = rapid.Uint16().Draw(t, "port")
	f.Shim.MaxQD = rapid.Uint16().Draw(t, "maxQD")
	f.Shim.Echo = rapid.Bool().Draw(t, "echo")
	if rapid.Bool().Draw(t, "plain") {
		f.DstPort, f.Shim = packet.RoCEv2Port, maxqd.Shim{}
	}
	f.BTH = packet.BTH{
		Opcode:    packet.Opcode(rapid.Uint8().Draw(t, "opcode")),
		Solicited: rapid.Bool().Draw(t, "s"), MigReq: rapid.Bool().Draw(t, "m"),
		PKey: rapid.Uint16().Draw(t, "pkey"), FECN: rapid.Bool().Draw(t, "f"), BECN: rapid.Bool().Draw(t, "b"),
		DestQP: rapid.Uint32Range(0, packet.MaxQP).Draw(t, "qp"), AckReq: rapid.Bool().Draw(t, "a"),
		PSN: rapid.Uint32Range(0, packet.MaxPSN).Draw(t, "psn"),
	}
	if f.BTH.Opcode == packet.Acknowledge {
		f.AETH = packet.AETH{Syndrome: packet.Syndrome(rapid.Uint8().Draw(t, "syndrome")), MSN: rapid.Uint32Range(0, 0xffffff).Draw(t, "msn")}
	}
	f.Payload = rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "payload")
	return f
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := frames(t)
		wire := f.Append(nil)
		padded := append(bytes.Clone(wire), make([]byte, rapid.IntRange(0, 8).Draw(t, "ethernet padding"))...)
		var got packet.Frame
		if err := got.Decode(padded); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(f, got, sameFrame); diff != "" {
			t.Fatalf("-built +read:\n%s", diff)
		}
	})
}

// The ICRC stays valid if fields change that switches may change, and becomes invalid with any other change.
func TestICRCMasksWhatSwitchesChange(t *testing.T) {
	f := data()
	base := f.Append(nil)
	const ip, udp, shim, bth = 14, 34, 42, 46
	for _, tt := range []struct {
		name  string
		at    int
		valid bool
	}{
		{"ECN", ip + 1, true}, {"TTL", ip + 8, true}, {"UDP checksum", udp + 6, true},
		{"maxQD", shim + 2, true}, {"maxQD", shim + 3, true}, {"FECN", bth + 4, true},
		{"source address", ip + 15, false}, {"source port", udp, false}, {"opcode", bth, false},
		{"PSN", bth + 11, false}, {"payload", bth + 12, false}, {"ICRC", len(base) - 1, false},
	} {
		wire := bytes.Clone(base)
		wire[tt.at] ^= 0x80
		if tt.at == ip+1 || tt.at == ip+8 || tt.at == ip+15 {
			fixIPv4(wire[ip:])
		}
		var got packet.Frame
		err := got.Decode(wire)
		if tt.valid && err != nil || !tt.valid && !errors.Is(err, packet.ErrICRC) {
			t.Errorf("%s changed: %v", tt.name, err)
		}
	}
}

func fixIPv4(h []byte) {
	h[10], h[11] = 0, 0
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(h[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(h[10:], ^uint16(sum))
}

func TestDecodeRefuses(t *testing.T) {
	const ip, udp, shim, bth = 14, 34, 42, 46
	for _, tt := range []struct {
		name string
		bad  func([]byte) []byte
		want error
	}{
		{"nothing", func(b []byte) []byte { return nil }, packet.ErrShort},
		{"headers cut", func(b []byte) []byte { return b[:41] }, packet.ErrShort},
		{"ARP", func(b []byte) []byte { b[13] = 6; return b }, packet.ErrNotIP},
		{"IPv4 options", func(b []byte) []byte { b[ip] = 0x46; return b }, packet.ErrIPv4},
		{"IPv6 in disguise", func(b []byte) []byte { b[ip] = 0x65; return b }, packet.ErrIPv4},
		{"frame cut", func(b []byte) []byte { return b[:100] }, packet.ErrIPv4Len},
		{"checksum", func(b []byte) []byte { b[ip+8]--; return b }, packet.ErrIPv4Sum},
		{"fragment", func(b []byte) []byte { b[ip+6] = 0x20; fixIPv4(b[ip:]); return b }, packet.ErrFragment},
		{"TCP", func(b []byte) []byte { b[ip+9] = 6; fixIPv4(b[ip:]); return b }, packet.ErrNotUDP},
		{"UDP too long", func(b []byte) []byte { b[udp+4] = 0xff; return b }, packet.ErrUDPLen},
		{"UDP too short", func(b []byte) []byte { b[udp+4], b[udp+5] = 0, 7; return b }, packet.ErrUDPLen},
		{"other port", func(b []byte) []byte { b[udp+3] = 0; return b }, packet.ErrPort},
		{"no room for a shim", func(b []byte) []byte { b[udp+4], b[udp+5] = 0, 10; return b }, maxqd.ErrShort},
		{"shim version", func(b []byte) []byte { b[shim] = 0x20; return b }, maxqd.ErrVersion},
		{"shim with opaque payload", func(b []byte) []byte { b[shim+1] = 0; return b }, packet.ErrNotBTH},
		{"no room for a BTH", func(b []byte) []byte { b[udp+4], b[udp+5] = 0, 20; return b }, packet.ErrShortBTH},
		{"BTH version", func(b []byte) []byte { b[bth+1] |= 1; return b }, packet.ErrBTHVersion},
		{"no room for an ICRC", func(b []byte) []byte { b[udp+4], b[udp+5] = 0, 26; return b }, packet.ErrTransport},
		{"no room for an AETH", func(b []byte) []byte { b[bth], b[udp+4], b[udp+5] = 0x11, 0, 26; return b }, packet.ErrShortAETH},
	} {
		f := data()
		var got packet.Frame
		if err := got.Decode(tt.bad(f.Append(nil))); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
	}
}

// gopacket decodes our frames to the same fields, and builds the same bytes up to UDP.
func TestAgainstGopacket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := frames(t)
		wire := f.Append(nil)
		p := gopacket.NewPacket(wire, layers.LayerTypeEthernet, gopacket.DecodeOptions{Lazy: false, NoCopy: true})
		eth, _ := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
		udp, _ := p.Layer(layers.LayerTypeUDP).(*layers.UDP)
		if eth == nil || p.NetworkLayer() == nil || udp == nil {
			t.Fatalf("gopacket sees %v", p)
			return
		}
		if !bytes.Equal(eth.SrcMAC, f.SrcMAC[:]) || !bytes.Equal(eth.DstMAC, f.DstMAC[:]) {
			t.Fatalf("addresses %v, %v", eth.SrcMAC, eth.DstMAC)
		}
		if uint16(udp.SrcPort) != f.SrcPort || uint16(udp.DstPort) != f.DstPort || udp.Checksum != 0 {
			t.Fatalf("UDP %+v", udp)
		}
		eth2 := layers.Ethernet{SrcMAC: f.SrcMAC[:], DstMAC: f.DstMAC[:], EthernetType: layers.EthernetTypeIPv4}
		udp2 := layers.UDP{SrcPort: udp.SrcPort, DstPort: udp.DstPort}
		udpAt := 34
		var ip interface {
			gopacket.NetworkLayer
			gopacket.SerializableLayer
		} = &layers.IPv4{Version: 4, TTL: f.TTL, TOS: f.DSCP<<2 | uint8(f.ECN), Protocol: layers.IPProtocolUDP, Flags: layers.IPv4DontFragment,
			SrcIP: net.IP(f.Src.AsSlice()), DstIP: net.IP(f.Dst.AsSlice())}
		if f.Src.Is6() {
			eth2.EthernetType, udpAt = layers.EthernetTypeIPv6, 54
			ip = &layers.IPv6{Version: 6, HopLimit: f.TTL, TrafficClass: f.DSCP<<2 | uint8(f.ECN), FlowLabel: f.FlowLabel, NextHeader: layers.IPProtocolUDP,
				SrcIP: net.IP(f.Src.AsSlice()), DstIP: net.IP(f.Dst.AsSlice())}
		}
		if err := udp2.SetNetworkLayerForChecksum(ip); err != nil {
			t.Fatal(err)
		}
		buf := gopacket.NewSerializeBuffer()
		opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
		if err := gopacket.SerializeLayers(buf, opts, &eth2, ip, &udp2, gopacket.Payload(wire[udpAt+8:])); err != nil {
			t.Fatal(err)
		}
		theirs := buf.Bytes()
		theirs[udpAt+6], theirs[udpAt+7] = 0, 0 // we send no UDP checksum
		if !bytes.Equal(theirs[:len(wire)], wire) {
			t.Fatalf("differ:\n%x ours\n%x gopacket's", wire, theirs)
		}
	})
}

func FuzzDecode(f *testing.F) {
	d, a := data(), ack()
	six := dataIPv6()
	f.Add(d.Append(nil))
	f.Add(a.Append(nil))
	f.Add(six.Append(nil))
	cnp, err := hex.DecodeString(strings.ReplaceAll(capturedCNP, "\n", ""))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(cnp)
	f.Fuzz(func(t *testing.T, b []byte) {
		var got packet.Frame
		if got.Decode(b) != nil {
			return
		}
		var again packet.Frame
		if err := again.Decode(got.Append(nil)); err != nil {
			t.Fatalf("%x was read, but not what is built from it: %v", b, err)
		}
		again.BTH.Pad = got.BTH.Pad
		if diff := cmp.Diff(got, again, sameFrame); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzBTH(f *testing.F) {
	d := data()
	f.Add(d.BTH.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h packet.BTH
		if h.Decode(b) != nil {
			return
		}
		var again packet.BTH
		if err := again.Decode(h.Append(nil)); err != nil || again != h {
			t.Fatalf("%+v became %+v, %v", h, again, err)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	f := data()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = f.Append(buf[:0])
	}
}

func BenchmarkDecode(b *testing.B) {
	f := data()
	wire := f.Append(nil)
	var got packet.Frame
	b.ReportAllocs()
	for b.Loop() {
		if err := got.Decode(wire); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGopacket is the comparison that justifies our own codec: gopacket without allocation, up to UDP and
// without the ICRC.
func BenchmarkGopacket(b *testing.B) {
	f := data()
	wire := f.Append(nil)
	var eth layers.Ethernet
	var ip layers.IPv4
	var udp layers.UDP
	var rest gopacket.Payload
	parser := gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet, &eth, &ip, &udp, &rest)
	var found []gopacket.LayerType
	b.ReportAllocs()
	for b.Loop() {
		if err := parser.DecodeLayers(wire, &found); err != nil {
			b.Fatal(err)
		}
	}
}
