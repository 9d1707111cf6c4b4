package engine

import (
	"math/big"

	"github.com/headgate/headgate/units"
)

// Packet is a packet inside the switch, between ingress and egress. Whoever holds it owns
// it: it passes to the engine with Ingress and Egress, to an Out with Enqueue and Again,
// and back to the pool with Free.
type Packet struct {
	IngressPort uint32
	EgressPort  uint32
	Queue       uint8
	Bytes       int        // frame length as it arrived
	EnqTime     units.Time // set by the traffic manager
	DeqTime     units.Time
	EnqDepth    uint32 // packets
	DeqDepth    uint32

	in *Instance
	w  []uint64 // packet header vector, see layout
	vl []byte   // bytes of variable-length fields

	buf   []byte // headroom, frame, slack
	start int    // first byte of the frame as it entered ingress
	head  int    // first byte that no header was parsed from
	end   int    // behind the last byte
	trunc int    // bytes kept of what leaves
	base  int    // first byte that the parser saw
	size  int    // packet_length: grows and shrinks with add_header and remove_header

	// The headers that were extracted, if they stand one behind the other from base on;
	// nPlaced is −1 when they do not.
	placed  [16]placement
	nPlaced int

	args []uint64   // parameters of the running action
	now  units.Time // time of the running pipeline

	cloneSession uint32 // session | cloneValid
	cloneList    uint32
	learnList    uint32
	resubmit     uint32
	recirculate  uint32
	exit         bool
	failed       bool // an assertion failed: the packet is dropped
	checksumBad  bool
	parseOK      bool // of a parse state that runs under register locks
	parserError  uint32

	tmp  []uint64  // of wide assignments and transition keys
	wide []uint64  // of lookahead
	key  [4]uint64 // of table lookups; word 3 also carries meter colors
	bits bitWriter // input of hashes and checksums
	kbuf []byte
	bigs []*big.Int
	nbig int
	dig  [][]byte
}

// placement is where a header was extracted.
type placement struct {
	header uint32 // its index; in the deparser, its place in the order
	at     uint32
}

const (
	cloneValid  = 1 << 15
	sessionMask = cloneValid - 1

	headroom = 128
	slack    = 16 // extraction reads whole words, deparsing writes them
	noTrunc  = int(^uint(0) >> 1)
)

// Frame returns the length of the packet as it would leave now, without headers that
// egress may add or remove. The traffic manager accounts for it.
func (p *Packet) Frame() int { return min(p.size, p.trunc) }

// Free gives the packet back to its instance's pool; it must not be used afterwards.
func (p *Packet) Free() {
	if p == nil || p.in == nil {
		return
	}
	p.empty()
	p.in.pool.Put(p)
}

// get takes a packet with an empty header vector from the pool.
func (in *Instance) get() *Packet {
	p := in.pool.Get().(*Packet)
	p.reset()
	return p
}

// empty clears the header vector, which whoever is done with a packet does: it has it in the
// cache, and is not the one that takes packets through ingress, which is more work.
func (p *Packet) empty() { clear(p.w[:p.in.prog.layout.words]) }

func (p *Packet) reset() {
	p.EgressPort, p.Queue = 0, 0
	p.EnqTime, p.DeqTime, p.EnqDepth, p.DeqDepth = 0, 0, 0, 0
	p.trunc, p.nPlaced = noTrunc, -1
	p.clearRequests()
	p.exit, p.failed, p.checksumBad, p.parserError = false, false, false, 0
}

// clearRequests forgets what actions asked for.
func (p *Packet) clearRequests() {
	p.cloneSession, p.cloneList, p.learnList, p.resubmit, p.recirculate = 0, 0, 0, 0, 0
}

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

// place notes that h was extracted at head.
func (p *Packet) place(h *header) {
	if n := p.nPlaced; uint(n) < uint(len(p.placed)) {
		p.placed[n] = placement{uint32(h.index), uint32(p.head)}
		p.nPlaced = n + 1
		return
	}
	p.forget()
}

// prepend makes room for n bytes in front of the payload and returns where they start.
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

// cloneHeaders makes a copy with the same header vector and payload.
func (p *Packet) cloneHeaders() *Packet {
	p.fill()
	q := p.in.pool.Get().(*Packet)
	q.reset()
	copy(q.w, p.w)
	copy(q.vl, p.vl)
	q.load(p.buf[p.head:p.end])
	q.origin(p)
	return q
}

