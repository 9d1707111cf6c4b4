package packet_test

import (
	"bytes"
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

// Wireshark reads what we send: plain RoCEv2 to the BTH's last field, and with a shim the
// UDP datagram around it.
func TestTsharkReadsOurFrames(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not on the PATH")
	}
	plain, answer, shim := data(), ack(), data()
	plain.DstPort, plain.Shim = packet.RoCEv2Port, maxqd.Shim{}
	answer.DstPort, answer.Shim = packet.RoCEv2Port, maxqd.Shim{}
	answer.AETH = packet.AETH{Syndrome: packet.NAKSequence, MSN: 5}

	file := filepath.Join(t.TempDir(), "frames.pcap")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w := pcapgo.NewWriter(out)
	if err := w.WriteFileHeader(65536, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	for _, f := range []packet.Frame{plain, answer, shim} {
		wire := f.Append(nil)
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: len(wire), Length: len(wire)}, wire); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd := exec.Command(tshark, "-r", file, "-o", "ip.check_checksum:TRUE", "-T", "fields", "-E", "separator=|",
		"-e", "infiniband.bth.opcode", "-e", "infiniband.bth.destqp", "-e", "infiniband.bth.psn", "-e", "infiniband.aeth.msn",
		"-e", "infiniband.aeth.syndrome.error_code", "-e", "ip.checksum.status", "-e", "udp.dstport", "-e", "_ws.malformed")
	cmd.Stderr = &errs
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s", err, errs.String())
	}
	want := []string{
		"1|0x123456|11259375|||1|4791|",
		"17|0x000007|9|5|0|1|4791|",
		"||||" + "|1|50151|",
	}
	got := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Errorf("frame %d: tshark reads %q, want %q", i, got[min(i, len(got)-1)], want[i])
		}
	}
}
