package port

import (
	"os"
	"path/filepath"
	"testing"
	"time"
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
