package engine

import (
	"sync"

	"github.com/headgate/headgate/units"
)

// Worker processes packets of an instance. Between Begin and End it holds one reader lock for all
// of them and reuses the memory of finished packets. At other times each packet acquires a lock of
// its own.
//
// Control methods wait between Begin and End, so the Out must not call them except from Digest.
// Meanwhile the goroutine must process packets of the instance only through the Worker. The zero
// value is ready for Begin. One goroutine at a time may use a Worker.
type Worker struct {
	in   *Instance
	mu   *sync.RWMutex // the lock held between Begin and End; else nil
	free []*Packet
	read uint64 // sum of the words that Ahead has read, so that the compiler keeps the reads
}

// workerPackets is the number of finished packets that a Worker keeps for reuse.
const workerPackets = 256

// Worker returns a worker of the instance.
func (in *Instance) Worker() Worker { return Worker{in: in} }

// BeginIngress begins a batch of packets that enter the switch; the first arrived on port.
func (t *Worker) BeginIngress(in *Instance, port uint32) { t.begin(in, in.reader(0, port)) }

// BeginEgress begins a batch of packets that leave the switch; the first arrived on port.
func (t *Worker) BeginEgress(in *Instance, port uint32) { t.begin(in, in.reader(1, port)) }

func (t *Worker) begin(in *Instance, mu *sync.RWMutex) {
	if t.in != in {
		clear(t.free)
		t.in, t.free = in, t.free[:0]
	}
	t.mu = mu
	mu.RLock()
}

// End ends the batch and releases the lock.
func (t *Worker) End() {
	t.mu.RUnlock()
	t.mu = nil
}

// Runs reports whether a batch of the instance is in progress. It is false for nil.
func (t *Worker) Runs(in *Instance) bool { return t != nil && t.mu != nil && t.in == in }

// Digest sends the packet's learning message of a learn list. It releases the lock of a batch
// meanwhile, because the receiver may call control methods, which need the lock.
func (t *Worker) Digest(p *Packet, list uint64, out Out) {
	if t.mu != nil {
		t.mu.RUnlock()
		defer t.mu.RLock()
	}
	p.digest(list, out)
}

// Receive returns a packet with a copy of a frame that arrived on port at time now.
func (t *Worker) Receive(port uint32, frame []byte, now units.Time) *Packet {
	p := t.get()
	p.IngressPort, p.Bytes, p.Size, p.now = port, len(frame), len(frame), now
	p.load(frame)
	t.in.prog.model.Receive(p)
	if t.in.observed {
		p.observe(now)
	}
	return p
}

// get returns a packet with an empty header vector.
func (t *Worker) get() *Packet {
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
func (t *Worker) put(p *Packet) {
	if t.mu == nil || len(t.free) == workerPackets {
		p.Free()
		return
	}
	p.empty()
	t.free = append(t.free, p)
}
