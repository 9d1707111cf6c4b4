package buffer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/tables/log2"
	"github.com/headgate/headgate/tables/phi"
	"github.com/headgate/headgate/units"
)

// Off is the policy of a switch that accounts for nothing and never sends a PAUSE.
const Off headroom.Kind = "off"

// Config is the section buffer: it divides a switch's memory among its ingress ports and sets when a sender is
// paused; package headroom explains the terms. The fabric has one section, and a switch may override any of its
// keys in its own section. Amounts are as in the papers. The times of dsh and spfc are times of the network, those
// of watchdog are wall-clock times.
type Config struct {
	// Policy is off, static, dt, sih, adaptive, oversubscribed, dsh, spfc or dsh+spfc; default off. All other keys
	// except lossless and size have defaults.
	Policy headroom.Kind
	// Size is the whole buffer memory of the switch, 1 B … 2 GB, because the pipeline adds in 32 bits. Required
	// with a policy.
	Size units.Bytes
	// Lossless has a bit for each class under PFC. Required with a policy; each class except 0 must be in
	// qos.classes.
	Lossless uint8
	// MTU is the largest frame, 64 … 65 535 B; default 1500 B.
	MTU units.Bytes
	// Private is ρ of each lossless queue, LossyPrivate that of each other queue; default 0.
	Private, LossyPrivate units.Bytes
	// Headroom is Φ of each lossless queue or, with DSH, of each port; 0, the default, takes the value of
	// headroom_profiles for the port's link or, without a profile, the link's requirement by headroom_method.
	// switches[].ports[].headroom takes precedence over all of these.
	Headroom units.Bytes
	// HeadroomMethod is standard or dsh; default standard. standard counts the response time that IEEE 802.3 Annex
	// 31B.3.7 allows the peer at the link's line rate. dsh is DSH's Eq. 1 with 60 quanta at every rate. It loses
	// packets if a peer above 10 Gb/s responds later.
	HeadroomMethod headroom.Method
	// PeerResponse is the response time of all peers to a PAUSE, in quanta of 512 bit times, 0 … 65535;
	// 0, the default, is the value of headroom_method for the link's rate.
	PeerResponse int
	// CellSize is the unit in which the switch allocates memory to packets, 1 B … 64 KB; default 1 B. Headroom is
	// counted in whole cells. The driver of a Tofino uses the chip's cells instead.
	CellSize units.Bytes
	// SmallPackets is the share of the bytes after a PAUSE that arrive in packets of the size that wastes most of
	// its cells, 0 … 100 %; default 100. Without cells it has no effect.
	SmallPackets int
	// HeadroomProfiles are the vendor's headroom by rate and delay, as in SONiC's pg_profile_lookup.ini; none by
	// default.
	HeadroomProfiles []HeadroomProfile
	// Alpha is α: a queue's threshold is Alpha times the free shared memory. It is a power of two, 1/1024 … 64;
	// default 1.
	Alpha headroom.Alpha
	// Threshold is the length at which the policy static pauses a queue. Required for static; default none.
	Threshold units.Bytes
	// ResumeGap is δ of queues, PortResumeGap is δ of ports under DSH; default 0.
	ResumeGap, PortResumeGap units.Bytes
	// PortQueues is Nq in DSH's port threshold, 1 … 8; default the number of lossless classes.
	PortQueues int
	// PauseQuanta is how long a PAUSE lasts in units of 512 bit times, 1 … 65535; default
	// 65535. It is repeated before it expires.
	PauseQuanta uint16
	// AllowCycles lets routes of lossless classes be applied that have a cyclic buffer dependency,
	// and so may deadlock; default false. Only in the section of the fabric.
	AllowCycles bool
	// AllowClassChange lets routes lead from switches where a class is lossless to others where it
	// is not; default false. Only in the section of the fabric.
	AllowClassChange bool
	// Share is the part of Φ that the policy oversubscribed reserves, 1 … 1000 ‰; default 800.
	Share int

	// Window is the window of Algorithm 4 at line rate, 1 ns … 1 s; default 10 ms.
	Window units.Time `key:"dsh.window"`
	// Precision is the precision of the logarithm tables by which a switch divides in Algorithm 3 (package log2).
	// log_bits is the number of bits after the leading one that a logarithm uses. exp_bits is the number of
	// fractional bits that an exponential uses; it is at most frac_bits, the fractional bits of a logarithm.
	Precision log2.Precision `key:"dsh.log_bits,dsh.exp_bits,dsh.frac_bits"`
	// Entries is the size of the table of Algorithm 3's estimate (package phi).
	Entries int `key:"dsh.entries"`

	// K divides a port's rate C to C/K, at which SPFC's limit of departures counts (§V-B), 2 … 64; default 5.
	K int `key:"spfc.k"`
	// Period is SPFC's Timeout Clock at line rate, at least 4 RTT. Multiplied by scale it must be at least 1 µs,
	// the tick of the pipeline's clock. On a chip it must be at least 5 ms, because the controller reads the chip's
	// counters once per period. Default 100 µs, or the 5 ms divided by scale if that is longer.
	Period units.Time `key:"spfc.period"`

	// Storm is the most PAUSE frames per second that a port may send, on average over
	// StormWindow, 1 … 10^9; default 100 000 / scale, at least 1.
	Storm uint64 `key:"watchdog.storm"`
	// StormWindow is a wall-clock time, 100 ms … 1 h; default 1 s.
	StormWindow time.Duration `key:"watchdog.window"`
	// Stuck is how long a class may stay paused without a break, a wall-clock time of
	// 10 ms … 24 h; default 2 ms · scale, at least 200 ms.
	Stuck time.Duration `key:"watchdog.stuck"`
}

