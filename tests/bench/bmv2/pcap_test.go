package bmv2

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// wait is how long both switches hold the files back, in seconds: enough to configure
// them. It does not count.
const wait = 5

// pcap takes packets from files to files. The time is what the output files' timestamps
// say, from the first frame to the last; what was read is the number of frames in the
// input files, for both switches read all of them.
func pcap(t *testing.T, k kind, p *program) sample {
	dir := t.TempDir()
	flags := []string{"--use-files", fmt.Sprint(wait)}
	for port := 1; port <= ports; port++ {
		inputFile(t, p, dir, port)
		flags = append(flags, "-i", fmt.Sprintf("%d@p%d", port, port))
	}
	started := time.Now()
	s := start(t, k, p, dir, flags...)
	if d := time.Since(started); d > wait*time.Second {
		t.Fatalf("configuring took %v, longer than the files are held back", d)
	}
	u0, s0 := cpu(t, s)
	settle(t, dir, 3*time.Minute)
	u1, s1 := cpu(t, s)
	s.Stop()
	var out output
	for port := 1; port <= ports; port++ {
		out.read(t, filepath.Join(dir, fmt.Sprintf("p%d_out.pcap", port)))
	}
	if out.frames == 0 {
		t.Fatal("nothing came out")
	}
	read, written, took := float64(*packets), float64(out.frames), out.last.Sub(out.first).Seconds()
	return sample{
		{"packets read/s", read / took, 1},
		{"packets written/s", written / took, 1},
		{"packets lost of 1000", 1000 * (1 - written/read), 0},
		{"user CPU ns per packet read", float64(u1-u0) / read, -1},
		{"kernel CPU ns per packet read", float64(s1-s0) / read, 0},
	}
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

// settle waits until the output files have begun to grow and then stopped for a while.
func settle(t *testing.T, dir string, patience time.Duration) {
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
		time.Sleep(50 * time.Millisecond)
		if n := size(); n != last {
			last, changed = n, time.Now()
		}
		if last > 24*ports && time.Since(changed) > time.Second { // 24 bytes are the header
			return
		}
	}
	t.Fatal("the output files did not stop growing")
}

// output adds up output files.
type output struct {
	frames      int
	first, last time.Time
}

func (out *output) read(t *testing.T, path string) {
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	r, err := pcapgo.NewReader(bufio.NewReaderSize(f, 1<<20))
	must(t, err)
	for {
		_, ci, err := r.ZeroCopyReadPacketData()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return // the end, or a record that the switch did not finish
		}
		must(t, err)
		if out.frames++; out.first.IsZero() || ci.Timestamp.Before(out.first) {
			out.first = ci.Timestamp
		}
		if ci.Timestamp.After(out.last) {
			out.last = ci.Timestamp
		}
	}
}
