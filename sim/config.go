package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// Config is everything that a run depends on besides its flows. Zero values mean the defaults named
// below.
type Config struct {
	Graph *topo.Graph
	Seed  uint64

	Payload units.Bytes // payload of a full packet; 1000 B
	Header  units.Bytes // bytes of a data frame besides payload; 54 B, as in the PrioPlus ns-3 code
	Ack     units.Bytes // size of an ACK, NAK or CNP frame; 64 B
	// AckClass is the class of ACKs and CNPs, the highest by default: 7.
	AckClass *uint8
	// Strict has a bit for each class that is served strictly, highest first, before the other classes share by
	// DWRR. All by default.
	Strict *uint8
	// Quantum of a class that is not strict, per round; 1600 B (DSH §V).
	Quantum [NumClasses]units.Bytes

	NewBuffer func(SwitchInfo) (Buffer, error) // nil: unlimited memory, no PFC
	PFC       PFC
	ECN       [NumClasses]*RED // nil: no marking
	// PortOf returns the settings of one port of a node, by the port's number in the graph. They replace ECN. With
	// nil no port has settings of its own.
	PortOf   func(node int, port uint32) PortConfig
	PACC     *PACC      // switches send CNPs; nil: they do not
	CNPGap   units.Time // receivers answer CE with a CNP, at most one per gap and flow; 0 never
	CNPDelay units.Time // time that a receiver's NIC needs to make a CNP; 0 by default
	// MaxQDUnit is the unit of the 16-bit maxQD field. Delays are rounded down to it, and the field bounds them.
	// By default it is 4 ns, which allows 262 µs.
	MaxQDUnit units.Time
	// RTO is the lowest retransmission timeout, and the initial one. By default it is 1 ms for flows whose packets
	// a buffer may drop. In lossless classes it is 67.1 ms, the Local ACK Timeout 14 of RoCE NICs (IBTA, 4.096 µs
	// · 2^14), because a queue or a PAUSE of some milliseconds is no loss there.
	RTO units.Time

	// Noise is added to each one-way delay and round trip that a host measures; nil adds none.
	Noise  Noise
	Groups int    // flow groups whose bytes are counted, at least 1
	Driver Driver // called when a flow with a Tag ends; may be nil
	Limit  uint64 // events after which the run stops with an error; 0 for none
	// Cores is the number of partitions of the fabric that may run in parallel, each on a processor; 0 means 1.
	// Results are the same for any number.
	Cores int
}

// PortConfig holds the settings of one port.
type PortConfig struct {
	ECN     [NumClasses]*RED // nil: no marking
	Ignores uint8            // classes whose PAUSE has no effect, bit n for class n
}

// Noise is added by hosts to the delays that they measure. Runs may share it, because Draw changes
// only the stream.
type Noise interface {
	Draw(rng *rand.Rand) units.Time
}

// Driver starts flows that depend on others.
type Driver interface {
	// Done is called when a flow with a Tag has ended; it may start others.
	Done(s *Sim, f *FlowSpec)
}

func (c *Config) setDefaults() {
	def(&c.Payload, 1000)
	def(&c.Header, 54)
	def(&c.Ack, 64)
	def(&c.AckClass, new(uint8(NumClasses-1)))
	def(&c.Strict, new(uint8(0xFF)))
	for i := range c.Quantum {
		def(&c.Quantum[i], 1600)
	}
	def(&c.PFC.Processing, 3840)
	def(&c.PFC.Quanta, 65535)
	def(&c.PFC.Frame, 64)
	def(&c.MaxQDUnit, 4*units.Nanosecond)
	def(&c.Groups, 1)
}

func def[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

func (c *Config) check() error {
	if c.Graph == nil {
		return fmt.Errorf("topology: none given")
	}
	if err := c.Graph.Check(); err != nil {
		return fmt.Errorf("topology: %w", err)
	}
	amounts := []struct {
		name         string
		v, low, high units.Bytes
	}{
		{"payload", c.Payload, 1, 9216}, {"header", c.Header, 1, 1024}, {"ack", c.Ack, 1, 1500},
		{"pfc processing", c.PFC.Processing, 0, units.MB}, {"pfc frame", c.PFC.Frame, 1, 1500},
	}
	for _, a := range amounts {
		if a.v < a.low || a.v > a.high {
			return fmt.Errorf("%s: %v, want %v to %v", a.name, a.v, a.low, a.high)
		}
	}
	for class, q := range c.Quantum {
		if q < 64 || q > units.MB {
			return fmt.Errorf("quantum of class %d: %v, want 64B to 1MB", class, q)
		}
		if r := c.ECN[class]; r != nil && (r.KMin < 0 || r.KMax < r.KMin || r.KMax == 0 || r.PMax < 0 || r.PMax > 1) {
			return fmt.Errorf("ecn of class %d: kmin %v, kmax %v, pmax %v: want 0 ≤ kmin ≤ kmax, kmax > 0 and pmax from 0 to 1", class, r.KMin, r.KMax, r.PMax)
		}
	}
	switch {
	case *c.AckClass >= NumClasses:
		return fmt.Errorf("class of ACKs: %d, want 0 to %d", *c.AckClass, NumClasses-1)
	case c.CNPGap < 0:
		return fmt.Errorf("cnp gap: %v, want 0 (no CNPs) or more", c.CNPGap)
	case c.CNPDelay < 0:
		return fmt.Errorf("cnp delay: %v, want 0 or more", c.CNPDelay)
	case c.RTO < 0:
		return fmt.Errorf("rto: %v, want more than 0", c.RTO)
	case c.Groups < 1:
		return fmt.Errorf("groups: %d, want at least 1", c.Groups)
	}
	return nil
}
