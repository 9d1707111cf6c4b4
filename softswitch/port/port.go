// Package port holds the drivers behind the embedded switch's ports: network interfaces by
// AF_PACKET or AF_XDP, and pairs of pcap files. A driver receives frames in batches on a goroutine
// of its own. It sends frames on the goroutine that runs the switch. Start reading at Port and
// Source.
package port

import (
	"context"
	"net"
	"sync/atomic"
)

// Port sends the frames of one switch port. The switch's lock guards it.
type Port interface {
	// Send copies a frame and sends the copy, at the latest in Flush. A frame that cannot be sent
	// is dropped and counted. Send never blocks on a slow interface.
	Send(frame []byte)
	// Flush sends the frames that Send kept.
	Flush() error
	// Counters returns the driver's drop counters. Any goroutine may call it.
	Counters() Counters
	// Up reports whether the interface exists and is running. Any goroutine may call it.
	Up() bool
	// Close closes the port. Call it after the Run of its Source has returned.
	Close() error
}

// Chooser is a Port with several drivers. Who else uses its interface decides which driver it uses.
type Chooser interface {
	// Choose chooses again and returns the driver, afpacket or xdp, and the reason. Any goroutine
	// that may use users may call it.
	Choose(users *IfaceUsers) (driver, why string)
}

// Exists reports whether this network namespace has an interface of that name.
func Exists(name string) bool {
	_, err := net.InterfaceByName(name)
	return err == nil
}

// Source receives the frames of one port, or of several ports whose order matters.
type Source interface {
	// Run passes batches to deliver until ctx ends or the source has no more frames. Frames
	// of one port keep their order. deliver owns the batch until it calls Release.
	Run(ctx context.Context, deliver func(*Batch)) error
}

// Counters holds a driver's losses, and the work that it did for senders with offloads.
type Counters struct {
	RxOverruns  uint64 // frames that the kernel dropped because the switch was slow
	RxTruncated uint64 // dropped: longer than a buffer, and neither TCP nor merged UDP, which the port cuts
	TxErrors    uint64 // frames that the interface refused
	RxCompleted uint64 // frames whose sender left the checksum to its interface, so that the port computed it
	RxSplit     uint64 // long TCP segments and merged UDP datagrams that the port cut in place of the sender's interface
}

// counters are the atomic form of Counters. The driver writes them; any goroutine may read them.
type counters struct {
	rxOverruns, rxTruncated, txErrors, rxCompleted, rxSplit atomic.Uint64

	offload func() // see OnOffload
}

// OnOffload makes the driver call f when it completes the first checksum, on its reader's goroutine. It
// must be called before the Source runs.
func (c *counters) OnOffload(f func()) { c.offload = f }

func (c *counters) Counters() Counters {
	return Counters{c.rxOverruns.Load(), c.rxTruncated.Load(), c.txErrors.Load(), c.rxCompleted.Load(), c.rxSplit.Load()}
}

// batchFrames and batchBytes bound a batch of an interface. It is large enough to spread the cost
// of passing a batch on and to hold the parts of a long TCP segment, and small enough to stay in a
// core's cache.
const (
	batchFrames = 96
	batchBytes  = 128 << 10
)

// batches is the number of batches of a source: one being filled, one being processed, and two
// waiting in between.
const batches = 4

// Frame is a frame that arrived on a port.
type Frame struct {
	Port uint32
	Data []byte
}

// Batch is a sequence of frames in the order of their arrival. It has one owner at a time.
type Batch struct {
	Frames []Frame
	slab   []byte
	pool   pool
}

// NewBatch returns an empty batch for at most the given numbers of frames and bytes. It belongs to
// no source.
func NewBatch(frames, bytes int) *Batch {
	return &Batch{Frames: make([]Frame, 0, frames), slab: make([]byte, 0, bytes), pool: make(pool, 1)}
}

// Add copies a frame into the batch. It returns false if the batch is full.
func (b *Batch) Add(port uint32, data []byte) bool {
	frame := b.reserve(port, len(data))
	if frame == nil {
		return false
	}
	copy(frame, data)
	return true
}

// reserve adds a frame of n bytes and returns its bytes, to be filled in. It returns nil if the
// batch is full.
func (b *Batch) reserve(port uint32, n int) []byte {
	if len(b.Frames) == cap(b.Frames) {
		return nil
	}
	if len(b.slab)+n > cap(b.slab) {
		if len(b.Frames) > 0 {
			return nil
		}
		b.slab = make([]byte, 0, n) // a single frame may exceed the batch's bytes
	}
	start := len(b.slab)
	b.slab = b.slab[:start+n]
	frame := b.slab[start : start+n : start+n]
	b.Frames = append(b.Frames, Frame{port, frame})
	return frame
}

// Release returns the batch to its source. Its frames are invalid afterwards.
func (b *Batch) Release() {
	b.Frames, b.slab = b.Frames[:0], b.slab[:0]
	b.pool <- b
}

// pool holds a source's idle batches. If none is idle the source waits, so a fast source cannot
// overrun the switch.
type pool chan *Batch

func newPool(n, frames, bytes int) pool {
	p := make(pool, n)
	for range n {
		b := NewBatch(frames, bytes)
		b.pool = p
		p <- b
	}
	return p
}

// get returns an empty batch, or nil if ctx ends first.
func (p pool) get(ctx context.Context) *Batch {
	select {
	case b := <-p:
		return b
	case <-ctx.Done():
		return nil
	}
}
