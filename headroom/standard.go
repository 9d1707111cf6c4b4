package headroom

import (
	"fmt"
	"math"

	"github.com/headgate/headgate/units"
)

// Method names how the headroom of a link is computed (Link.Required).
type Method string

// The methods.
const (
	// Standard counts the response time that IEEE 802.3 Annex 31B.3.7 allows at the link's speed.
	// It is the default.
	Standard Method = "standard"
	// ByEq1 counts 60 quanta at every speed, as DSH's Eq. 1 does. It is for the papers' figures: a
	// peer above 10 Gb/s may take longer, and then packets are lost.
	ByEq1 Method = "dsh"
)

// Methods returns all methods.
func Methods() []Method { return []Method{Standard, ByEq1} }

// Sizes of IEEE 802.1Q and 802.3.
const (
	// Quantum is a pause quantum, 512 bit times (IEEE 802.3 Annex 31B.2).
	Quantum units.Bytes = 64
	// Processing is how much a port may still send between the arrival of a PFC frame and
	// its effect: 60 quanta of 512 bit times (IEEE 802.1Qbb; DSH §II-C part 3).
	Processing = 60 * Quantum
	// FrameWire is the length of a PFC frame on the wire: 64 B, preamble and gap.
	FrameWire units.Bytes = 64 + 20
	// smallest is the smallest frame of Ethernet.
	smallest units.Bytes = 64
	// Classes is the number of PFC classes (IEEE 802.1Q).
	Classes = 8
)

// responses has the quanta within which IEEE 802.3 Annex 31B.3.7 bounds the response to a PAUSE:
// from its arrival at the peer's connector (MDI) to the last moment at which the peer may begin a
// frame. The source is the table in sonic-net/sonic-mgmt issue 6223; sonic-swss
// cfgmgr/buffer_headroom_mellanox.lua has the same values, and 905 for 800 Gb/s, which its author
// says the standard shares with 400 Gb/s (sonic-swss pull request 2860). The clause has 1 and 2
// quanta up to 1 Gb/s; there the 60 quanta of IEEE 802.1Qbb count.
var responses = []struct {
	rate   units.Rate
	quanta units.Bytes
}{
	{10 * units.Gbps, 67}, {25 * units.Gbps, 80}, {40 * units.Gbps, 118}, {50 * units.Gbps, 147},
	{100 * units.Gbps, 394}, {200 * units.Gbps, 453}, {400 * units.Gbps, 905}, {800 * units.Gbps, 905},
}

// Response returns how much a peer that keeps to IEEE 802.3 Annex 31B.3.7 may still send between the arrival of a
// PAUSE and its effect. No public source has a value for rates outside the table. Rates up to 1 Gb/s get
// Processing. A rate between two rates of the table gets the value of the higher one. A rate above the last one
// gets the last one's response time.
func Response(rate units.Rate) units.Bytes {
	if rate <= units.Gbps {
		return Processing
	}
	for _, r := range responses {
		if rate <= r.rate {
			return r.quanta * Quantum
		}
	}
	last := responses[len(responses)-1]
	return units.Bytes(math.Ceil(float64(last.quanta*Quantum) * float64(rate) / float64(last.rate)))
}

// Link holds the inputs of an ingress queue's headroom.
type Link struct {
	Rate  units.Rate
	Delay units.Time // propagation one way
	MTU   units.Bytes
	// Response is how much the peer may still send after a PAUSE has arrived.
	Response units.Bytes
	// Cell is the unit in which packets get memory; up to 1 B means that there are no cells.
	Cell units.Bytes
	// SmallPackets is the share, in percent, of arriving bytes that are in packets of the size that wastes most of
	// its cells. The other packets have the size of the MTU.
	SmallPackets int
}

// arrives returns the bytes that arrive, in the worst case, after the switch has decided on a PAUSE: DSH's Eq. 1,
// Φ = 2(C·Dprop + L_MTU) + 3840 B, with the peer's response in place of 3840 B.
func (l Link) arrives() units.Bytes { return 2*(l.Rate.BytesIn(l.Delay)+l.MTU) + l.Response }

// Required returns the headroom that makes a queue lossless in a switch that sends a PAUSE when a packet no longer
// fits. It is the sum of the bytes that arrive after that packet, the packet itself (which is already in the
// headroom), and one PFC frame of each class on the wire, which Eq. 1 leaves out. With cells, Required returns the
// whole cells that these packets occupy. It computes the occupancy of small packets as sonic-swss
// buffer_headroom_mellanox.lua does.
func (l Link) Required() units.Bytes {
	bytes := l.arrives() + Classes*FrameWire
	if l.Cell <= 1 {
		return bytes + l.MTU
	}
	up := func(n units.Bytes) units.Bytes { return (n + l.Cell - 1) / l.Cell * l.Cell }
	return up(units.Bytes(math.Ceil(float64(bytes)*l.occupancy()))) + up(l.MTU)
}

// occupancy returns how many bytes of cells a byte of packets takes.
func (l Link) occupancy() float64 {
	in := func(n units.Bytes) float64 { return float64((n+l.Cell-1)/l.Cell*l.Cell) / float64(n) }
	// The most cells per byte are taken by the smallest packet, or by the packet that is one byte longer than a
	// whole number of cells.
	worst := max(in(smallest), in((smallest+l.Cell-1)/l.Cell*l.Cell+1))
	return (float64(100-l.SmallPackets)*in(l.MTU) + float64(l.SmallPackets)*worst) / 100
}

// text shows the arithmetic of Required.
func (l Link) text() string {
	s := fmt.Sprintf("%d B = 2·(%v · %v = %d B + MTU %d B) + %d B that the peer sends before it responds (%d quanta) + the pausing packet %d B + %d PFC frames %d B",
		l.Required(), l.Rate, l.Delay, l.Rate.BytesIn(l.Delay), l.MTU, l.Response, l.Response/Quantum, l.MTU, Classes, Classes*FrameWire)
	if l.Cell > 1 {
		s += fmt.Sprintf(", times %.3f in cells of %d B with %d %% small packets", l.occupancy(), l.Cell, l.SmallPackets)
	}
	return s
}

func (c *Config) link(p *Port) Link {
	l := Link{Rate: p.Rate, Delay: p.Delay, MTU: c.MTU, Response: p.Response, Cell: c.Cell, SmallPackets: c.SmallPackets}
	if l.Response == 0 && c.Method == ByEq1 {
		l.Response = Processing
	} else if l.Response == 0 {
		l.Response = Response(p.Rate)
	}
	return l
}

// least returns the link of a port with a peer that responds within Eq. 1's time, or faster if Port.Response is
// less.
func (c *Config) least(p *Port) Link {
	l := c.link(p)
	l.Response = min(l.Response, Processing)
	return l
}

// Silence returns the time after a PAUSE in which packets may still arrive at port i. That is the time that the port's link
// needs to carry the port's headroom, rounded up to ticks of DSH.Tick. A peer that obeys the PAUSE is silent after that time.
func (c *Config) Silence(i int) units.Time {
	l := c.link(&c.Ports[i])
	l.Cell = 0 // cells are of memory, not of the wire
	tick := max(c.DSH.Tick, 1)
	return (l.Rate.TxTime(l.Required()) + tick - 1) / tick * tick
}

// Least returns the headroom below which port i loses packets even of a peer that responds as fast as Eq. 1
// assumes. Validate refuses less.
func (c *Config) Least(i int) units.Bytes { return c.least(&c.Ports[i]).Required() }

// Link returns the inputs of port i's headroom.
func (c *Config) Link(i int) Link { return c.link(&c.Ports[i]) }
