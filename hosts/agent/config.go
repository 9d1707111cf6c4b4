package agent

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// Config describes a host. Fields without a stated default must be set.
type Config struct {
	Name    string // the host's name in reports
	MAC     packet.MAC
	Gateway packet.MAC // next hop of every frame
	IP      netip.Addr // IPv4 or IPv6, as its flows are
	Rate    units.Rate // rate of the NIC's link, counting frames without preamble and FCS
	Unit    maxqd.Unit // the fabric's unit of maxQD

	// NewLaw returns the law of a flow that starts. If the law does not implement law.Weighted, weights only decide how
	// the flow shares the NIC. A flow whose receiver has forgotten it also gets a new law. So the spec has the flow's
	// current weight and channel, and the remaining size and time to the deadline.
	NewLaw func(spec FlowSpec) (law.Law, error)
	// Law is the name of NewLaw's law, for reports.
	Law string

	MSS      units.Bytes // payload of a full packet, 1000 B by default
	DataDSCP uint8       // class 0 by default
	AckDSCP  uint8       // CS6, 48, by default: acknowledgements at the highest priority

	// Classes maps DSCPs to their class for priority-based flow control, 0 to 7. A DSCP that is not in the map has the
	// class DSCP/8, as class selectors do.
	Classes map[uint8]uint8
	// Lossy are the classes whose PAUSE has no effect; none by default. PFC frames of these classes alone are counted
	// as ignored.
	Lossy units.Classes

	// FirstQP is the queue pair of the first flow, 1 by default. An agent that may be restarted while others remember
	// its flows should have another FirstQP at each start.
	FirstQP uint32

	// CNPGap makes this host DCQCN's notification point: marked packets of a flow are answered with congestion
	// notifications, at most one in each CNPGap. 0, the default, sends none; the DCQCN paper uses 50 µs (Zhu et al.,
	// SIGCOMM 2015, §3.1).
	CNPGap units.Time

	// ShimPort is the UDP port of packets with the maxQD shim, maxqd.Port by default.
	ShimPort uint16

	// Timeouts of the transport; see transport.SenderConfig. By default 1 s, 250 ms, 4 s:
	// for emulated fabrics, whose round trips are tens of milliseconds.
	InitialRTO, MinRTO, MaxRTO units.Time
	// MaxLate is how late Wake may be called without NIC and flows losing rate: frames
	// catch up back to back. 0 by default, right on a virtual clock.
	MaxLate units.Time

	// Deliver, if set, gets the payload of each data packet that is the next in its flow. The bytes are valid until
	// Deliver returns.
	Deliver func(from FlowKey, payload []byte)
	// Fill, when set, writes the payload at an offset of a flow; otherwise it is zeros.
	Fill func(flow FlowKey, offset uint64, payload []byte)
}

func (c Config) withDefaults() (Config, error) {
	c.MSS = cmp.Or(c.MSS, 1000)
	c.AckDSCP = cmp.Or(c.AckDSCP, 48)
	c.ShimPort = cmp.Or(c.ShimPort, maxqd.Port)
	c.FirstQP = cmp.Or(c.FirstQP, 1)
	c.InitialRTO = cmp.Or(c.InitialRTO, units.Second)
	c.MinRTO = cmp.Or(c.MinRTO, 250*units.Millisecond)
	c.MaxRTO = cmp.Or(c.MaxRTO, 4*units.Second)
	switch {
	case !c.IP.IsValid() || c.IP.Is4In6() || c.IP.Zone() != "":
		return c, fmt.Errorf("host %q: address %v: want an IPv4 or IPv6 address", c.Name, c.IP)
	case c.Rate <= 0:
		return c, fmt.Errorf("host %q: rate %v: want more than 0", c.Name, c.Rate)
	case c.Unit.Time() <= 0:
		return c, fmt.Errorf("host %q: maxQD unit: want one, see maxqd.NewUnit", c.Name)
	case c.NewLaw == nil:
		return c, fmt.Errorf("host %q: law: want a function that makes one", c.Name)
	case c.MSS < 1 || c.MSS > packet.MaxPayload:
		return c, fmt.Errorf("host %q: MSS %d B: want 1 to %d B", c.Name, int64(c.MSS), packet.MaxPayload)
	case c.DataDSCP > 63 || c.AckDSCP > 63:
		return c, fmt.Errorf("host %q: DSCP %d and %d: want 0 to 63", c.Name, c.DataDSCP, c.AckDSCP)
	case c.badClass() != "":
		return c, fmt.Errorf("host %q: %s", c.Name, c.badClass())
	case c.ShimPort == packet.RoCEv2Port:
		return c, fmt.Errorf("host %q: UDP port %d with the maxQD shim: want another than RoCEv2's", c.Name, c.ShimPort)
	case c.FirstQP > packet.MaxQP:
		return c, fmt.Errorf("host %q: first queue pair %d: want at most %d", c.Name, c.FirstQP, packet.MaxQP)
	case c.CNPGap < 0:
		return c, fmt.Errorf("host %q: gap of congestion notifications %v: want 0 (none) or more", c.Name, c.CNPGap)
	case c.MaxLate < 0:
		return c, fmt.Errorf("host %q: lateness %v: want 0 or more", c.Name, c.MaxLate)
	}
	return c, nil
}

// badClass returns the fault of the classes, "" for none.
func (c *Config) badClass() string {
	for dscp := range 256 {
		switch class, ok := c.Classes[uint8(dscp)]; {
		case ok && dscp > 63:
			return fmt.Sprintf("class of DSCP %d: want a DSCP of 0 to 63", dscp)
		case class >= packet.PFCClasses:
			return fmt.Sprintf("class %d of DSCP %d: want 0 to %d", class, dscp, packet.PFCClasses-1)
		}
	}
	return ""
}

// Soze returns a Config.NewLaw that gives each flow Söze's law.
func Soze(p soze.Params) func(FlowSpec) (law.Law, error) {
	return func(f FlowSpec) (law.Law, error) { return soze.New(p, f.Weight) }
}

// FlowKey names a flow by its five-tuple; the protocol is UDP.
type FlowKey struct {
	Src, Dst         netip.Addr
	SrcPort, DstPort uint16
}

// String prints the key as source and destination.
func (k FlowKey) String() string {
	return fmt.Sprintf("%v:%d>%v:%d", k.Src, k.SrcPort, k.Dst, k.DstPort)
}

// FlowSpec is a flow to start.
type FlowSpec struct {
	Dst     netip.Addr
	SrcPort uint16      // 0 chooses one that is free
	DstPort uint16      // Config.ShimPort, the default, or packet.RoCEv2Port for no shim
	Weight  float64     // finite and above 0; 1 when 0
	Size    units.Bytes // 0 for a flow that ends when it is stopped
	App     string      // application whose budget pays for the weight
	DSCP    uint8       // DSCP of its data packets, 1 to 63; 0 means Config.DataDSCP

	Deadline units.Time // time after the start, for laws that know deadlines; 0 for none
	// Priority is the flow's virtual priority under PrioPlus; 0 for none. Channel is the priority's channel.
	// AwaitChannel holds the flow back until SetChannel gives it a channel.
	Priority     int
	Channel      channel.Channel
	AwaitChannel bool
}
