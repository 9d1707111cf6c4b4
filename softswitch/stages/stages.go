// Package stages measures how long the stages of the embedded switch take.
package stages

import (
	"sync/atomic"
	"time"
)

// Stage is a part of a frame's way through the switch.
type Stage int

// The stages, in the order of the way. Receive moves frames from the kernel, or from a file, to the switch.
// Parse has the verification of checksums, and Deparse their update. TrafficManager lasts from the end of
// ingress to the begin of egress, with the time in queues. Send hands a frame to its port, and Flush is
// the system call with which a port sends several.
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

// every is how many packets there are for each one whose stages are timed: to read the clock takes about as long
// as a stage.
const every = 32

// Times are sums over a switch's packets. A nil Times measures nothing; any goroutine may use one.
type Times struct {
	start time.Time
	seen  atomic.Uint32
	sums  [Stages]struct{ ns, packets atomic.Int64 }
}

// New returns Times without packets.
func New() *Times { return &Times{start: time.Now()} }

// Now is the clock that the times are read from, in ns.
func (t *Times) Now() int64 { return int64(time.Since(t.start)) }

// Sample reports whether the next packet is timed: one of every 32.
func (t *Times) Sample() bool { return t.seen.Add(1)%every == 1 }

// Add adds what a stage took for so many packets since a time of Now, and returns the time.
func (t *Times) Add(s Stage, packets int, since int64) (now int64) {
	now = t.Now()
	t.sums[s].ns.Add(now - since)
	t.sums[s].packets.Add(int64(packets))
	return now
}

// Mean returns the packets of a stage that were timed, and how many ns the stage took for each.
func (t *Times) Mean(s Stage) (packets int64, ns float64) {
	if packets = t.sums[s].packets.Load(); packets == 0 {
		return 0, 0
	}
	return packets, float64(t.sums[s].ns.Load()) / float64(packets)
}
