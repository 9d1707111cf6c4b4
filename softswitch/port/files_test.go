package port_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/headgate/headgate/softswitch/port"
)

// writePcap writes frames that consist of one text each, one at each of the given
// milliseconds.
func writePcap(t *testing.T, path string, at []int, snap int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := pcapgo.NewWriter(f)
	if err := w.WriteFileHeader(65536, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	for _, ms := range at {
		data := fmt.Appendf(nil, "frame at %d", ms)
		n := min(snap, len(data))
		info := gopacket.CaptureInfo{Timestamp: time.UnixMilli(int64(ms)), CaptureLength: n, Length: len(data)}
		if err := w.WritePacket(info, data[:n]); err != nil {
			t.Fatal(err)
		}
	}
}

func readPcap(t *testing.T, path string) (frames []string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for {
		data, _, err := r.ReadPacketData()
		if err != nil {
			return frames
		}
		frames = append(frames, string(data))
	}
}

func TestFilesMergeByTime(t *testing.T) {
	t.Chdir(t.TempDir())
	writePcap(t, "a_in.pcap", []int{1, 3, 5}, 99)
	writePcap(t, "b_in.pcap", []int{2, 3, 3, 9}, 99)
	writePcap(t, "c_in.pcap", nil, 99)
	files, ports, err := port.OpenFiles([]port.Named{{Number: 1, Name: "a"}, {Number: 2, Name: "b"}, {Number: 3, Name: "c"}}, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	err = files.Run(t.Context(), func(b *port.Batch) {
		for _, f := range b.Frames {
			got = append(got, fmt.Sprintf("%d: %s", f.Port, f.Data))
			ports[3].Send(f.Data)
		}
		b.Release()
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"1: frame at 1", "2: frame at 2", "1: frame at 3", "2: frame at 3", "2: frame at 3", "1: frame at 5", "2: frame at 9"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if err := ports[3].Flush(); err != nil {
		t.Fatal(err)
	}
	if out := readPcap(t, "c_out.pcap"); len(out) != 7 || out[6] != "frame at 9" {
		t.Errorf("c_out.pcap holds %q", out)
	}
	for _, p := range ports {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if out := readPcap(t, "a_out.pcap"); len(out) != 0 {
		t.Errorf("a_out.pcap holds %q", out)
	}
}

func TestFilesManyFrames(t *testing.T) {
	t.Chdir(t.TempDir())
	at := make([]int, 1000)
	for i := range at {
		at[i] = i
	}
	writePcap(t, "a_in.pcap", at, 99)
	files, _, err := port.OpenFiles([]port.Named{{Number: 1, Name: "a"}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := files.Run(t.Context(), func(b *port.Batch) {
		for _, f := range b.Frames {
			if want := fmt.Sprintf("frame at %d", n); string(f.Data) != want {
				t.Fatalf("got %q, want %q", f.Data, want)
			}
			n++
		}
		b.Release()
	}); err != nil || n != len(at) {
		t.Errorf("%d frames, %v, want %d", n, err, len(at))
	}
}

func TestFilesErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	_, _, err := port.OpenFiles([]port.Named{{Number: 1, Name: "a"}}, 0)
	if err == nil || !strings.Contains(err.Error(), "a_in.pcap: no such file") {
		t.Errorf("missing file: %v", err)
	}
	if err := os.WriteFile("a_in.pcap", []byte("not a capture, but longer than a file header"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err = port.OpenFiles([]port.Named{{Number: 1, Name: "a"}}, 0); err == nil || !strings.Contains(err.Error(), "a_in.pcap: not a pcap file") {
		t.Errorf("wrong file: %v", err)
	}
	writePcap(t, "a_in.pcap", []int{1, 2}, 4)
	files, _, err := port.OpenFiles([]port.Named{{Number: 1, Name: "a"}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Run(t.Context(), (*port.Batch).Release); err == nil || !strings.Contains(err.Error(), "a_in.pcap: a frame of 10 bytes was captured with 4 bytes only") {
		t.Errorf("cut frames: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if files, _, err = port.OpenFiles([]port.Named{{Number: 1, Name: "a"}}, time.Hour); err != nil || files.Run(ctx, nil) != nil {
		t.Errorf("a cancelled wait: %v", err)
	}
}

// Whatever a capture file holds, reading it ends with frames or an error.
func FuzzFiles(f *testing.F) {
	dir := f.TempDir()
	seed := &testing.T{}
	writePcap(seed, filepath.Join(dir, "seed"), []int{1, 2}, 99)
	data, err := os.ReadFile(filepath.Join(dir, "seed"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)-3])
	f.Add(slices.Concat(data[:40], []byte{0xff, 0xff, 0xff, 0xff}))
	f.Fuzz(func(t *testing.T, data []byte) {
		t.Chdir(t.TempDir())
		if err := os.WriteFile("a_in.pcap", data, 0o600); err != nil {
			t.Fatal(err)
		}
		files, ports, err := port.OpenFiles([]port.Named{{Number: 1, Name: "a"}}, 0)
		if err != nil {
			return
		}
		_ = files.Run(t.Context(), (*port.Batch).Release)
		_ = ports[1].Close()
	})
}

func TestCapture(t *testing.T) {
	dir := t.TempDir()
	c, err := port.NewCapture(dir, []port.Named{{Number: 1, Name: "veth1"}})
	if err != nil {
		t.Fatal(err)
	}
	c.Frame(1, port.In, []byte("in"), time.Now())
	c.Frame(1, port.Out, []byte("out"), time.Now())
	c.Frame(2, port.Out, []byte("another port"), time.Now())
	if err := c.Flush(); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"veth1_in.pcap": "in", "veth1_out.pcap": "out"} {
		if got := readPcap(t, filepath.Join(dir, name)); !slices.Equal(got, []string{want}) {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := port.NewCapture(filepath.Join(dir, "none"), nil); err == nil || !strings.HasSuffix(err.Error(), "want an existing directory") {
		t.Errorf("missing directory: %v", err)
	}
}
