package port

import "context"

// batchFrames and batchBytes bound a batch of an interface. It is large enough to spread the cost
// of passing a batch on, and small enough to stay in a core's cache.
const (
	batchFrames = 96
	batchBytes  = 64 << 10
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
