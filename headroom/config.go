package headroom

import (
	"github.com/headgate/headgate/tables/log2"
	"github.com/headgate/headgate/tables/phi"
	"github.com/headgate/headgate/units"
)

// Kind names a buffer policy.
type Kind string

// The policies. All but DSH and DSHSPFC have headroom for every lossless queue.
const (
	// Static pauses a queue at a fixed threshold (SPFC's baseline ST).
	Static Kind = "static"
	// DT pauses a queue at the dynamic threshold of Eq. 2. It is the threshold of SIH and
	// has its headroom; SPFC's papers call it DT, DSH's SIH.
	DT Kind = "dt"
	// SIH is DT with static and independent headroom, Np·Nq·Φ (DSH §III).
	SIH Kind = "sih"
	// Adaptive is SIH with each port's Φ from the delay of its own link, which the configuration
	// has; IEEE P802.1Qdt measures it.
	Adaptive Kind = "adaptive"
	// Oversubscribed is SIH with a part of each Φ, 80 % by default. It may drop.
	Oversubscribed Kind = "oversubscribed"
	// DSH is dynamic and shared headroom (DSH §IV).
	DSH Kind = "dsh"
	// SPFC is DT with the whole buffer for victim ports (SPFC §IV).
	SPFC Kind = "spfc"
	// DSHSPFC is DSH with the whole buffer for victim ports.
	DSHSPFC Kind = "dsh+spfc"
)

// Kinds returns all policies.
func Kinds() []Kind {
	return []Kind{Static, DT, SIH, Adaptive, Oversubscribed, DSH, SPFC, DSHSPFC}
}

func (k Kind) insured() bool { return k == DSH || k == DSHSPFC }
func (k Kind) victims() bool { return k == SPFC || k == DSHSPFC }

// Port is an ingress port and the link that feeds it.
type Port struct {
	Rate  units.Rate // positive
	Delay units.Time // propagation one way, 0 or more
	// Headroom is Φ, for each lossless queue or, with DSH, the port. 0 means that of Config.
	Headroom units.Bytes
	// Response is how much the peer may still send after a PAUSE has arrived. 0 means what
	// Config.Method has for the rate.
	Response units.Bytes
	// Victim is for SPFC and DSHSPFC: the port is a victim whenever it is not paused, and where one
	// is told so no other port ever is, whatever departs. SPFC §III raises a threshold so, by hand.
	Victim bool
}

// Config configures an MMU. Defaults that are not zero are filled in by WithDefaults, which
// New calls.
type Config struct {
	Policy   Kind
	Buffer   units.Bytes // all memory, 1 B to 1 TB
	Ports    []Port      // 1 to 1024
	Lossless uint8       // classes under PFC, bit n for class n; none is refused
	MTU      units.Bytes // largest frame, 64 to 65 535 B; 1500 B by default

	Private units.Bytes // ρ, per lossless queue; 0 or more
	// LossyPrivate is the same per queue of any other class; 0 or more. With 0 these queues have
	// nothing while lossless ones fill the shared pool, which Static and SPFC let them do:
	// acknowledgements in a lossy class are dropped then. DSH §V has 3 KB.
	LossyPrivate units.Bytes
	// Headroom is Φ of ports that have none of their own. 0 means what each port's link requires
	// (Link.Required) by Method, Standard by default.
	Headroom units.Bytes
	Method   Method
	// Cell is the unit of memory, 0 (none) to 64 KB, and SmallPackets the share of packets that waste
	// most of it, 0 to 100 %: both are Link's.
	Cell         units.Bytes
	SmallPackets int

	Alpha     Alpha       // of all policies but Static; 1 by default
	Threshold units.Bytes // of Static: Xoff; positive and at most the shared pool
	// ResumeGap is δ (δq of DSH): Xon = Xoff − δ. PortResumeGap is δp. 0 by default; 2 MTU
	// are usual.
	ResumeGap, PortResumeGap units.Bytes
	// PortQueues is Nq in Xpoff = Nq·T(t). 0 means the number of lossless classes.
	PortQueues int

	// Share is how much of Φ Oversubscribed reserves, in per mille, 1 to 1000; 800 by
	// default.
	Share int
	DSH   DSHConfig
	SPFC  SPFCConfig

	// LocalResume rechecks only the queue and port that a packet leaves, resumes one that is
	// empty whatever its threshold, and does not pause one that holds nothing: what a
	// match-action pipeline can do.
	LocalResume bool
	// Counted is the MMU of the public HPCC simulator (alibaba-edu/High-Precision-Congestion-Control,
	// simulation/src/point-to-point/model/switch-mmu.cc), for figures that were made with it: it counts what queues hold and
	// lets the sum exceed the memory, drops only where both a queue's threshold and its headroom are exceeded, neither counts nor drops
	// lossy classes, and resumes as LocalResume does, or once a queue holds no shared memory. A victim's threshold is Buffer.
	// It needs AllowLoss and is not for DSH.
	Counted bool
	// AllowLoss accepts headroom that is too small for the link, for experiments.
	AllowLoss bool
}

// DSHConfig is for DSH and DSHSPFC.
type DSHConfig struct {
	Window    units.Time     // Algorithm 4; 10 ms by default
	Precision log2.Precision // of Algorithm 3; log2.Default by default
	Entries   int            // of the table ĝ → φ̂; phi.DefaultEntries by default
	// Tick is that of the clock that Algorithm 3 reads, up to phi.MaxTick; 0 means 1 ps.
	Tick units.Time
	// NoInsurance and NoSharedHeadroom leave out one half of DSH, as Fig. 21 and 15 do.
	// The first may drop and needs AllowLoss.
	NoInsurance, NoSharedHeadroom bool
}

// SPFCConfig is for SPFC and DSHSPFC.
type SPFCConfig struct {
	K int // of C/K, 2 to 64; 5 by default
	// Period is the Timeout Clock, at least 4 RTT of the fabric; 100 µs by default.
	Period units.Time
	// Packet is the size of a packet where departures are counted in packets, as Fig. 10
	// does. 0 counts bytes, which judges small packets as §IV does, by their rate.
	Packet units.Bytes
	// Whole takes "the PFC threshold for this port is set to the buffer size" (§IV-B) at its word: a
	// victim's port is not paused while anything is free but private memory, and fills what others
	// have for headroom, too. It may drop and needs AllowLoss. Only of SPFC.
	Whole bool
}

// Limits of Config.
const (
	MaxPorts  = 1024
	MaxBuffer = 1000 * units.GB
)

// WithDefaults returns c with every default filled in.
func (c Config) WithDefaults() Config {
	if c.MTU == 0 {
		c.MTU = 1500
	}
	if c.Method == "" {
		c.Method = Standard
	}
	if c.Share == 0 {
		c.Share = 800
	}
	if c.DSH.Window == 0 {
		c.DSH.Window = 10 * units.Millisecond
	}
	if c.DSH.Precision == (log2.Precision{}) {
		c.DSH.Precision = log2.Default()
	}
	if c.DSH.Entries == 0 {
		c.DSH.Entries = phi.DefaultEntries
	}
	if c.SPFC.K == 0 {
		c.SPFC.K = 5
	}
	if c.SPFC.Period == 0 {
		c.SPFC.Period = 100 * units.Microsecond
	}
	if c.PortQueues == 0 {
		c.PortQueues = c.queues()
	}
	return c
}
