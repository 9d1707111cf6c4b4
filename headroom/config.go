package headroom

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

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
	// DT pauses a queue at the dynamic threshold of Eq. 2. It has the threshold and the headroom of SIH. The paper
	// on SPFC calls it DT, the paper on DSH calls it SIH.
	DT Kind = "dt"
	// SIH is DT with static and independent headroom, Np·Nq·Φ (DSH §III).
	SIH Kind = "sih"
	// Adaptive is SIH with each port's Φ computed from the delay of its own link. The configuration gives the
	// delay; IEEE P802.1Qdt measures it.
	Adaptive Kind = "adaptive"
	// Oversubscribed is SIH with only a part of each Φ, 80 % by default. It may drop lossless packets.
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

// Insured reports whether a policy has headroom by port, DSH's insurance, and not by queue.
func (k Kind) Insured() bool { return k == DSH || k == DSHSPFC }

// Victims reports whether a policy finds victim ports, as SPFC does.
func (k Kind) Victims() bool { return k == SPFC || k == DSHSPFC }

// Port is an ingress port and the link that feeds it.
type Port struct {
	Rate  units.Rate // positive
	Delay units.Time // propagation one way, 0 or more
	// Headroom is Φ of each lossless queue, or of the whole port with DSH. 0 means Config.Headroom.
	Headroom units.Bytes
	// Response is the number of bytes that the peer may still send after a PAUSE has arrived. 0 means
	// the value of Config.Method for the rate.
	Response units.Bytes
	// Victim makes the port a victim whenever it is not paused, with SPFC and DSHSPFC. If it is set for any port,
	// departures make no other port a victim. SPFC §III also sets a port's threshold by hand.
	Victim bool
}

// Config configures an MMU. New calls WithDefaults, which fills in all defaults that are not zero.
type Config struct {
	Policy   Kind
	Buffer   units.Bytes // all memory, 1 B to 1 TB
	Ports    []Port      // 1 to 1024
	Lossless uint8       // classes under PFC, bit n for class n; 0 is refused
	MTU      units.Bytes // largest frame, 64 to 65 535 B; 1500 B by default

	Private units.Bytes // ρ, per lossless queue; 0 or more
	// LossyPrivate is the private memory per queue of any other class; 0 or more. With 0, these queues have no
	// memory while lossless ones fill the shared pool, which Static and SPFC allow. Acknowledgements in a lossy
	// class are then dropped. DSH §V uses 3 KB.
	LossyPrivate units.Bytes
	// Headroom is Φ of the ports that set none themselves. 0 means Link.Required of each port's link by Method,
	// which is Standard by default.
	Headroom units.Bytes
	Method   Method
	// Cell and SmallPackets are the fields of Link: the unit of memory, 0 (none) to 64 KB, and the share of
	// arriving bytes in packets that waste most of it, 0 to 100 %.
	Cell         units.Bytes
	SmallPackets int

	Alpha     Alpha       // of all policies but Static; 1 by default
	Threshold units.Bytes // Xoff of Static; positive and at most the shared pool
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

	// LocalResume is for match-action pipelines: a departure rechecks only the packet's own queue and port. An
	// empty queue or port always resumes and is never paused.
	LocalResume bool
	// Counted is the MMU of the public HPCC simulator (alibaba-edu/High-Precision-Congestion-Control,
	// simulation/src/point-to-point/model/switch-mmu.cc), for figures that were made with it. It counts the bytes of queues, but
	// their sum may exceed the memory. It drops a packet only if both the queue's threshold and its headroom are exceeded. It
	// neither counts nor drops lossy classes. It resumes as LocalResume does, or once a queue has no shared bytes. A victim's
	// threshold is Buffer. Counted needs AllowLoss and is not for DSH.
	Counted bool
	// AllowLoss accepts headroom that is too small for the link, for experiments.
	AllowLoss bool
}

