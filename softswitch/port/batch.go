package port

import "context"

// batchFrames and batchBytes bound a batch: enough to spread the cost of handing it over,
// little enough to stay in a core's cache.
const (
	batchFrames = 96
	batchBytes  = 64 << 10
)

// batches is how many batches a source has under way: one being filled, one being
// processed, and two between.
const batches = 4

// Frame is a frame that came in on a port.
type Frame struct {
	Port uint32
	Data []byte
}

// Batch is frames in the order in which they came. Who holds it owns it.
type Batch struct {
	Frames []Frame
	slab   []byte
	pool   pool
}

// NewBatch returns an empty batch that belongs to no source.
func NewBatch() *Batch { return newPool(1).get(context.Background()) }

// Add copies a frame into the batch; false when it is full.
func (b *Batch) Add(port uint32, data []byte) bool {
	frame := b.reserve(port, len(data))
	if frame == nil {
		return false
	}
	copy(frame, data)
	return true
}

// reserve adds a frame of n bytes to be filled in; nil when the batch is full.
func (b *Batch) reserve(port uint32, n int) []byte {
	if len(b.Frames) == cap(b.Frames) {
		return nil
	}
	if len(b.slab)+n > cap(b.slab) {
		if len(b.Frames) > 0 {
			return nil
		}
		b.slab = make([]byte, 0, n) // one frame larger than a batch
	}
	start := len(b.slab)
	b.slab = b.slab[:start+n]
	frame := b.slab[start : start+n : start+n]
	b.Frames = append(b.Frames, Frame{port, frame})
	return frame
}

// Release gives the batch back to its source; its frames are invalid then.
func (b *Batch) Release() {
	clear(b.Frames)
	b.Frames, b.slab = b.Frames[:0], b.slab[:0]
	b.pool <- b
}

// pool is a source's idle batches. When none is left the source waits, which is what
// holds a fast source back.
type pool chan *Batch

func newPool(n int) pool {
	p := make(pool, n)
	for range n {
		p <- &Batch{Frames: make([]Frame, 0, batchFrames), slab: make([]byte, 0, batchBytes), pool: p}
	}
	return p
}

// get returns an empty batch, nil when ctx ends first.
func (p pool) get(ctx context.Context) *Batch {
	select {
	case b := <-p:
		return b
	case <-ctx.Done():
		return nil
	}
}
