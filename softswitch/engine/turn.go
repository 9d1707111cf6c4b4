package engine

import (
	"sync"

	"github.com/headgate/headgate/units"
)

// Turn takes a batch of packets through one half of a pipeline, on one goroutine: it takes
// the lock that packets take once for all of them, and keeps packets that are done for
// those to come. Between Begin and End control methods wait, so the Out must not call them but from Digest,
// and all packets of the instance that the goroutine processes go through the Turn. Who
// holds a Turn owns it; the zero value is ready.
type Turn struct {
	in   *Instance
	mu   *sync.RWMutex // held; nil outside of Begin and End
	free []*Packet
}

// turnPackets bounds what a Turn keeps.
const turnPackets = 256

// BeginIngress begins a turn of packets on their way into the switch, of which the first
// arrived on port.
func (t *Turn) BeginIngress(in *Instance, port uint32) { t.begin(in, in.reader(0, port)) }

// BeginEgress begins a turn of packets on their way out.
func (t *Turn) BeginEgress(in *Instance, port uint32) { t.begin(in, in.reader(1, port)) }

func (t *Turn) begin(in *Instance, mu *sync.RWMutex) {
	if t.in != in {
		clear(t.free)
		t.in, t.free = in, t.free[:0]
	}
	t.mu = mu
	mu.RLock()
}

// End ends the turn.
func (t *Turn) End() {
	t.mu.RUnlock()
	t.mu = nil
}

// pause and resume let control methods in while an Out is at work that may wait for one.
func (t *Turn) pause() {
	if t != nil {
		t.mu.RUnlock()
	}
}

func (t *Turn) resume() {
	if t != nil {
		t.mu.RLock()
	}
}

// Of reports whether the turn is one of an instance. A nil Turn is none's.
func (t *Turn) Of(in *Instance) bool { return t != nil && t.mu != nil && t.in == in }

// Receive is Instance.Receive.
func (t *Turn) Receive(port uint32, frame []byte, now units.Time) *Packet {
	return t.in.receive(t.get(), port, frame, now)
}

// Ingress is Instance.Ingress.
func (t *Turn) Ingress(p *Packet, now units.Time, out Out) { t.in.ingress(p, now, out, t) }

// Egress is Instance.Egress.
func (t *Turn) Egress(p *Packet, now units.Time, out Out) { t.in.egress(p, now, out, t) }

// get takes a packet with an empty header vector.
func (t *Turn) get() *Packet {
	n := len(t.free) - 1
	if n < 0 {
		return t.in.get()
	}
	p := t.free[n]
	t.free = t.free[:n]
	p.reset()
	return p
}

// put frees a packet, without a turn to the instance's pool.
func (t *Turn) put(p *Packet) {
	if t == nil || len(t.free) == turnPackets {
		p.Free()
		return
	}
	p.empty()
	t.free = append(t.free, p)
}
