package port

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Files are ports that read frames from pcap files and write the frames they send to other pcap
// files, as BMv2's --use-files does: interface X reads X_in.pcap and writes X_out.pcap. The frames
// of all files are merged by timestamp and delivered as fast as the switch accepts them
// (pcap_file.cpp, PcapFilesReader without respectTiming).
type Files struct {
	readers []*pcapReader
	wait    time.Duration
	pool    pool
}

// fileFrames bounds a batch of frames from files. It is large, because nobody waits for the first
// frame, and because waking another goroutine for a batch takes as long as dozens of packets.
const fileFrames = 2048

// OpenFiles opens the files of ports. Run waits for the time wait before it reads.
func OpenFiles(ports []Named, wait time.Duration) (*Files, map[uint32]Port, error) {
	f := &Files{wait: wait, pool: newPool(batches, fileFrames, fileBuffer)}
	out := map[uint32]Port{}
	for _, p := range ports {
		err := f.add(p, out)
		if err != nil {
			for _, p := range out {
				err = errors.Join(err, p.Close())
			}
			return nil, nil, errors.Join(err, f.close())
		}
	}
	return f, out, nil
}

func (f *Files) add(p Named, out map[uint32]Port) error {
	r, err := openPcap(p.Name+"_in.pcap", p.Number)
	if err != nil {
		return err
	}
	f.readers = append(f.readers, r)
	w, err := createPcap(p.Name + "_out.pcap")
	if err != nil {
		return err
	}
	out[p.Number] = &filePort{w: w}
	return nil
}

func (f *Files) close() (err error) {
	for _, r := range f.readers {
		err = errors.Join(err, r.file.Close())
	}
	return err
}

// Run delivers the frames of all files and returns nil at their end.
func (f *Files) Run(ctx context.Context, deliver func(*Batch)) (err error) {
	defer func() { err = errors.Join(err, f.close()) }()
	select {
	case <-time.After(f.wait):
	case <-ctx.Done():
		return nil
	}
	for _, r := range f.readers {
		if err := r.next(); err != nil {
			return err
		}
	}
	b := f.pool.get(ctx)
	for b != nil {
		r := f.earliest()
		if r == nil {
			deliver(b)
			return nil
		}
		if !b.Add(r.port, r.data) {
			deliver(b)
			b = f.pool.get(ctx)
			continue
		}
		if err := r.next(); err != nil {
			deliver(b)
			return err
		}
	}
	return nil
}

// earliest returns the file whose frame is next, or nil if all files have ended.
func (f *Files) earliest() (first *pcapReader) {
	for _, r := range f.readers {
		if !r.end && (first == nil || r.at < first.at) {
			first = r
		}
	}
	return first
}

// filePort writes the frames sent by a port to a pcap file. Frames between two calls of Flush get
// one timestamp.
type filePort struct {
	counters
	w     *pcapWriter
	at    time.Time // zero until the first frame after Flush
	begun time.Time // when the oldest frame that is not in the file yet was sent
}

func (p *filePort) Send(frame []byte) {
	if p.at.IsZero() {
		p.at = time.Now()
		if p.begun.IsZero() {
			p.begun = p.at
		}
		p.w.stamp(p.at)
	}
	if err := p.w.write(frame); err != nil {
		p.txErrors.Add(1)
	}
}

func (p *filePort) Flush() error {
	p.at, p.begun = time.Time{}, time.Time{}
	return p.w.flush()
}

// fileDelay bounds the time for which frames stay in memory, so that a file is written in large
// pieces.
const fileDelay = 20 * time.Millisecond

// FlushSoon flushes if the oldest frame has waited for fileDelay. A busy switch calls it in place
// of most calls of Flush.
func (p *filePort) FlushSoon() error {
	p.at = time.Time{}
	if !p.begun.IsZero() && time.Since(p.begun) >= fileDelay {
		p.begun = time.Time{}
		p.w.pass()
	}
	return nil
}

func (p *filePort) Up() bool     { return true }
func (p *filePort) Close() error { return p.w.close() }

// Direction is the direction of a frame through a port.
type Direction uint8

// The directions, as BMv2 names its capture files.
const (
	In Direction = iota
	Out
)

// Capture writes the frames of ports to the files DIR/NAME_in.pcap and DIR/NAME_out.pcap, as
// BMv2's --pcap does. The switch's lock guards it.
type Capture struct {
	ports map[uint32]*[2]*pcapWriter
	err   error
}

// NewCapture makes the files of the named ports in an existing directory.
func NewCapture(dir string, ports []Named) (*Capture, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("pcap directory %q: want an existing directory", dir)
	}
	c := &Capture{ports: map[uint32]*[2]*pcapWriter{}}
	for _, p := range ports {
		pair := new([2]*pcapWriter)
		c.ports[p.Number] = pair
		for d, suffix := range []string{"_in.pcap", "_out.pcap"} {
			w, err := createPcap(filepath.Join(dir, p.Name+suffix))
			if err != nil {
				return nil, errors.Join(err, c.Close())
			}
			pair[d] = w
		}
	}
	return c, nil
}

// Named is a port's number and the name of its interface.
type Named struct {
	Number uint32
	Name   string
}

// Frame records a frame. It ignores frames of ports without a file. The first error stops the
// capture; Flush and Close return it.
func (c *Capture) Frame(port uint32, d Direction, frame []byte, at time.Time) {
	if pair := c.ports[port]; pair != nil && c.err == nil {
		pair[d].stamp(at)
		c.err = pair[d].write(frame)
	}
}

// Flush writes the recorded frames to the files.
func (c *Capture) Flush() error {
	for _, pair := range c.ports {
		for _, w := range pair {
			if c.err == nil {
				c.err = w.flush()
			}
		}
	}
	return c.err
}

// Close ends the capture.
func (c *Capture) Close() error {
	err := c.err
	for _, pair := range c.ports {
		for _, w := range pair {
			if w != nil {
				err = errors.Join(err, w.close())
			}
		}
	}
	c.ports = nil
	return err
}