// HeadroomProfile is the headroom of links of one rate. If several profiles have the link's rate, the one with the
// smallest delay that is not below the link's applies.
type HeadroomProfile struct {
	// Rate is the line rate of the link (its rate times scale), > 0. Required.
	Rate units.Rate
	// Delay is the longest one-way propagation delay of the link at line rate, 0 … 1 s, 5 ns for each
	// metre of cable; default 0.
	Delay units.Time
	// Headroom is Φ, like the key headroom of the section, 1 B … 2 GB; xoff in SONiC. Required.
	Headroom units.Bytes
}

// Metre is the delay of a metre of cable. SONiC names cables by their length.
const Metre = 5 * units.Nanosecond

// ParseProfiles reads SONiC's pg_profile_lookup.ini: rows of speed in Mb/s, cable in metres, and in bytes size, xon and xoff, which is
// the headroom. The error, a *yamlnode.Error, names each row that is none.
func ParseProfiles(file, text string) (list []HeadroomProfile, err error) {
	var faults []yamlnode.Fault
	line := 0
	for row := range strings.Lines(text) {
		line++
		if row = strings.TrimSpace(row); row == "" || row[0] == '#' {
			continue
		}
		var speed, metres, size, xon, xoff int64
		n, _ := fmt.Sscanf(row, "%d %dm %d %d %d", &speed, &metres, &size, &xon, &xoff)
		p := HeadroomProfile{units.Rate(speed) * units.Mbps, units.Time(metres) * Metre, units.Bytes(xoff)}
		if n < 5 || speed < 1 || speed > int64(config.MaxRate/units.Mbps) || metres < 0 || metres > int64(units.Second/Metre) || xoff < 1 || p.Headroom > maxBuffer {
			faults = append(faults, yamlnode.Fault{Line: line, Text: fmt.Sprintf("is %.60q, want speed in Mb/s, cable such as 5m, size, xon, and xoff from 1 to %d", row, int64(maxBuffer))})
			continue
		}
		list = append(list, p)
	}
	return list, yamlnode.NewError(file, faults, len(faults))
}

// Profile returns the headroom of the profile for a link at line rate, 0 without a profile.
func (b Config) Profile(rate units.Rate, delay units.Time) units.Bytes {
	var found HeadroomProfile
	for _, p := range b.HeadroomProfiles {
		if p.Rate == rate && p.Delay >= delay && (found.Rate == 0 || p.Delay < found.Delay) {
			found = p
		}
	}
	return found.Headroom
}

// MinPeriod is the shortest wall-clock time between two readings of a switch's counters.
const MinPeriod = 5 * time.Millisecond

// Limits of a buffer section. The pipeline adds up amounts in 32 bits.
const (
	maxBuffer = 2 * units.GB
	maxStorm  = 1_000_000_000
)

// On reports whether a policy is in force.
func (b Config) On() bool { return b.Policy != Off && b.Policy != "" }

// LargestFrame implements config.Framed.
func (b Config) LargestFrame() (units.Bytes, bool) { return b.MTU, b.On() }

