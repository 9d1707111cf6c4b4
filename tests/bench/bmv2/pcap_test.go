package bmv2

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/headgate/headgate/tests/dataplane/bmv2"
)

// wait is the time, in seconds, for which both switches hold back the files, so that they can be configured. It
// does not count.
const wait = 5

// pcap takes packets from files to files. The time is that between the first and the last timestamp in the output
// files. The number of packets read is that in the input files, because every switch reads all of them.
func pcap(t *testing.T, k kind, p *program) sample {
	s, _ := throughFiles(t, p, func(dir string) *bmv2.Process { return startFiles(t, k, p, dir) })
	return s
}

// throughFiles also returns the output.
func throughFiles(t *testing.T, p *program, start func(dir string) *bmv2.Process) (sample, output) {
	dir := t.TempDir()
	for port := 1; port <= ports; port++ {
		inputFile(t, p, dir, port)
	}
	s := start(dir)
	u0, s0 := cpu(t, s)
	var u1, s1 time.Duration
	err := settle(dir, 3*time.Minute, func() { u1, s1 = cpu(t, s) })
	must(t, s.Explain(err))
	s.Stop()
	var out output
	for port := 1; port <= ports; port++ {
		out.read(t, filepath.Join(dir, fmt.Sprintf("p%d_out.pcap", port)))
	}
	read, written, took := float64(*packets), float64(out.frames), out.last.Sub(out.first).Seconds()
	return sample{
		{"packets read/s", read / took, 1},
		{"packets written/s", written / took, 1},
		{"packets lost of 1000", 1000 * (1 - written/read), 0},
		{"user CPU ns per packet read", float64(u1-u0) / read, -1},
		{"kernel CPU ns per packet read", float64(s1-s0) / read, 0},
	}, out
}

// startFiles runs a switch that reads p1_in.pcap and so on.
func startFiles(t *testing.T, k kind, p *program, dir string) *bmv2.Process {
	if k == swx {
		s, _ := startSWX(t, swxFiles, dir)
		return s
	}
	started := time.Now()
	s := start(t, k, p, dir, fileFlags()...)
	if d := time.Since(started); d > wait*time.Second {
		t.Fatalf("configuring took %v, longer than the files are held back", d)
	}
	return s
}

// fileFlags are the flags of Headgate's switch and of BMv2.
func fileFlags() []string {
	flags := []string{"--use-files", fmt.Sprint(wait)}
	for port := 1; port <= ports; port++ {
		flags = append(flags, "-i", fmt.Sprintf("%d@p%d", port, port))
	}
	return flags
}

// inputFile writes the frames of one port, with timestamps that interleave the ports.
func inputFile(t *testing.T, p *program, dir string, port int) {
	f, err := os.Create(filepath.Join(dir, fmt.Sprintf("p%d_in.pcap", port)))
	must(t, err)
	defer f.Close()
	buf := bufio.NewWriterSize(f, 1<<20)
	w := pcapgo.NewWriter(buf)
	must(t, w.WriteFileHeader(1<<18, layers.LinkTypeEthernet))
	r := rand.New(rand.NewPCG(1, uint64(port)))
	frames := make([][]byte, 4096)
	for i := range frames {
		frames[i] = p.frame(r, port, *size)
	}
	for i := range *packets / ports {
		frame := frames[i%len(frames)]
		at := time.Unix(1000000000, 0).Add(time.Duration(i*ports+port) * time.Microsecond)
		must(t, w.WritePacket(gopacket.CaptureInfo{Timestamp: at, CaptureLength: len(frame), Length: len(frame)}, frame))
	}
	must(t, buf.Flush())
}

// settle waits until the output files have grown and then stopped growing for a while. It calls grown each time
// they have grown.
func settle(dir string, patience time.Duration, grown func()) error {
	size := func() (n int64) {
		for port := 1; port <= ports; port++ {
			if st, err := os.Stat(filepath.Join(dir, fmt.Sprintf("p%d_out.pcap", port))); err == nil {
				n += st.Size()
			}
		}
		return n
	}
	begin := time.Now()
	last, changed := int64(0), begin
	for time.Since(begin) < patience {
		time.Sleep(5 * time.Millisecond)
		if n := size(); n != last {
			last, changed = n, time.Now()
			grown()
		}
		if last > 24*ports && time.Since(changed) > time.Second { // 24 bytes are the header
			return nil
		}
	}
	if last <= 24*ports {
		return errors.New("nothing came out")
	}
	return errors.New("the output files did not stop growing")
}

// output sums up output files.
type output struct {
	frames      int
	first, last time.Time
	sum         uint64 // of the frames' checksums: equal for the same frames in any order
}

var ecma = crc64.MakeTable(crc64.ECMA)

func (out *output) read(t *testing.T, path string) {
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	r, err := pcapgo.NewReader(bufio.NewReaderSize(f, 1<<20))
	must(t, err)
	for {
		frame, ci, err := r.ZeroCopyReadPacketData()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return // the end, or an incomplete record
		}
		must(t, err)
		out.sum += crc64.Checksum(frame, ecma)
		if out.frames++; out.first.IsZero() || ci.Timestamp.Before(out.first) {
			out.first = ci.Timestamp
		}
		if ci.Timestamp.After(out.last) {
			out.last = ci.Timestamp
		}
	}
}