// cloneFrame makes a copy of the given bytes with an empty header vector.
func (p *Packet) cloneFrame(frame []byte) *Packet {
	q := p.in.get()
	q.load(frame)
	q.origin(p)
	return q
}

func (q *Packet) origin(p *Packet) {
	q.IngressPort, q.Bytes, q.size, q.now = p.IngressPort, p.Bytes, p.size, p.now
}

// frame is the packet as it entered ingress.
func (p *Packet) frame() []byte { return p.buf[p.start:p.end] }

// payload is what the parser left, truncated where an action asked for it.
func (p *Packet) payload() []byte {
	return p.buf[p.head : p.head+min(p.end-p.head, p.trunc)]
}

func (p *Packet) isValid(h *header) bool { return h.metadata || p.w[h.valid] != 0 }

// markValid makes h valid and the other members of its union invalid.
func (p *Packet) markValid(h *header) {
	if h.union != nil {
		for _, o := range h.union.elems {
			p.w[o.valid] = 0
		}
	}
	p.w[h.valid] = 1
}

// zero sets every field of h to 0.
func (p *Packet) zero(h *header) { clear(p.w[h.base : h.base+h.typ.words]) }

// bytesOf is the length of h on the wire.
func (p *Packet) bytesOf(h *header) int {
	n := h.typ.bits
	if h.typ.vl >= 0 {
		n += int(p.w[h.base+h.typ.fields[h.typ.vl].word])
	}
	return n / 8
}

// assignHeader copies src to dst, validity included.
func (p *Packet) assignHeader(dst, src *header) {
	if !p.isValid(src) {
		p.w[dst.valid] = 0
		return
	}
	p.markValid(dst)
	copy(p.w[dst.base:dst.base+dst.typ.words], p.w[src.base:src.base+src.typ.words])
	if dst.typ.vl >= 0 {
		copy(p.vl[dst.vlOff:dst.vlOff+dst.typ.vlMax], p.vl[src.vlOff:src.vlOff+src.typ.vlMax])
	}
}

// swapHeaders exchanges two headers of one type, validity included.
func (p *Packet) swapHeaders(a, b *header) {
	x, y := p.w[a.base:a.base+a.typ.words], p.w[b.base:b.base+b.typ.words]
	for i := range x {
		x[i], y[i] = y[i], x[i]
	}
	p.w[a.valid], p.w[b.valid] = p.w[b.valid], p.w[a.valid]
	if n := a.typ.vlMax; n > 0 {
		u, v := p.vl[a.vlOff:a.vlOff+n], p.vl[b.vlOff:b.vlOff+n]
		for i := range u {
			u[i], v[i] = v[i], u[i]
		}
	}
}

// sameHeader reports whether both headers are valid and have the same type and fields.
func (p *Packet) sameHeader(a, b *header) bool {
	if a == nil || b == nil || a.typ != b.typ || !p.isValid(a) || !p.isValid(b) {
		return false
	}
	for i := range a.typ.words {
		if p.w[a.base+i] != p.w[b.base+i] {
			return false
		}
	}
	if v := a.typ.vl; v >= 0 {
		n := int(p.w[a.base+a.typ.fields[v].word] / 8)
		return string(p.vl[a.vlOff:a.vlOff+n]) == string(p.vl[b.vlOff:b.vlOff+n])
	}
	return true
}

// validMember is the valid header of a union, nil when there is none.
func (p *Packet) validMember(u *union) *header {
	if u == nil {
		return nil
	}
	for _, h := range u.elems {
		if p.w[h.valid] != 0 {
			return h
		}
	}
	return nil
}

func (p *Packet) sameUnion(a, b *union) bool {
	x, y := p.validMember(a), p.validMember(b)
	if x == nil || y == nil {
		return false
	}
	for i := range a.elems {
		if a.elems[i] == x {
			return i < len(b.elems) && b.elems[i] == y && p.sameHeader(x, y)
		}
	}
	return false
}

// bigTemp lends a number for the slow path; bigDone gives the last one back.
func (p *Packet) bigTemp() *big.Int {
	if p.nbig == len(p.bigs) {
		p.bigs = append(p.bigs, new(big.Int))
	}
	p.nbig++
	return p.bigs[p.nbig-1]
}

func (p *Packet) bigDone() { p.nbig-- }
