// Package trafficmanager describes the desired state of a switch's traffic manager, as far as it is outside of the
// P4 program: pools, thresholds, PFC, queues and filters. A Driver brings one kind of switch into that state;
// packages tofino and bmv2 are the two drivers.
package trafficmanager

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/units"
)

// Driver drives the traffic manager of one switch. It connects at its first use, and again whenever the switch
// comes back. A Driver that was never used need not be closed. It is safe for concurrent use. Configs must not be
// changed during a call.
type Driver interface {
	// Check reports whether the kind of switch supports the configuration, without asking the switch. The error, a
	// *units.FieldError, names the field, its value and what is allowed.
	Check(want *Config) error
	// Plan returns the writes of an Apply, and writes nothing.
	Plan(ctx context.Context, want *Config) ([]*pb.Change, error)
	// Apply brings the switch to want and returns how many settings it wrote. from is the configuration that the
	// switch is known to have, or nil if none is known; it may make Apply quicker. A failed Apply may have written
	// some settings; the next one goes on from there.
	Apply(ctx context.Context, from, want *Config) (int, error)
	// Pauses reads the pause counters of some ports' MACs. It does not wait for a Plan or an Apply.
	Pauses(ctx context.Context, ports []uint32) (map[uint32]PauseCounters, error)
	Close() error
}

// Config is the desired state of a traffic manager for some of its ports. Other ports are left alone, except that all
// ports share the pools.
type Config struct {
	Ports []Port // each once
	// MMU is the policy of the shared buffer, with its ports in the order of Ports. Buffer
	// is the part of the memory that the policy may use: other ports need some too. nil
	// gives the buffer back to the switch's defaults.
	MMU *headroom.Config
	// Queues is the number of egress queues of each port. They have strict priority over each other, the highest
	// number first. 0 leaves the scheduler alone.
	Queues int
	// Weights are the weights of queues that share by DWRR the rate that the other queues leave; 0 for the other
	// queues. Only the first Queues count.
	Weights     externs.Weights
	QueueLimits []QueueLimit
	// LosslessQueues are the egress queues of lossless classes, bit n for queue n: they do
	// not drop, and obey PFC for the class of their number. 0 means MMU.Lossless.
	LosslessQueues uint8
	// Victims are the ports to which SPFC currently gives the whole shared pool.
	Victims []uint32
	// PacketSize is the assumed size of a packet on a switch that counts packets, > 0 there.
	PacketSize units.Bytes
	// Filters are the time constants of the program's low-pass filters, by name.
	Filters map[string]units.Time
}

// Port is a port in use.
type Port struct {
	Number uint32     // number in the P4 program
	Rate   units.Rate // rate of the link
	// Lossy has the classes of MMU.Lossless that are lossy at this port, a bit for each: the port sends and obeys no
	// PAUSE for them. Its egress queues keep the other ports' packets of these classes.
	Lossy uint8
}

// QueueLimit bounds an egress queue, which drops packets above it.
type QueueLimit struct {
	Port  uint32
	Queue int
	// Bytes are rounded down to the switch's unit. 0 means the switch's default, and so does a limit as large as
	// the switch's or the policy's buffer.
	Bytes units.Bytes
}

// PauseCounters are the MAC's counters of the pauses that a port has sent, since the switch's driver started or the
// counters were cleared.
type PauseCounters struct {
	// Time is how long PFC has kept the peer from sending each class.
	Time [headroom.Classes]time.Duration
	// Frames counts PFC frames, PortFrames PAUSE frames for the whole port. Both include frames that repeat or end
	// a PAUSE.
	Frames, PortFrames uint64
}

// Equal reports whether two configurations, which may be nil, are equal.
func (c *Config) Equal(o *Config) bool {
	return c == o || c != nil && o != nil && reflect.DeepEqual(*c, *o)
}

// OnlyVictims reports whether two configurations differ in nothing but victims.
func (c *Config) OnlyVictims(o *Config) bool {
	if c == nil || o == nil {
		return c == o
	}
	a, b := *c, *o
	a.Victims, b.Victims = nil, nil
	return reflect.DeepEqual(a, b)
}

// WithVictims returns a copy of the configuration with the given Victims. Errors are as for Check.
func (c *Config) WithVictims(ports []uint32) (*Config, error) {
	if len(ports) == 0 && len(c.Victims) == 0 {
		return c, nil
	}
	other := *c
	other.Victims = slices.Clone(ports)
	return &other, other.CheckVictims()
}

// CheckVictims makes sure that Victims are ports of the configuration, and that its policy has victims.
func (c *Config) CheckVictims() error {
	allowed := c.MMU != nil && c.MMU.Policy.Victims()
	for i, v := range c.Victims {
		if !allowed || !slices.ContainsFunc(c.Ports, func(p Port) bool { return p.Number == v }) {
			return &units.FieldError{Field: fmt.Sprintf("victims[%d]", i), Value: fmt.Sprint(v), Allowed: "a port, with policy spfc or dsh+spfc"}
		}
	}
	return nil
}
