package engine

import (
	"sync"

	"github.com/headgate/headgate/units"
)

// Burst processes several packets on one goroutine, in ingress or in egress. It acquires the
// reader lock once for all of them and reuses the memory of finished packets.
//
// Control methods wait between Begin and End, so the Out must not call them except from Digest.
// While a burst runs, its goroutine must process packets of the instance only through the Burst.
// The zero value is ready. One goroutine at a time may use a Burst.
type Burst struct {
	in   *Instance
	mu   *sync.RWMutex // the lock that the burst holds; nil outside of Begin and End
	free []*Packet
}

// burstPackets is how many finished packets a Burst keeps for reuse.
const burstPackets = 256

// BeginIngress begins a burst of packets that enter the switch; the first arrived on port.
func (t *Burst) BeginIngress(in *Instance, port uint32) { t.begin(in, in.reader(0, port)) }

// BeginEgress begins a burst of packets that leave the switch; the first arrived on port.
func (t *Burst) BeginEgress(in *Instance, port uint32) { t.begin(in, in.reader(1, port)) }

func (t *Burst) begin(in *Instance, mu *sync.RWMutex) {
	if t.in != in {
		clear(t.free)
		t.in, t.free = in, t.free[:0]
	}
	t.mu = mu
	mu.RLock()
}

// End releases the lock.
func (t *Burst) End() {
	t.mu.RUnlock()
	t.mu = nil
}

// pause releases the lock until resume. It is called before an Out that may wait for a control
// method, which needs the lock.
func (t *Burst) pause() {
	if t != nil {
		t.mu.RUnlock()
	}
}

func (t *Burst) resume() {
	if t != nil {
		t.mu.RLock()
	}
}

// Of reports whether a burst of the instance is in progress. It is false for nil.
func (t *Burst) Of(in *Instance) bool { return t != nil && t.mu != nil && t.in == in }

// Receive is Instance.Receive.
func (t *Burst) Receive(port uint32, frame []byte, now units.Time) *Packet {
	return t.in.receive(t.get(), port, frame, now)
}

// Ingress is Instance.Ingress.
func (t *Burst) Ingress(p *Packet, now units.Time, out Out) { t.in.ingress(p, now, out, t) }

// Egress is Instance.Egress.
func (t *Burst) Egress(p *Packet, now units.Time, out Out) { t.in.egress(p, now, out, t) }

// get returns a packet with an empty header vector.
func (t *Burst) get() *Packet {
	n := len(t.free) - 1
	if n < 0 {
		return t.in.get()
	}
	p := t.free[n]
	t.free = t.free[:n]
	p.reset()
	return p
}

// put keeps a finished packet for reuse, or returns it to the instance's pool.
func (t *Burst) put(p *Packet) {
	if t == nil || len(t.free) == burstPackets {
		p.Free()
		return
	}
	p.empty()
	t.free = append(t.free, p)
}
