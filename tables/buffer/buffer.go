// Package buffer makes the table entries with which the pipeline (p4src/v1model/policy.p4
// and gradient.p4) decides on packet memory as a headroom.MMU does. The controller and the tests turn the
// entries into P4Runtime updates.
package buffer

import (
	"cmp"
	"fmt"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tables/log2"
	"github.com/headgate/headgate/tables/phi"
	"github.com/headgate/headgate/units"
)

// Tick is the unit of the pipeline's clock, on BMv2 and on the embedded switch.
const Tick = units.Microsecond

// DefaultQuanta is the time of a PAUSE, in quanta of 512 bit times: the longest there is.
const DefaultQuanta = 65535

// Config is a policy with its ports.
type Config struct {
	// MMU is the policy. Its ports are ingress ports in the order of Numbers; its times are those of the
	// switch's clock. Build sets LocalResume and DSH.Tick, because a pipeline supports only these values, and
	// sets SPFC.Packet to 0, because a pipeline counts bytes.
	MMU     headroom.Config
	Numbers []uint32  // numbers of the ports in the pipeline: 0 to 511 except the CPU port, no duplicates
	Quanta  uint16    // time of a PAUSE in quanta; 0 means DefaultQuanta
	MAC     [][6]byte // source of each port's PFC frames; nil for zeros
}

// Match is one field of an entry's key. Fields that do not matter are left out.
type Match struct {
	Field  string
	Value  uint64
	Prefix int // length of the prefix of 32 bits in a longest-prefix match, or Exact
}

// Exact is the Prefix of an exact match.
const Exact = -1

// Action is an entry's action, with its parameters in the order of the P4 program.
type Action struct {
	Name   string
	Params []uint64
}

// Entry is one table entry.
type Entry struct {
	Table string
	Match []Match
	Action
}

// Entries are the tables of a policy. To change the policy while packets pass, insert or modify Tables first,
// then make Policy the default action of table ids.TableBufferPolicyName, and last delete the entries that are
// no longer in Tables.
type Entries struct {
	Tables []Entry
	Policy Action
	MMU    headroom.Config // an MMU that decides the same
}

// Off is the default action of ids.TableBufferPolicyName without a policy.
func Off() Action { return Action{Name: ids.ActionDisableBufferName} }

// Session returns the clone session by which a port's PFC frames leave.
func Session(port uint32) uint32 { return ids.PFCCloneSession + port }

func ingressPort(port uint32) []Match {
	return []Match{{Field: "ingress_port", Value: uint64(port), Prefix: Exact}}
}

// Build returns the entries of a policy. It returns a *units.FieldError when the policy
// is not valid or the pipeline's numbers are too small for it.
func Build(c Config) (*Entries, error) {
	c.MMU.LocalResume, c.MMU.DSH.Tick, c.MMU.SPFC.Packet = true, Tick, 0
	c.MMU = c.MMU.WithDefaults()
	layout, err := c.MMU.Layout()
	if err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	c.Quanta = cmp.Or(c.Quanta, DefaultQuanta)
	links, err := c.links()
	if err != nil {
		return nil, err
	}
	e := &Entries{Policy: c.policy(&layout), MMU: c.MMU}
	e.Tables = append(e.Tables, links.entries...)
	for i, port := range c.Numbers {
		l := links.ports[i]
		e.Tables = append(e.Tables, Entry{ids.TableBufferPortName, ingressPort(port), Action{ids.ActionSetBufferPortName, []uint64{
			uint64(layout.Phi[i]), c.refresh(i), l.profile, l.exponent, l.limit, c.departLimit(i), ticks(c.MMU.Silence(i)),
		}}})
		if c.MAC != nil || c.Quanta != DefaultQuanta {
			e.Tables = append(e.Tables, Entry{ids.TablePFCPortName,
				[]Match{{Field: "egress_port", Value: uint64(port), Prefix: Exact}},
				Action{ids.ActionSetPFCPortName, []uint64{c.mac(i), uint64(c.Quanta)}}})
		}
	}
	return e, nil
}

// refresh returns when a port repeats its PAUSE, in ticks: when half of its time is over.
func (c *Config) refresh(i int) uint64 {
	return ticks(max(1, c.MMU.Ports[i].Rate.PauseTime(c.Quanta)/2))
}

func ticks(t units.Time) uint64 { return uint64(min((t+Tick-1)/Tick, ids.Unlimited)) }

// departLimit returns C·TC/K of a port in bytes, 0 without SPFC.
func (c *Config) departLimit(i int) uint64 {
	if !c.MMU.Policy.Victims() {
		return 0
	}
	return max(1, headroom.DepartLimit(c.MMU.Ports[i].Rate, c.MMU.SPFC.Period, c.MMU.SPFC.K, 0))
}

