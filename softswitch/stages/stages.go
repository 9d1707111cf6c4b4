// Package stages measures how long the stages of the embedded switch take. Start reading at Times.
package stages

import (
	"sync/atomic"
	"time"
)

// Stage is a part of a frame's path through the switch.
type Stage int

// The stages, in the order of the path. Receive moves frames from the kernel or a file to the
// switch. Parse includes the verification of checksums, and Deparse their update. TrafficManager
// lasts from the end of ingress to the start of egress, with the time in queues. Send passes a
// frame to its port. Flush is the system call by which a port sends several frames.
const (
	Receive Stage = iota
	Parse
	Ingress
	TrafficManager
	Egress
	Deparse
	Send
	Flush
	Stages
)

func (s Stage) String() string {
	return [...]string{"receive", "parse", "ingress", "traffic manager", "egress", "deparse", "send", "flush"}[s]
}

// every is the sampling interval: one packet of every 32 is timed, because reading the clock takes
// about as long as a stage.
const every = 32

// Times holds the sums over a switch's packets. A nil Times measures nothing. Any goroutine may
// use a Times.
type Times struct {
	start time.Time
	seen  atomic.Uint32
	sums  [Stages]struct{ ns, packets atomic.Int64 }
}

// New returns Times without packets.
func New() *Times { return &Times{start: time.Now()} }

// Now returns the clock of the measurements, in ns.
func (t *Times) Now() int64 { return int64(time.Since(t.start)) }

// Sample reports whether the next packet is timed: one of every 32.
func (t *Times) Sample() bool { return t.seen.Add(1)%every == 1 }

// Add adds the time that a stage took for a number of packets. The stage began at since, a value
// of Now. Add returns the present Now.
func (t *Times) Add(s Stage, packets int, since int64) (now int64) {
	now = t.Now()
	t.sums[s].ns.Add(now - since)
	t.sums[s].packets.Add(int64(packets))
	return now
}

// Mean returns how many packets of a stage were timed, and the stage's mean time per packet in ns.
func (t *Times) Mean(s Stage) (packets int64, ns float64) {
	if packets = t.sums[s].packets.Load(); packets == 0 {
		return 0, 0
	}
	return packets, float64(t.sums[s].ns.Load()) / float64(packets)
}