// Headroom returns the configuration of a switch's memory with its defaults, and the port
// number of each of its ports, ascending. ok is false when the switch has no policy.
func Headroom(c *config.Config, s *config.Switch) (h headroom.Config, ports []uint32, ok bool) {
	b := FromSwitch(s)
	if !b.On() {
		return headroom.Config{}, nil, false
	}
	h = headroom.Config{
		Policy: b.Policy, Buffer: b.Size, Lossless: b.Lossless, MTU: b.MTU,
		Private: b.Private, LossyPrivate: b.LossyPrivate, Headroom: b.Headroom, Method: b.HeadroomMethod, Cell: b.CellSize, SmallPackets: b.SmallPackets,
		Alpha: b.Alpha, Threshold: b.Threshold, ResumeGap: b.ResumeGap, PortResumeGap: b.PortResumeGap,
		PortQueues: b.PortQueues, Share: b.Share,
		DSH:  headroom.DSHConfig{Window: c.Scaled(b.Window), Precision: b.Precision, Entries: b.Entries},
		SPFC: headroom.SPFCConfig{K: b.K, Period: c.Scaled(b.Period)},
		// Limits of a match-action pipeline.
		LocalResume: true,
	}
	for _, p := range switchPorts(c, s.Name) {
		port := headroom.Port{Rate: p.Rate, Delay: c.Scaled(p.Delay), Response: units.Bytes(b.PeerResponse) * headroom.Quantum}
		line, _ := c.LineRate(p.Rate)
		if port.Response == 0 && b.HeadroomMethod == headroom.Standard {
			port.Response = headroom.Response(line)
		}
		if port.Headroom = s.Port(p.number).Headroom; port.Headroom == 0 && b.Headroom == 0 {
			port.Headroom = b.Profile(line, p.Delay)
		}
		h.Ports = append(h.Ports, port)
		ports = append(ports, p.number)
	}
	return h.WithDefaults(), ports, true
}

// LosslessAt returns the classes that are under PFC at a port of a switch, a bit for each.
func LosslessAt(s *config.Switch, port uint32) uint8 {
	if own := s.Port(port).Lossless; own != nil {
		return *own & FromSwitch(s).Lossless
	}
	return FromSwitch(s).Lossless
}

// LosslessQueues returns the egress queues that hold classes under PFC on a switch, a bit for
// each; none without a policy.
func LosslessQueues(c *config.Config, s *config.Switch) (queues uint8) {
	for _, q := range queuesOf(c, s) {
		queues |= uint8(q)
	}
	return queues
}

// queuesOf returns the egress queues of each class under PFC on a switch; none without a policy.
func queuesOf(c *config.Config, s *config.Switch) (l externs.Lossless) {
	b := FromSwitch(s)
	if !b.On() {
		return l
	}
	l[0] = uint32(b.Lossless & 1) // DSCPs that are not listed have class 0 and queue 0
	for _, k := range qos.FromConfig(c).Classes {
		if b.Lossless>>k.Class&1 != 0 {
			l[k.Class] |= 1 << k.Queue
		}
	}
	return l
}

// switchPort is a port of a switch with its link.
type switchPort struct {
	number uint32
	config.Link
}

// switchPorts returns the used ports of a switch by number.
func switchPorts(c *config.Config, name string) []switchPort {
	var list []switchPort
	for _, l := range c.Links {
		if l.A.Node == name {
			list = append(list, switchPort{l.A.Port, l})
		}
		if l.B.Node == name {
			list = append(list, switchPort{l.B.Port, l})
		}
	}
	slices.SortStableFunc(list, func(a, b switchPort) int { return cmp.Compare(a.number, b.number) })
	return list
}

func read(m *yamlnode.Map, c *config.Config) any {
	b := defaults(c.Scale)
	b.read(m)
	b.AllowCycles, b.AllowClassChange = m.Bool("allow_cycles", false), m.Bool("allow_class_change", false)
	return b
}

func readSwitch(m *yamlnode.Map, c *config.Config) any {
	b := config.SectionOf[Config](c, "buffer")
	b.read(m)
	return b
}

// FromSwitch returns the section of a switch.
func FromSwitch(s *config.Switch) Config { return config.SectionOf[Config](s, "buffer") }

// defaults returns a section without a policy, with the default parameters.
func defaults(scale int64) Config {
	least := units.FromDuration(MinPeriod)
	return Config{
		Policy: Off, MTU: 1500, Share: 800, PauseQuanta: 65535, HeadroomMethod: headroom.Standard, CellSize: 1, SmallPackets: 100,
		Window: 10 * units.Millisecond, Precision: log2.Default(), Entries: phi.DefaultEntries,
		K: 5, Period: max(100*units.Microsecond, (least+units.Time(scale)-1)/units.Time(scale)),
		Storm: max(1, 100_000/uint64(scale)), StormWindow: time.Second,
		Stuck: max(200*time.Millisecond, 2*time.Millisecond*time.Duration(scale)),
	}
}

