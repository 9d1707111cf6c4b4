package packet_test

import (
	"bytes"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/packet"
)

// tshark returns a line per frame with Wireshark's values of some fields, separated by "|".
func tshark(t *testing.T, frames [][]byte, fields ...string) []string {
	t.Helper()
	return tsharkOf(t, layers.LinkTypeEthernet, frames, nil, fields...)
}

// tsharkOf is tshark with arguments of its own, for frames of a link type.
func tsharkOf(t *testing.T, link layers.LinkType, frames [][]byte, args []string, fields ...string) []string {
	t.Helper()
	program, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not on the PATH: it comes with Debian's tshark")
	}
	file := filepath.Join(t.TempDir(), "frames.pcap")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w := pcapgo.NewWriter(out)
	if err := w.WriteFileHeader(65536, link); err != nil {
		t.Fatal(err)
	}
	for _, wire := range frames {
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: len(wire), Length: len(wire)}, wire); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"-r", file, "-o", "ip.check_checksum:TRUE", "-T", "fields", "-E", "separator=|"}, args...)
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	var errs bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stderr = &errs
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s", err, errs.String())
	}
	return strings.Split(strings.TrimRight(string(text), "\n"), "\n")
}

func compareLines(t *testing.T, got, want []string) {
	t.Helper()
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Errorf("frame %d: tshark reads %q, want %q", i, got[min(i, len(got)-1)], want[i])
		}
	}
}

// Wireshark decodes our frames: plain RoCEv2 to the BTH's last field, and with a shim the UDP datagram.
func TestTsharkReadsOurFrames(t *testing.T) {
	plain, answer, shim := data(), ack(), data()
	plain.DstPort, plain.Shim = packet.RoCEv2Port, maxqd.Shim{}
	answer.DstPort, answer.Shim = packet.RoCEv2Port, maxqd.Shim{}
	answer.AETH = packet.AETH{Syndrome: packet.NAKSequence, MSN: 5}

	var frames [][]byte
	for _, f := range []packet.Frame{plain, answer, shim} {
		frames = append(frames, f.Append(nil))
	}
	got := tshark(t, frames,
		"infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.psn", "infiniband.aeth.msn",
		"infiniband.aeth.syndrome.error_code", "ip.checksum.status", "udp.dstport", "_ws.malformed")
	compareLines(t, got, []string{
		"1|0x123456|11259375|||1|4791|",
		"17|0x000007|9|5|0|1|4791|",
		"||||" + "|1|50151|",
	})
}

// Wireshark decodes our PFC frames as IEEE 802.1Qbb, with their classes and times, without a warning. It warns
// about the frames that Decode refuses.
func TestTsharkReadsPFC(t *testing.T) {
	p := pfcFrame()
	good, reserved, unicast := p.Append(nil), p.Append(nil), p.Append(nil)
	reserved[16], unicast[0] = 1, 2
	got := tshark(t, [][]byte{good, reserved, unicast},
		"eth.dst", "macc.opcode", "macc.cbfc.enbv", "macc.cbfc.pause_time.c0", "macc.cbfc.pause_time.c3", "macc.cbfc.pause_time.c7",
		"macc.cbfc.enbv.not_zero", "macc.dst_address_invalid", "_ws.malformed")
	compareLines(t, got, []string{
		"01:80:c2:00:00:01|0x0101|0x0088|0|65535|0|||",
		"01:80:c2:00:00:01|0x0101|0x0188|0|65535|0|1||",
		"02:80:c2:00:00:01|0x0101|0x0088|0|65535|0||1|",
	})
}

// Wireshark decodes our CNPs as RoCEv2 to the BTH's last field. Version 4.0 does not name their opcode or BECN,
// and checks no ICRC; TestICRCOfHardware does that.
func TestTsharkReadsCNP(t *testing.T) {
	n, six := cnp(), cnp()
	six.FlowSrc, six.FlowDst = netip.MustParseAddr("2001:db8:1::1"), netip.MustParseAddr("2001:db8:4::1")
	got := tshark(t, [][]byte{n.Append(nil), six.Append(nil)},
		"_ws.col.Protocol", "ip.src", "ipv6.src", "ip.dst", "ipv6.dst", "ip.dsfield.dscp", "ipv6.tclass.dscp", "ipv6.flow", "ip.checksum.status", "udp.dstport",
		"infiniband.bth.opcode", "infiniband.bth.p_key", "infiniband.bth.destqp", "infiniband.bth.psn", "_ws.malformed")
	compareLines(t, got, []string{
		"RRoCE|10.0.4.1||10.0.1.1||48|||1|4791|129|65535|0x000118|0|",
		"RRoCE||2001:db8:4::1||2001:db8:1::1||48|0x00c350||4791|129|65535|0x000118|0|",
	})
}
