package port

import (
	"context"
	"errors"
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

var _ Port = (*filePort)(nil)
var _ Source = (*Files)(nil)