// DSHConfig is for DSH and DSHSPFC.
type DSHConfig struct {
	Window    units.Time     // Algorithm 4; 10 ms by default
	Precision log2.Precision // precision of Algorithm 3; log2.Default by default
	Entries   int            // size of the table ĝ → φ̂; phi.DefaultEntries by default
	// Tick is the resolution of the clock that Algorithm 3 reads, up to phi.MaxTick; 0 means 1 ps.
	Tick units.Time
	// NoInsurance leaves out DSH's insurance (Fig. 21), NoSharedHeadroom its shared headroom (Fig. 15).
	// NoInsurance may drop and needs AllowLoss.
	NoInsurance, NoSharedHeadroom bool
}

// SPFCConfig is for SPFC and DSHSPFC.
type SPFCConfig struct {
	K int // divisor of C/K, 2 to 64; 5 by default
	// Period is the Timeout Clock, at least 4 RTT of the fabric; 100 µs by default.
	Period units.Time
	// Packet, if not 0, makes SPFC count departures in packets of this size, as Fig. 10 does. 0 counts bytes,
	// which judges small packets by their rate, as §IV does.
	Packet units.Bytes
}

// Limits of Config.
const (
	MaxPorts  = 1024
	MaxBuffer = 1000 * units.GB
)

// WithDefaults returns c with every default filled in.
func (c Config) WithDefaults() Config {
	c.MTU, c.Method, c.Share = cmp.Or(c.MTU, 1500), cmp.Or(c.Method, Standard), cmp.Or(c.Share, 800)
	c.DSH.Window, c.DSH.Entries = cmp.Or(c.DSH.Window, 10*units.Millisecond), cmp.Or(c.DSH.Entries, phi.DefaultEntries)
	c.DSH.Precision = cmp.Or(c.DSH.Precision, log2.Default())
	c.SPFC.K, c.SPFC.Period = cmp.Or(c.SPFC.K, 5), cmp.Or(c.SPFC.Period, 100*units.Microsecond)
	c.PortQueues = cmp.Or(c.PortQueues, c.queues())
	return c
}

// Layout is how a Config splits its buffer. The four pools add up to it.
type Layout struct {
	Private, Headroom, Insurance, Shared units.Bytes
	// Phi is the headroom of each lossless queue of a port, or a port's insurance.
	Phi []units.Bytes
}

func (c *Config) queues() int { return bits.OnesCount8(c.Lossless) }

// phiOf returns a port's reserved headroom: for each of its lossless queues, or once with DSH.
func (c *Config) phiOf(p *Port) units.Bytes {
	if c.Policy.Insured() && c.DSH.NoInsurance {
		return 0
	}
	return c.fullPhi(p)
}

func (c *Config) fullPhi(p *Port) units.Bytes {
	phi := p.Headroom
	if phi == 0 {
		phi = c.Headroom
	}
	if phi == 0 || c.Policy == Adaptive && p.Headroom == 0 {
		phi = c.link(p).Required()
	}
	if c.Policy == Oversubscribed {
		phi = phi * units.Bytes(c.Share) / 1000
	}
	return phi
}

// layout splits the buffer of a Config with defaults. Shared is not positive when the other pools exceed the buffer.
func (c *Config) layout() Layout {
	n := units.Bytes(len(c.Ports))
	lossless := units.Bytes(c.queues())
	l := Layout{
		Private: n * (lossless*c.Private + (Classes-lossless)*c.LossyPrivate),
		Phi:     make([]units.Bytes, len(c.Ports)),
	}
	for i := range c.Ports {
		l.Phi[i] = c.phiOf(&c.Ports[i])
		if c.Policy.Insured() {
			l.Insurance += l.Phi[i]
		} else {
			l.Headroom += lossless * l.Phi[i]
		}
	}
	l.Shared = c.Buffer - l.Private - l.Headroom - l.Insurance
	return l
}

// Layout returns the pools that c asks for. It returns a *units.FieldError when c is not valid.
func (c Config) Layout() (Layout, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return Layout{}, err
	}
	return c.layout(), nil
}