func (c *Config) mac(i int) (v uint64) {
	if c.MAC != nil {
		for _, b := range c.MAC[i] {
			v = v<<8 | uint64(b)
		}
	}
	return v
}

func (c *Config) policy(l *headroom.Layout) Action {
	m := &c.MMU
	var flags, period uint64
	flag := func(set bool, f uint64) {
		if set {
			flags |= f
		}
	}
	if c.MMU.Policy.Victims() {
		period = uint64(m.SPFC.Period / Tick)
	}
	flag(m.Policy != headroom.Static, ids.BufferDynamic)
	flag(m.Policy.Insured(), ids.BufferInsured)
	flag(c.estimates(), ids.BufferEstimate)
	flag(c.MMU.Policy.Victims(), ids.BufferVictims)
	flag(m.Policy.Insured() && m.DSH.NoSharedHeadroom, ids.BufferByQueue)
	up, down := max(0, m.Alpha), max(0, -m.Alpha)
	return Action{ids.ActionSetBufferPolicyName, []uint64{
		flags, uint64(m.Lossless), uint64(l.Shared), uint64(l.Private), uint64(l.Headroom), uint64(l.Insurance),
		uint64(m.Private), uint64(m.LossyPrivate),
		uint64(m.Threshold), uint64(up), uint64(down), uint64(m.ResumeGap), uint64(m.PortResumeGap),
		uint64(m.PortQueues), uint64(m.DSH.Window / Tick), period,
	}}
}

func (c *Config) estimates() bool { return c.MMU.Policy.Insured() && !c.MMU.DSH.NoSharedHeadroom }

func (c *Config) check() error {
	m := &c.MMU
	within := func(t units.Time) bool { return t >= Tick && t/Tick <= ids.Unlimited }
	times := fmt.Sprintf("%v to %v in a pipeline", Tick, Tick*ids.Unlimited)
	err := cmp.Or(
		units.Fault(m.Buffer > maxBuffer, "buffer", fmt.Sprintf("%d B", m.Buffer), fmt.Sprintf("up to %d B in a pipeline", maxBuffer), ""),
		units.Fault(c.estimates() && !within(m.DSH.Window), "dsh.window", m.DSH.Window, times, ""),
		units.Fault(c.MMU.Policy.Victims() && !within(m.SPFC.Period), "spfc.period", m.SPFC.Period, times, ""),
	)
	for i := range m.Ports {
		n := c.departLimit(i)
		err = cmp.Or(err, units.Fault(n > ids.Unlimited, "spfc.period", m.SPFC.Period,
			fmt.Sprintf("a period in which up to %d B depart of a port: C·TC/K of port %d is %d B", int64(ids.Unlimited), i, n), ""))
	}
	err = cmp.Or(err, units.Fault(len(c.Numbers) != len(m.Ports) || c.MAC != nil && len(c.MAC) != len(m.Ports), "ports",
		fmt.Sprintf("%d ports, %d numbers and %d MAC addresses", len(m.Ports), len(c.Numbers), len(c.MAC)), "one number for each port, and one MAC address or none at all", ""))
	seen := map[uint32]bool{ids.CPUPort: true}
	for i, port := range c.Numbers {
		err = cmp.Or(err, units.Fault(port >= ids.PortCells || seen[port], fmt.Sprintf("ports[%d]", i), port,
			fmt.Sprintf("0 to %d but for the CPU port %d, each once", ids.PortCells-1, ids.CPUPort), ""))
		seen[port] = true
	}
	return err
}

// maxBuffer keeps every sum of two amounts within the 32 bits of the pipeline's registers.
const maxBuffer = 1<<31 - 1

// fraction is how many fractional bits a logarithm has in the pipeline.
const fraction = log2.MaxFrac

// keyBits is the width of the keys of all tables of Algorithm 3.
const keyBits = 32

// wholeBits is the width of an exponent's integer part: 2³² is beyond every gradient.
const wholeBits = 5

// maxGradient keeps ĝ, at most nine times the limit of |g|, within the two's complement of
// the pipeline's 32 bits, and differences within the 30 bits that it can quarter.
const maxGradient = 1 << 27

// link holds the parameters of set_buffer_port for a port's link.
type link struct {
	profile, exponent, limit uint64
}

// links is Algorithm 3 for all ports.
type links struct {
	ports   []link
	entries []Entry
}

