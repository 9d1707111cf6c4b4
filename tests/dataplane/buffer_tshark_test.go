package dataplane

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

// testBufferTshark decodes the PFC frames of a queue and of a port with Wireshark.
func testBufferTshark(r *rig) {
	program, err := exec.LookPath("tshark")
	if err != nil {
		r.Skip("tshark is not on the PATH")
	}
	b := newBufferRig(r)
	b.rate = 4 // each burst arrives before its first packet leaves, however busy the machine is
	c := bufferConfig(headroom.Static)
	c.Quanta = 1234
	c.MAC = [][6]byte{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 3}, {2, 0, 0, 0, 0, 4}}
	for i := range c.MMU.Ports {
		c.MMU.Ports[i].Rate = 10 * units.Kbps // no PAUSE is refreshed
	}
	var frames [][]byte
	collect := func(port uint32, n int) {
		b.Helper()
		for range n {
			f, ok := b.target.Receive(port, patience)
			if !ok {
				b.Fatalf("port %d sends no PFC frame, want %d", port, n)
			}
			frames = append(frames, f.Data)
		}
	}
	// A queue stops and resumes.
	b.run(c)
	b.slow()
	for range 4 {
		b.send(3, bufferFrame(r, 3, slowPort, 5))
	}
	collect(3, 1)
	b.receive(slowPort, 4)
	collect(3, 1)
	// A queue stops, then the whole port; the port resumes without the queue.
	dsh := bufferConfig(headroom.DSH)
	c.MMU = dsh.MMU
	c.MMU.Alpha = -3
	for i := range c.MMU.Ports {
		c.MMU.Ports[i].Rate = 10 * units.Kbps
	}
	b.run(c)
	b.slow()
	for range 16 {
		b.send(4, bufferFrame(r, 4, slowPort, 6))
	}
	collect(4, 2)
	b.receive(slowPort, 16)
	collect(4, 2)
	b.quiet()

	const head = "0x0101|01:80:c2:00:00:01|02:00:00:00:00:0"
	want := []string{
		head + "3|0x0020|0|0|0|0|0|1234|0|0",
		head + "3|0x0020|0|0|0|0|0|0|0|0",
		head + "4|0x0040|0|0|0|0|0|0|1234|0",
		head + "4|0x00ff|1234|1234|1234|1234|1234|1234|1234|1234",
		head + "4|0x00bf|0|0|0|0|0|0|0|0",
		head + "4|0x0040|0|0|0|0|0|0|0|0",
	}
	fields := []string{"macc.opcode", "eth.dst", "eth.src", "macc.cbfc.enbv"}
	for class := range 8 {
		fields = append(fields, fmt.Sprintf("macc.cbfc.pause_time.c%d", class))
	}
	got := tshark(r.T, program, frames, fields)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		r.Errorf("tshark reads\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// tshark returns a line per frame with Wireshark's values of some fields, separated by "|".
func tshark(t *testing.T, program string, frames [][]byte, fields []string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "frames.pcap")
	out, err := os.Create(file)
	must(t, err)
	w := pcapgo.NewWriter(out)
	must(t, w.WriteFileHeader(65536, layers.LinkTypeEthernet))
	for _, wire := range frames {
		must(t, w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: len(wire), Length: len(wire)}, wire))
	}
	must(t, out.Close())
	args := []string{"-r", file, "-T", "fields", "-E", "separator=|"}
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