// poolsText lists the sizes of the pools other than the shared one.
func (c *Config) poolsText(l *Layout) string {
	reserved, per := "headroom", fmt.Sprintf("%d ports × %d lossless queues", len(c.Ports), c.queues())
	if c.Policy.Insured() {
		reserved, per = "insurance", fmt.Sprintf("%d ports", len(c.Ports))
	}
	return fmt.Sprintf("private %d B (%d ports × (%d lossless queues × %d B + %d others × %d B)) + %s %d B (%s × Φ, Φ of port 0 %d B) = %d B",
		l.Private, len(c.Ports), c.queues(), c.Private, Classes-c.queues(), c.LossyPrivate,
		reserved, l.Headroom+l.Insurance, per, l.Phi[0], l.Private+l.Headroom+l.Insurance)
}

// Validate returns a *units.FieldError for the first fault of a Config with defaults: a value out
// of range, pools that exceed the buffer, headroom too small to be lossless on its link, or
// a threshold at which no queue could ever resume.
func (c Config) Validate() error {
	for _, check := range []func(*Config) error{
		(*Config).checkRanges, (*Config).checkPorts, (*Config).checkPolicy, (*Config).checkPools, (*Config).checkLossless, (*Config).checkThresholds,
	} {
		if err := check(&c); err != nil {
			return err
		}
	}
	return nil
}

// inBytes prints an amount for an error, always in bytes.
func inBytes(n units.Bytes) string { return fmt.Sprintf("%d B", n) }

func between(field string, v, low, high units.Bytes) error {
	return units.Fault(v < low || v > high, field, inBytes(v), fmt.Sprintf("%d to %d B", low, high), "")
}

func (c *Config) checkRanges() error {
	var names []string
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	return cmp.Or(
		units.Fault(!slices.Contains(Kinds(), c.Policy), "policy", fmt.Sprintf("%q", c.Policy), "one of "+strings.Join(names, ", "), ""),
		units.Fault(!slices.Contains(Methods(), c.Method), "headroom_method", fmt.Sprintf("%q", c.Method), fmt.Sprintf("%s or %s", Standard, ByEq1), ""),
		units.Fault(c.SmallPackets < 0 || c.SmallPackets > 100, "small_packets", fmt.Sprintf("%d %%", c.SmallPackets), "0 to 100 %", ""),
		between("cell_size", c.Cell, 0, 65536),
		units.Fault(c.Lossless == 0, "lossless", "no class", "at least one of the classes 0 to 7", ""),
		units.Fault(c.PortQueues < 1 || c.PortQueues > Classes, "port_queues", c.PortQueues, "1 to 8", ""),
		between("buffer", c.Buffer, 1, MaxBuffer),
		between("mtu", c.MTU, 64, 65535),
		between("private", c.Private, 0, c.Buffer),
		between("lossy_private", c.LossyPrivate, 0, c.Buffer),
		between("headroom", c.Headroom, 0, c.Buffer),
		between("resume_gap", c.ResumeGap, 0, c.Buffer),
		between("port_resume_gap", c.PortResumeGap, 0, c.Buffer),
	)
}

func (c *Config) checkPorts() error {
	n := len(c.Ports)
	err := units.Fault(n < 1 || n > MaxPorts, "ports", n, fmt.Sprintf("1 to %d", MaxPorts), "")
	for i, p := range c.Ports {
		if err != nil {
			break
		}
		port := fmt.Sprintf("ports[%d].", i)
		err = cmp.Or(
			units.Fault(p.Rate <= 0 || p.Rate > 10_000*units.Gbps, port+"rate", p.Rate, "more than 0 to 10 000 Gbps", ""),
			units.Fault(p.Victim && !c.Policy.Victims(), port+"victim", true, "false with policy "+string(c.Policy), "only spfc and dsh+spfc have victims"),
			units.Fault(p.Delay < 0 || p.Delay > units.Second, port+"delay", p.Delay, "0 to 1 s", ""),
			between(port+"headroom", p.Headroom, 0, c.Buffer),
			between(port+"response", p.Response, 0, 65535*Quantum),
		)
	}
	return err
}

