package engine

import (
	"github.com/headgate/headgate/softswitch/engine/expr"
	"github.com/headgate/headgate/softswitch/engine/match"
	"github.com/headgate/headgate/softswitch/engine/phv"
	"github.com/headgate/headgate/units"
)

// Packet is a packet inside the switch, between ingress and egress. It has one owner at a time:
// Ingress and Egress give it to the engine, Enqueue and Recirculate to an Out, and Free to the pool.
type Packet struct {
	IngressPort uint32
	EgressPort  uint32
	Queue       uint8
	Bytes       int        // frame length as it arrived
	Size        int        // length as add_header and remove_header change it, bytes
	EnqTime     units.Time // when it was enqueued; set by the traffic manager
	DeqTime     units.Time
	EnqDepth    uint32 // packets in the queue before it
	DeqDepth    uint32

	in *Instance
	vector

	buf   []byte // headroom, frame, slack
	start int    // first byte of the frame as it entered ingress
	head  int    // first byte from which no header was parsed
	end   int    // index behind the last byte
	trunc int    // length to which the leaving frame is truncated
	base  int    // first byte that the parser saw

	// The places of the extracted headers, if these follow one another without gaps from base on.
	// Otherwise nPlaced is −1.
	placed  [16]placement
	nPlaced int

	now units.Time // time of the running pipeline

	parsed      bool // Ahead has parsed the packet
	exit        bool
	failed      bool // an assertion failed, so the packet is dropped
	checksumBad bool
	parserError uint32

	watch *watch // nil if the packet is neither logged nor timed

	eval  expr.Evaluator // evaluates expressions over this packet's vector
	wide  []uint64       // scratch for long keys of tables and transitions
	key   [4]uint64      // scratch for short keys of tables
	input phv.Writer     // scratch for the input of hashes and checksums, and for transition keys
	found match.Scratch
}

type vector = phv.Vector

// placement records where a header was extracted.
type placement struct {
	header uint32 // the header's index
	at     uint32
}

const (
	headroom = 128
	slack    = phv.Slack
	noTrunc  = int(^uint(0) >> 1)
)

// Free returns the packet to its instance's pool. The packet must not be used afterwards.
func (p *Packet) Free() {
	if p == nil || p.in == nil {
		return
	}
	p.empty()
	p.in.pool.Put(p)
}

// get returns a packet from the pool, with an empty header vector.
func (in *Instance) get() *Packet {
	p := in.pool.Get().(*Packet)
	p.reset()
	return p
}

// empty clears the header vector. It runs when a packet is finished, because the vector is then
// still in the cache, and because egress has less work to do than ingress.
func (p *Packet) empty() {
	l := p.in.prog.layout
	clear(p.W[l.Temporary:l.Words])
}

func (p *Packet) reset() {
	p.EgressPort, p.Queue = 0, 0
	p.EnqTime, p.DeqTime, p.EnqDepth, p.DeqDepth = 0, 0, 0, 0
	p.trunc, p.nPlaced = noTrunc, -1
	p.parsed, p.exit, p.failed, p.checksumBad, p.parserError = false, false, false, false, 0
	p.watch = nil
}

// Options returns the options of the instance.
func (p *Packet) Options() *Options { return &p.in.opts }

// Now is the time of the running pass, or of the packet's arrival before the first.
func (p *Packet) Now() units.Time { return p.now }

// Failed reports whether an assert or assume failed.
func (p *Packet) Failed() bool { return p.failed }

// ParserError is the number of the parser's error.
func (p *Packet) ParserError() uint64 { return uint64(p.parserError) }

// ChecksumBad reports whether the parser found a checksum that is wrong.
func (p *Packet) ChecksumBad() bool { return p.checksumBad }

// load copies frame into the packet, behind the headroom.
func (p *Packet) load(frame []byte) {
	n := headroom + len(frame) + slack
	if cap(p.buf) < n {
		p.buf = make([]byte, n+n/2)
	}
	p.buf = p.buf[:cap(p.buf)]
	p.start, p.head, p.end = headroom, headroom, headroom+len(frame)
	copy(p.buf[headroom:], frame)
}

// place records that h was extracted at head.
func (p *Packet) place(h *phv.Header) {
	if n := p.nPlaced; uint(n) < uint(len(p.placed)) {
		p.placed[n] = placement{uint32(h.Index), uint32(p.head)}
		p.nPlaced = n + 1
		return
	}
	p.forgetPlaces()
}

// prepend makes room for n bytes in front of the payload and returns the offset at which they
// start.
func (p *Packet) prepend(n int) int {
	if p.head >= n {
		return p.head - n
	}
	payload := p.buf[p.head:p.end]
	need := headroom + n + len(payload) + slack
	if cap(p.buf) < need {
		grown := make([]byte, need+need/2)
		copy(grown[headroom+n:], payload)
		p.buf = grown
	} else {
		copy(p.buf[headroom+n:cap(p.buf)], payload)
	}
	p.head, p.end = headroom+n, headroom+n+len(payload)
	return headroom
}

// CloneHeaders makes a copy with the same header vector and payload.
func (p *Packet) CloneHeaders() *Packet {
	p.loadRest()
	q := p.in.pool.Get().(*Packet)
	q.reset()
	copy(q.W, p.W)
	copy(q.VL, p.VL)
	q.load(p.buf[p.head:p.end])
	q.origin(p)
	return q
}

// CloneFrame makes a copy of the given bytes with an empty header vector.
func (p *Packet) CloneFrame(frame []byte) *Packet {
	q := p.in.get()
	q.load(frame)
	q.origin(p)
	q.Size = len(frame)
	return q
}

func (q *Packet) origin(p *Packet) {
	q.IngressPort, q.Bytes, q.Size, q.now = p.IngressPort, p.Bytes, p.Size, p.now
	q.watch = p.watch.copied()
}

// Frame returns the packet as it entered the pass.
func (p *Packet) Frame() []byte { return p.buf[p.start:p.end] }

// Deparsed returns the packet as the deparser wrote it.
func (p *Packet) Deparsed() []byte { return p.buf[p.head:p.end] }

// ForgetFrame drops the bytes of the frame that the parser extracted, and a request to truncate.
func (p *Packet) ForgetFrame() { p.start, p.trunc = p.head, noTrunc }

// payload returns the bytes that the parser did not extract, truncated if an action asked for it.
func (p *Packet) payload() []byte {
	return p.buf[p.head : p.head+min(p.end-p.head, p.trunc)]
}
