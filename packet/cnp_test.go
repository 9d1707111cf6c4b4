package packet_test

import (
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/headgate/headgate/packet"
)

func cnp() packet.Notification {
	return packet.Notification{
		DstMAC: packet.MAC{2, 0, 0, 0, 0, 1}, SrcMAC: packet.MAC{2, 0, 0, 0, 0, 2},
		FlowSrc: netip.MustParseAddr("10.0.1.1"), FlowDst: netip.MustParseAddr("10.0.4.1"),
		DSCP: 48, TTL: 64, SrcPort: 50000, DestQP: 0x118,
	}
}

var sameCNP = cmp.Options{cmpopts.EquateComparable(netip.Addr{}), cmpopts.IgnoreUnexported(packet.Notification{})}

// A ConnectX-4 Lx' frame decodes as a CNP from the flow's destination. Our CNPs differ from it only in the IPv4
// identification and ECN, which the ICRC covers in part.
func TestCNPOfHardware(t *testing.T) {
	wire, err := hex.DecodeString(strings.ReplaceAll(capturedCNP, "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	var n packet.Notification
	if err := n.Decode(wire); err != nil {
		t.Fatal(err)
	}
	if n.FlowDst != netip.MustParseAddr("10.0.17.1") || n.FlowSrc != netip.MustParseAddr("10.0.18.1") || n.DestQP != 0x118 || n.DSCP != 48 {
		t.Errorf("read %+v", n)
	}
	ours := n.Append(nil)
	if len(ours) != packet.CNPLen || len(wire) != packet.CNPLen {
		t.Fatalf("lengths %d and %d, want %d", len(ours), len(wire), packet.CNPLen)
	}
	const udp, bth = 34, 42
	if got, want := hex.EncodeToString(ours[udp:bth]), hex.EncodeToString(wire[udp:bth]); got != want {
		t.Errorf("UDP header %s, hardware sends %s", got, want)
	}
	if got, want := hex.EncodeToString(ours[bth:bth+28]), hex.EncodeToString(wire[bth:bth+28]); got != want {
		t.Errorf("BTH and payload %s, hardware sends %s", got, want)
	}
}

func TestCNPRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := cnp()
		n.DSCP = rapid.Uint8Range(0, 63).Draw(t, "dscp")
		n.TTL = rapid.Uint8().Draw(t, "ttl")
		n.SrcPort = rapid.Uint16().Draw(t, "port")
		n.DestQP = rapid.Uint32Range(0, packet.MaxQP).Draw(t, "qp")
		n.FlowSrc = netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "src")))
		if rapid.Bool().Draw(t, "IPv6") {
			n.FlowSrc = netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "src")))
			n.FlowDst = netip.MustParseAddr("2001:db8:4::1")
		}
		var got packet.Notification
		if err := got.Decode(n.Append(nil)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(n, got, sameCNP); diff != "" {
			t.Fatalf("-built +read:\n%s", diff)
		}
	})
}

func TestCNPRefuses(t *testing.T) {
	reserved := make([]byte, packet.CNPReserved)
	good := packet.Frame{
		Src: netip.MustParseAddr("10.0.4.1"), Dst: netip.MustParseAddr("10.0.1.1"), DstPort: packet.RoCEv2Port,
		BTH: packet.BTH{Opcode: packet.CNP, BECN: true}, Payload: reserved,
	}
	for _, tt := range []struct {
		name string
		bad  func(*packet.Frame)
		want error
	}{
		{"data", func(f *packet.Frame) { f.BTH.Opcode = packet.SendOnly }, packet.ErrNotCNP},
		{"with a shim", func(f *packet.Frame) { f.DstPort = 50151 }, packet.ErrNotCNP},
		{"without BECN", func(f *packet.Frame) { f.BTH.BECN = false }, packet.ErrCNPBECN},
		{"empty", func(f *packet.Frame) { f.Payload = nil }, packet.ErrCNPReserved},
		{"reserved bytes", func(f *packet.Frame) { f.Payload = append(reserved[:15:15], 1) }, packet.ErrCNPReserved},
	} {
		f := good
		tt.bad(&f)
		var n packet.Notification
		if err := n.Decode(f.Append(nil)); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
	}
	n := cnp()
	wire := n.Append(nil)
	wire[len(wire)-1] ^= 1
	if err := n.Decode(wire); !errors.Is(err, packet.ErrICRC) {
		t.Errorf("a wrong ICRC gives %v", err)
	}
}

func FuzzCNP(f *testing.F) {
	n := cnp()
	f.Add(n.Append(nil))
	n.FlowSrc, n.FlowDst = netip.MustParseAddr("2001:db8:1::1"), netip.MustParseAddr("2001:db8:4::1")
	f.Add(n.Append(nil))
	hardware, err := hex.DecodeString(strings.ReplaceAll(capturedCNP, "\n", ""))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(hardware)
	f.Fuzz(func(t *testing.T, b []byte) {
		var got, again packet.Notification
		if got.Decode(b) != nil {
			return
		}
		if err := again.Decode(got.Append(nil)); err != nil {
			t.Fatalf("%x was read, but not what is built from it: %v", b, err)
		}
		if diff := cmp.Diff(got, again, sameCNP); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestCNPDoesNotAllocate(t *testing.T) {
	n := cnp()
	buf := make([]byte, 0, packet.CNPLen)
	if a := testing.AllocsPerRun(100, func() { buf = n.Append(buf[:0]) }); a != 0 {
		t.Errorf("%v allocations", a)
	}
}
