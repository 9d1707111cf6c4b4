package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// wait is how long both switches hold the files back, in seconds: enough to configure
// them. It does not count.
const wait = 5

// pcap takes packets from files to files. The time is what the output files' timestamps
// say, from the first frame to the last; what was read is the number of frames in the
// input files, for both switches read all of them.
func (o *options) pcap(k kind, p *program) (sample, error) {
	dir, err := os.MkdirTemp(os.Getenv(inside), "pcap-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	flags := []string{"--use-files", fmt.Sprint(wait)}
	for port := 1; port <= ports; port++ {
		if err := o.inputFile(p, dir, port); err != nil {
			return nil, err
		}
		flags = append(flags, "-i", fmt.Sprintf("%d@p%d", port, port))
	}
	started := time.Now()
	t, err := o.start(k, p, dir, flags...)
	if err != nil {
		return nil, err
	}
	defer t.stop()
	if d := time.Since(started); d > wait*time.Second {
		return nil, fmt.Errorf("configuring took %v, longer than the files are held back", d)
	}
	u0, s0 := t.cpu()
	if err := settle(dir, 3*time.Minute); err != nil {
		return nil, err
	}
	u1, s1 := t.cpu()
	t.stop()
	t.done <- nil
	var out output
	for port := 1; port <= ports; port++ {
		if err := out.read(filepath.Join(dir, fmt.Sprintf("p%d_out.pcap", port))); err != nil {
			return nil, err
		}
	}
	if out.frames == 0 {
		return nil, errors.New("nothing came out")
	}
	seconds := float64(out.last-out.first) / 1e6
	return sample{
		{"packets read/s", float64(o.packets) / seconds, 1},
		{"packets written/s", float64(out.frames) / seconds, 1},
		{"packets lost of 1000", 1000 * (1 - float64(out.frames)/float64(o.packets)), 0},
		{"user CPU ns per packet read", float64(u1-u0) / float64(o.packets), -1},
		{"kernel CPU ns per packet read", float64(s1-s0) / float64(o.packets), 0},
	}, nil
}

// inputFile writes the frames of one port, with timestamps that interleave the ports.
func (o *options) inputFile(p *program, dir string, port int) error {
	f, err := os.Create(filepath.Join(dir, fmt.Sprintf("p%d_in.pcap", port)))
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	head := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	head = append(head, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0)
	if _, err := w.Write(head); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(1, uint64(port)))
	frames := make([][]byte, 4096)
	for i := range frames {
		frames[i] = p.frame(r, port, o.size)
	}
	var rec [16]byte
	for i := range o.packets / ports {
		at := uint32(i*ports + port)
		frame := frames[i%len(frames)]
		binary.LittleEndian.PutUint32(rec[0:], 1000000000+at/1000000)
		binary.LittleEndian.PutUint32(rec[4:], at%1000000)
		binary.LittleEndian.PutUint32(rec[8:], uint32(len(frame)))
		binary.LittleEndian.PutUint32(rec[12:], uint32(len(frame)))
		if _, err := w.Write(rec[:]); err != nil {
			return err
		}
		if _, err := w.Write(frame); err != nil {
			return err
		}
	}
	return w.Flush()
}

// settle waits until the output files have begun to grow and then stopped for a while.
func settle(dir string, patience time.Duration) error {
	const step = 50 * time.Millisecond
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
		time.Sleep(step)
		if n := size(); n != last {
			last, changed = n, time.Now()
		}
		if last > 24*ports && time.Since(changed) > time.Second {
			return nil
		}
	}
	return errors.New("the output files did not stop growing")
}

// output adds up output files; times are in microseconds.
type output struct {
	frames      int
	first, last int64
}

func (out *output) read(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<20)
	var head [24]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	nanos := binary.LittleEndian.Uint32(head[:]) == 0xa1b23c4d
	for {
		var rec [16]byte
		if _, err := io.ReadFull(r, rec[:]); err != nil {
			return nil // the end, or a record that the switch did not finish
		}
		sub := int64(binary.LittleEndian.Uint32(rec[4:]))
		if nanos {
			sub /= 1000
		}
		at := int64(binary.LittleEndian.Uint32(rec[:]))*1e6 + sub
		if _, err := r.Discard(int(binary.LittleEndian.Uint32(rec[8:]))); err != nil {
			return nil
		}
		if out.frames++; out.first == 0 || at < out.first {
			out.first = at
		}
		out.last = max(out.last, at)
	}
}
