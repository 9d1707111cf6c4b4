// Package tm is the embedded switch's traffic manager: ports with a rate, priority queues with
// limits that can be paused, and a scheduler. It has no clock and no goroutine: the caller passes
// in packets and the time. The manager computes departure times, so a caller that is late gets
// packets late, but with the right times and in the right order. Start reading at Manager.
package tm

import (
	"fmt"
	"math"

	"github.com/headgate/headgate/units"
)

// MaxQueues is the largest number of queues of a port: v1model's priority has 3 bits, and
// BMv2 takes up to 32.
const MaxQueues = 32

// DefaultPackets is the limit of a queue in BMv2 (simple_switch.cpp, egress_buffers).
const DefaultPackets = 64

// MinQuantum is the smallest DWRR quantum. With less, finding the next packet could take
// hundreds of rounds.
const MinQuantum = 64 * units.Byte

// DefaultQuantum is the DWRR quantum of a queue of weight one: an Ethernet frame of the
// largest standard size, so that every visit sends something (Shreedhar and Varghese,
// "Efficient Fair Queuing using Deficit Round Robin", SIGCOMM 1995, §3.1).
const DefaultQuantum = 1518 * units.Byte

// Limit bounds a queue. A packet that would exceed either bound is dropped. Zero means no
// bound.
type Limit struct {
	Packets int
	Bytes   units.Bytes
}

func (l Limit) validate() error {
	if l.Packets < 0 {
		return fmt.Errorf("queue limit of %d packets: want 0 (no limit) or more", l.Packets)
	}
	if l.Bytes < 0 {
		return fmt.Errorf("queue limit of %d bytes: want 0 (no limit) or more", int64(l.Bytes))
	}
	return nil
}

// Share is a queue's place in its port's schedule. Levels have strict priority: a queue sends only
// when no queue of a higher Level can. Queues of the same level share it by deficit weighted round
// robin (DWRR), in proportion to their Quantum.
type Share struct {
	Level   int         // any order-preserving number
	Quantum units.Bytes // per round, MinQuantum to 1 GB; 0 means DefaultQuantum
}

// Strict returns the schedule of BMv2: n queues, the highest number first.
func Strict(n int) []Share {
	shares := make([]Share, n)
	for q := range shares {
		shares[q].Level = q
	}
	return shares
}

// Weighted returns a schedule in which queue q with weights[q] > 0 shares level 0 in
// proportion to its weight, and queues with weight 0 are strict, above all those with a
// weight, the highest number first.
func Weighted(weights []int) []Share {
	shares := make([]Share, len(weights))
	for q, w := range weights {
		if w > 0 {
			shares[q] = Share{Quantum: units.Bytes(w) * DefaultQuantum}
		} else {
			shares[q].Level = 1 + q
		}
	}
	return shares
}

// Config configures a Manager.
type Config struct {
	// Queues is the number of queues of each port, 1 to MaxQueues; 1 when zero.
	Queues int
	// Limit is the limit of each queue until SetLimit; DefaultPackets when zero. A very
	// large limit is as good as none.
	Limit Limit
	// Schedule has one Share per queue; Strict when nil.
	Schedule []Share
	// Overhead is added to each frame's length on the wire: 20 for Ethernet's preamble and
	// inter-frame gap, 24 with the frame check sequence. 0 to 64, default 0.
	Overhead units.Bytes
}

func (c Config) withDefaults() (Config, error) {
	if c.Queues == 0 {
		c.Queues = 1
	}
	if c.Queues < 1 || c.Queues > MaxQueues {
		return c, fmt.Errorf("number of queues %d: want 1 to %d", c.Queues, MaxQueues)
	}
	if c.Limit == (Limit{}) {
		c.Limit.Packets = DefaultPackets
	}
	if err := c.Limit.validate(); err != nil {
		return c, err
	}
	if c.Overhead < 0 || c.Overhead > 64 {
		return c, fmt.Errorf("overhead of %d bytes a frame: want 0 to 64", int64(c.Overhead))
	}
	if c.Schedule == nil {
		c.Schedule = Strict(c.Queues)
	}
	if len(c.Schedule) != c.Queues {
		return c, fmt.Errorf("schedule for %d queues: want one share for each of the %d queues", len(c.Schedule), c.Queues)
	}
	for q, s := range c.Schedule {
		if s.Quantum != 0 && (s.Quantum < MinQuantum || s.Quantum > units.GB) {
			return c, fmt.Errorf("quantum of queue %d is %v: want %v to %v", q, s.Quantum, MinQuantum, units.GB)
		}
	}
	return c, nil
}

func validRate(r units.Rate) error {
	if r < 0 {
		return fmt.Errorf("rate %d bps: want 0 (unlimited) or more", int64(r))
	}
	return nil
}

// plus adds without overflow.
func plus(t, d units.Time) units.Time {
	if d > math.MaxInt64-t {
		return units.MaxTime
	}
	return t + d
}