func (c *Config) checkPolicy() error {
	err := cmp.Or(
		units.Fault(c.Policy == Static && c.Threshold <= 0, "threshold", inBytes(c.Threshold), "1 B or more", ""),
		units.Fault(c.Policy != Static && (c.Alpha < MinAlpha || c.Alpha > MaxAlpha), "alpha", fmt.Sprintf("2^%d", int8(c.Alpha)), alphaAllowed, ""),
		units.Fault(c.Counted && (!c.AllowLoss || c.Policy.Insured()), "counted", true,
			"false unless allow_loss is set and the policy has headroom for each queue", "nothing keeps the sum of what queues hold within the memory"),
		units.Fault(c.Share < 1 || c.Share > 1000, "share", fmt.Sprintf("%d ‰", c.Share), "1 to 1000 ‰", ""),
	)
	if err == nil && c.Policy.Insured() {
		err = c.checkDSH()
	}
	if err == nil && c.Policy.Victims() {
		err = c.checkSPFC()
	}
	return err
}

func (c *Config) checkDSH() error {
	d := &c.DSH
	if err := units.Fault(d.Window <= 0, "dsh.window", d.Window, "more than 0; the paper has 10 ms", ""); err != nil {
		return err
	}
	if err := d.Precision.Validate(); err != nil {
		return fmt.Errorf("dsh.precision: %w", err)
	}
	return cmp.Or(
		units.Fault(d.Tick < 0 || d.Tick > phi.MaxTick, "dsh.tick", d.Tick, fmt.Sprintf("0 to %v", phi.MaxTick), ""),
		units.Fault(d.Entries < phi.MinEntries || d.Entries > phi.MaxEntries, "dsh.entries", d.Entries, fmt.Sprintf("%d to %d", phi.MinEntries, phi.MaxEntries), ""),
		units.Fault(d.NoInsurance && !c.AllowLoss, "dsh.no_insurance", true, "false unless allow_loss is set",
			"shared headroom is not guaranteed, so a full pool drops"),
	)
}

func (c *Config) checkSPFC() error {
	s := &c.SPFC
	err := cmp.Or(
		units.Fault(s.K < 2 || s.K > 64, "spfc.k", s.K, "2 to 64", ""),
		units.Fault(s.Packet < 0 || s.Packet > 65535, "spfc.packet", inBytes(s.Packet), "0 (count bytes) to 65535 B", ""),
	)
	for i, p := range c.Ports {
		if err != nil {
			break
		}
		least := max(8*p.Delay, 1) // one hop and back is the shortest RTT there can be
		if err = units.Fault(s.Period < least, "spfc.period", s.Period, fmt.Sprintf("%v or more", least),
			fmt.Sprintf("TC ≥ 4 RTT, and ports[%d] alone has an RTT of 2 · %v", i, p.Delay)); err == nil {
			err = units.Fault(DepartLimit(p.Rate, s.Period, s.K, s.Packet) < 1, "spfc.period", s.Period, "a period in which one packet or byte can leave at C/K",
				fmt.Sprintf("ports[%d]: %v · %v / %d is below one", i, p.Rate, s.Period, s.K))
		}
	}
	return err
}

func (c *Config) checkPools() error {
	l := c.layout()
	return units.Fault(l.Shared <= 0, "buffer", inBytes(c.Buffer), fmt.Sprintf("more than %d B", l.Private+l.Headroom+l.Insurance), c.poolsText(&l))
}

// checkLossless refuses headroom below Least. Headroom above Least may still be below Link.Required; the caller
// that configures a switch reports that.
func (c *Config) checkLossless() error {
	if c.AllowLoss || c.Policy == Oversubscribed {
		return nil
	}
	for i := range c.Ports {
		p := &c.Ports[i]
		least := c.least(p)
		have, need := c.phiOf(p), least.Required()
		if have >= need {
			continue
		}
		field := "headroom"
		if p.Headroom != 0 {
			field = fmt.Sprintf("ports[%d].headroom", i)
		}
		return units.Fault(true, field, inBytes(have), fmt.Sprintf("%d B or more", need), fmt.Sprintf("ports[%d] needs %s", i, least.text()))
	}
	return nil
}

