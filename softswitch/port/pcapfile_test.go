package port

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// FuzzPcapReader: any file is read to its end or refused, and frames lie within bounds.
func FuzzPcapReader(f *testing.F) {
	seed := filepath.Join(f.TempDir(), "seed.pcap")
	w, err := createPcap(seed)
	if err != nil {
		f.Fatal(err)
	}
	w.stamp(time.Unix(1, 2000))
	for _, n := range []int{0, 60, fileBuffer} {
		if err := w.write(make([]byte, n)); err != nil {
			f.Fatal(err)
		}
	}
	if err := w.close(); err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(seed)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)-1])
	f.Add(data[:30])
	f.Add([]byte("\xa1\xb2\x3c\x4d\x00\x02\x00\x04"))
	f.Add([]byte("\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x4d\x3c\x2b\x1a\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x1c\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "in.pcap")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := openPcap(path, 1)
		if err != nil {
			return
		}
		defer r.file.Close()
		for range len(data) {
			if r.next() != nil || r.end {
				return
			}
			if len(r.data) > snapLength {
				t.Fatalf("a frame of %d bytes", len(r.data))
			}
		}
	})
}

// TestPcapWriter: frames that fill many buffers are in the file in order, whichever goroutine
// wrote them.
func TestPcapWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.pcap")
	w, err := createPcap(path)
	if err != nil {
		t.Fatal(err)
	}
	size := func(i int) int {
		if i == 900 { // more than a buffer
			return fileBuffer
		}
		return []int{60, 1500, 0, 9000, 61}[i%5]
	}
	const frames = 2000
	for i := range frames {
		if i%500 == 0 { // once before the first buffer is full, then while the goroutine writes
			if err := w.flush(); err != nil {
				t.Fatal(err)
			}
		}
		frame := make([]byte, size(i))
		if len(frame) > 0 {
			frame[0] = byte(i)
		}
		w.stamp(time.Unix(int64(i), 0))
		if err := w.write(frame); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	r, err := openPcap(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.file.Close()
	for i := range frames {
		if err := r.next(); err != nil || r.end {
			t.Fatalf("frame %d: %v, end %v", i, err, r.end)
		}
		if len(r.data) != size(i) || len(r.data) > 0 && r.data[0] != byte(i) || r.at != int64(i)*1e9 {
			t.Fatalf("frame %d has %d bytes and time %d", i, len(r.data), r.at)
		}
	}
	if err := r.next(); err != nil || !r.end {
		t.Errorf("after the last frame: %v, end %v", err, r.end)
	}
}

// TestPcapWriterFails: the next flush and the end return the goroutine's error.
func TestPcapWriterFails(t *testing.T) {
	w, err := createPcap(filepath.Join(t.TempDir(), "out.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	w.file.Close()
	for range 10 {
		if err := w.write(make([]byte, fileBuffer/2)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.flush(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("flush: %v", err)
	}
	if err := w.close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("close: %v", err)
	}
}

// TestPcapng: the frames and times of a file as Wireshark writes it are read, and a damaged file
// is refused.
func TestPcapng(t *testing.T) {
	var file bytes.Buffer
	w, err := pcapgo.NewNgWriter(&file, layers.LinkTypeEthernet)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		frame := bytes.Repeat([]byte{byte(i)}, 60+i)
		info := gopacket.CaptureInfo{Timestamp: time.Unix(int64(i), 5000), CaptureLength: len(frame), Length: len(frame)}
		if err := w.WritePacket(info, frame); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "in.pcapng")
	read := func(data []byte) (frames int, err error) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := openPcap(path, 1)
		if err != nil {
			return 0, err
		}
		defer r.file.Close()
		for ; ; frames++ {
			if err := r.next(); err != nil || r.end {
				return frames, err
			}
			if len(r.data) != 60+frames || r.data[0] != byte(frames) || r.at != int64(frames)*1e9+5000 {
				t.Errorf("frame %d: %d bytes at %d", frames, len(r.data), r.at)
			}
		}
	}
	if n, err := read(file.Bytes()); n != 3 || err != nil {
		t.Errorf("%d frames, %v; want 3", n, err)
	}
	if n, err := read(file.Bytes()[:file.Len()-20]); n != 2 || err == nil {
		t.Errorf("cut off: %d frames, %v; want 2 and an error", n, err)
	}
}