// read reads a section; keys that it lacks keep b's values.
func (b *Config) read(m *yamlnode.Map) {
	policies := []string{string(Off)}
	for _, k := range headroom.Kinds() {
		policies = append(policies, string(k))
	}
	b.Policy = headroom.Kind(m.OneOf("policy", string(b.Policy), policies...))
	b.Size = m.Bytes("size", b.Size, 1, maxBuffer)
	b.Lossless = config.ReadClasses(m, "lossless", b.Lossless)
	b.MTU = m.Bytes("mtu", b.MTU, 64, 65535)
	b.Private = m.Bytes("private", b.Private, 0, maxBuffer)
	b.LossyPrivate = m.Bytes("lossy_private", b.LossyPrivate, 0, maxBuffer)
	b.Headroom = m.Bytes("headroom", b.Headroom, 0, maxBuffer)
	b.HeadroomMethod = headroom.Method(m.OneOf("headroom_method", string(b.HeadroomMethod), string(headroom.Standard), string(headroom.ByEq1)))
	b.PeerResponse = m.Int("peer_response", b.PeerResponse, 0, 65535)
	b.CellSize = m.Bytes("cell_size", b.CellSize, 1, 64*units.KiB)
	b.SmallPackets = m.Int("small_packets", b.SmallPackets, 0, 100)
	profiles := yamlnode.List(m, "headroom_profiles", readProfile)
	if m.Has("headroom_profiles") {
		b.HeadroomProfiles = profiles
	}
	b.Alpha = yamlnode.Scalar(m, "alpha", b.Alpha, `a power of two from 1/1024 to 64, such as "1/16" or 2: the pipeline multiplies by shifting`, readAlpha)
	b.Threshold = m.Bytes("threshold", b.Threshold, 1, maxBuffer)
	b.ResumeGap = m.Bytes("resume_gap", b.ResumeGap, 0, maxBuffer)
	b.PortResumeGap = m.Bytes("port_resume_gap", b.PortResumeGap, 0, maxBuffer)
	b.PortQueues = m.Int("port_queues", b.PortQueues, 1, headroom.Classes)
	b.PauseQuanta = uint16(m.Int("pause_quanta", int(b.PauseQuanta), 1, 65535))
	b.Share = m.Int("share", b.Share, 1, 1000)
	m.Sub("dsh", b.readDSH)
	m.Sub("spfc", func(m *yamlnode.Map) {
		m.Computed("period")
		b.K = m.Int("k", b.K, 2, 64)
		b.Period = m.Time("period", b.Period, units.Nanosecond, units.Second)
	})
	m.Sub("watchdog", func(m *yamlnode.Map) {
		m.Computed("storm", "stuck")
		b.Storm = uint64(m.Int("storm", int(b.Storm), 1, maxStorm))
		b.StormWindow = m.Wall("window", b.StormWindow, 100*time.Millisecond, time.Hour)
		b.Stuck = m.Wall("stuck", b.Stuck, 10*time.Millisecond, 24*time.Hour)
	})
}

func (b *Config) readDSH(m *yamlnode.Map) {
	bits := func(key string, def uint, low, high int) uint { return uint(m.Int(key, int(def), low, high)) }
	p := &b.Precision
	p.Log = bits("log_bits", p.Log, log2.MinBits, log2.MaxBits)
	p.Exp = bits("exp_bits", p.Exp, log2.MinBits, log2.MaxBits)
	p.Frac = bits("frac_bits", p.Frac, log2.MinFrac, log2.MaxFrac)
	if p.Exp > p.Frac {
		m.Fault("", "has exp_bits %d above frac_bits %d, want at most as many", p.Exp, p.Frac)
	}
	b.Entries = m.Int("entries", b.Entries, phi.MinEntries, phi.MaxEntries)
	b.Window = m.Time("window", b.Window, units.Nanosecond, units.Second)
}

func readProfile(m *yamlnode.Map) HeadroomProfile {
	m.Need("rate", "headroom")
	return HeadroomProfile{
		Rate: m.Rate("rate", 0, 1, config.MaxRate), Delay: m.Time("delay", 0, 0, units.Second), Headroom: m.Bytes("headroom", 0, 1, maxBuffer),
	}
}

func readAlpha(s string) (headroom.Alpha, error) {
	a, err := headroom.ParseAlpha(s)
	if err != nil {
		return 0, yamlnode.ErrNotAllowed
	}
	return a, nil
}