// links returns the entries of Algorithm 3, and none when the policy does not need it.
func (c *Config) links() (*links, error) {
	l := &links{ports: make([]link, len(c.Numbers))}
	if !c.estimates() {
		return l, nil
	}
	gradients, err := c.MMU.Gradients()
	if err != nil {
		return nil, err
	}
	profiles := map[*headroom.Gradients]uint64{}
	steps, highest := 0, uint64(0)
	for i, g := range gradients {
		if err := units.Fault(g.Limit >= maxGradient, fmt.Sprintf("ports[%d].rate", i), c.MMU.Ports[i].Rate, "a rate whose gradients fit into the pipeline",
			fmt.Sprintf("|g| saturates at %d B in %v · 2^%d, and 2^27 are possible", g.Limit, Tick, g.Unit)); err != nil {
			return nil, err
		}
		profile, known := profiles[g]
		if !known {
			profile = uint64(len(profiles))
			profiles[g] = profile
			list := Thresholds(profile, g.Phi)
			steps += len(list)
			l.entries = append(l.entries, list...)
		}
		l.ports[i] = link{profile, uint64(g.Unit) << fraction, uint64(g.Limit)}
		highest = max(highest, uint64(g.Limit))
	}
	logs := gradients[0].Logs
	p := logs.Precision()
	if err := cmp.Or(
		units.Fault(len(profiles) > 1<<8 || steps > ids.PhiEntries, "dsh.entries", c.MMU.DSH.Entries, fmt.Sprintf("%d entries for all kinds of links together", ids.PhiEntries),
			fmt.Sprintf("there are %d kinds of links (rate and Φ), which take %d", len(profiles), steps)),
		Fits(p, min(ids.LogEntries, ids.ExpEntries)),
	); err != nil {
		return nil, err
	}
	up := fraction - p.Frac
	for _, e := range logs.LogEntries(keyBits) {
		if e.Key <= uint64(c.MMU.Buffer) {
			l.entries = append(l.entries, LogBytes(e.Key, e.PrefixLen, e.Result<<up))
		}
		l.entries = append(l.entries, LogTicks(e, up))
	}
	l.entries = append(l.entries, Exp2(logs, highest)...) // a miss saturates
	return l, nil
}

// Fits returns a *units.FieldError if tables of a precision take more than most entries.
func Fits(p log2.Precision, most int) error {
	logs, exp := p.LogEntries(keyBits), p.ExpEntries(wholeBits)
	return units.Fault(max(logs, exp) > most, "dsh.precision", fmt.Sprintf("%+v", p), fmt.Sprintf("one with at most %d entries", most),
		fmt.Sprintf("the logarithm takes %d and the exponential %d", logs, exp))
}

// LogBytes returns an entry of table log2_bytes.
func LogBytes(key uint64, prefix uint, result uint64) Entry {
	return prefixed(ids.TableLog2BytesName, "bytes", key, prefix, ids.ActionSetLogBytesName, result)
}

// LogTicks returns an entry of table log2_ticks. up is the number of fractional bits that the pipeline has
// beyond the table's.
func LogTicks(e log2.Entry, up uint) Entry {
	return prefixed(ids.TableLog2TicksName, "ticks", e.Key, e.PrefixLen, ids.ActionSetLogTicksName, e.Result<<up)
}

// Exp2 returns the entries of table exp2 with a result below limit.
func Exp2(logs *log2.Table, limit uint64) (list []Entry) {
	up := fraction - logs.Precision().Frac
	for _, e := range logs.ExpEntries(wholeBits) {
		if e.Result >= limit {
			break
		}
		list = append(list, prefixed(ids.TableExp2Name, "log", e.Key<<up, keyBits-wholeBits-fraction+e.PrefixLen, ids.ActionSetGradientName, e.Result))
	}
	return list
}

func prefixed(table, field string, key uint64, prefix uint, action string, result uint64) Entry {
	return Entry{table, []Match{{field, key, int(prefix)}}, Action{action, []uint64{result}}}
}

// Thresholds returns the entries of table headroom_for of one kind of links, whose key is
// ĝ − 1. All steps have one width, a power of two; the last reaches to the end.
func Thresholds(profile uint64, t *phi.Table) []Entry {
	var list []Entry
	steps := t.Entries()
	for i, s := range steps {
		match := []Match{{Field: "profile", Value: profile, Prefix: Exact}}
		if i < len(steps)-1 {
			prefix := keyBits
			for width := s.High - s.Low + 1; width > 1; width >>= 1 {
				prefix--
			}
			match = append(match, Match{"gradient", uint64(s.Low - 1), prefix})
		}
		list = append(list, Entry{ids.TableHeadroomForName, match, Action{ids.ActionSetPhiName, []uint64{uint64(s.Phi)}}})
	}
	return list
}