// checkThresholds makes sure that with an empty pool every queue and port may send a packet and resume.
func (c *Config) checkThresholds() error {
	l := c.layout()
	top, text := c.Threshold, ""
	if c.Policy == Static {
		if c.Threshold > l.Shared {
			return units.Fault(true, "threshold", inBytes(c.Threshold), fmt.Sprintf("1 to %d B", l.Shared), fmt.Sprintf("the shared pool has %d B − %s = %d B", c.Buffer, c.poolsText(&l), l.Shared))
		}
	} else {
		top = c.Alpha.Threshold(l.Shared)
		text = fmt.Sprintf("α·Bs = %v · %d B = %d B, ", c.Alpha, l.Shared, top)
	}
	need := c.ResumeGap + c.MTU + 1
	if c.Policy.Insured() && !c.DSH.NoSharedHeadroom {
		var tau units.Bytes
		for i := range c.Ports {
			tau = max(tau, c.fullPhi(&c.Ports[i]))
		}
		need += tau
		text += fmt.Sprintf("less τ of up to Φ = %d B, ", tau)
	}
	if top >= need {
		most := units.Bytes(c.PortQueues) * top
		return units.Fault(c.Policy.Insured() && most <= c.PortResumeGap, "port_resume_gap", inBytes(c.PortResumeGap), fmt.Sprintf("less than %d B", most),
			fmt.Sprintf("Xpoff = Nq·T = %d · %d B with an empty pool, and no port could ever resume", c.PortQueues, top))
	}
	field, value := "alpha", c.Alpha.String()
	if c.Policy == Static {
		field, value = "threshold", inBytes(c.Threshold)
	}
	return units.Fault(true, field, value, fmt.Sprintf("a threshold of %d B or more with an empty pool", need),
		fmt.Sprintf("otherwise a queue could pause at its first packet and never resume (%sless δ = %d B and MTU = %d B)", text, c.ResumeGap, c.MTU))
}

// Alpha is the exponent of the control parameter α of dynamic thresholds (Eq. 2), MinAlpha to MaxAlpha. α is a
// power of two, so that pipelines shift instead of multiplying. The zero Alpha is α = 1.
type Alpha int8

// Range of Alpha: 1/1024 to 64.
const (
	MinAlpha Alpha = -10
	MaxAlpha Alpha = 6
)

const alphaAllowed = "a power of two from 1/1024 to 64"

// Threshold returns α·free, rounded down, or 0 if free is not positive.
func (a Alpha) Threshold(free units.Bytes) units.Bytes {
	if free <= 0 {
		return 0
	}
	if a < 0 {
		return free >> (uint(-a) % 64)
	}
	return free << (uint(a) % 64)
}

// String returns the value, such as "1/16" or "2".
func (a Alpha) String() string {
	if a < 0 {
		return fmt.Sprintf("1/%d", uint64(1)<<uint(-a))
	}
	return strconv.FormatUint(1<<uint(a), 10)
}

// ParseAlpha reads "1/16", "0.0625" or "2". It returns a *units.FieldError for anything that is
// not a power of two in range.
func ParseAlpha(s string) (Alpha, error) {
	bad := &units.FieldError{Field: "alpha", Value: strconv.Quote(s), Allowed: alphaAllowed}
	num, den, isFraction := strings.Cut(strings.TrimSpace(s), "/")
	v, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
	if err != nil {
		return 0, bad
	}
	if isFraction {
		d, err := strconv.ParseFloat(strings.TrimSpace(den), 64)
		if err != nil || d <= 0 {
			return 0, bad
		}
		v /= d
	}
	mantissa, exponent := math.Frexp(v)
	a := exponent - 1
	if mantissa != 0.5 || a < int(MinAlpha) || a > int(MaxAlpha) {
		return 0, bad
	}
	return Alpha(a), nil
}

// UnmarshalText implements encoding.TextUnmarshaler; see ParseAlpha.
func (a *Alpha) UnmarshalText(text []byte) (err error) {
	*a, err = ParseAlpha(string(text))
	return err
}

// MarshalText implements encoding.TextMarshaler.
func (a Alpha) MarshalText() ([]byte, error) { return []byte(a.String()), nil }
