package headroom

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/headgate/headgate/units"
)

// SPFCMargin tells how far SPFC's decisions are from being wrong, in the flow model of its paper (§IV-C). N burst
// ports send at full rate to one egress port. A further port, the victim, sends a part ε of its traffic there and
// its other flows elsewhere. SPFC is right while more than C/K departs from the victim port in a period, and less
// from each burst port.
type SPFCMargin struct {
	// Victim and Burst are the departure rates (Eq. 6 and 5), Limit is C/K.
	Victim, Burst, Limit units.Rate
	// KAbove and KBelow are the limits of K by Eq. 8, both excluded. If K is above KAbove, SPFC finds the victim.
	// If K is below KBelow, it mistakes no burst port for a victim.
	KAbove, KBelow float64
	// Above is the number of packets by which a victim's departures of a period exceed the counting number C·TC/K.
	// Below is the number by which a burst port's departures miss it. Phases shift a count by up to one packet per
	// stream: two for a victim, one for a burst port. If Above and Below exceed these shifts the decision is
	// stable. Between 0 and the shifts it may change with every period. Below 0 it is wrong.
	Above, Below float64
	// FewestBursts is the smallest N for which K tells burst ports from victims. MostCongested is the largest ε
	// for which K finds a victim with the present N.
	FewestBursts  int
	MostCongested float64
}

// The packets by which phases may shift the count of a period.
const (
	victimJitter = 2.0
	burstJitter  = 1.0
)

// Margin analyses K and Period for a line rate, a number of burst ports, the congested part ε of the victim
// port's traffic and a packet size. The *units.FieldError names the value that is out of range.
func (c SPFCConfig) Margin(rate units.Rate, bursts int, congested float64, packet units.Bytes) (SPFCMargin, error) {
	if err := cmp.Or(
		units.Fault(rate <= 0, "rate", rate, "more than 0", ""),
		units.Fault(c.K < 2 || c.K > 64, "k", c.K, "2 to 64", ""),
		units.Fault(c.Period <= 0, "period", c.Period, "more than 0", ""),
		units.Fault(bursts < 1 || bursts > MaxPorts, "bursts", bursts, fmt.Sprintf("1 to %d", MaxPorts), ""),
		units.Fault(!(congested > 0 && congested <= 1), "congested", congested, "more than 0 to 1", ""),
		units.Fault(packet < 64 || packet > 65535, "packet", inBytes(packet), "64 to 65535 B", ""),
	); err != nil {
		return SPFCMargin{}, err
	}
	n, k, line := float64(bursts+1), float64(c.K), float64(rate)
	// The victim may send less to the congested port than that port's fair share.
	victim := 1 - congested + math.Min(congested, 1/n)
	perPeriod := float64(rate.BytesIn(c.Period)) / float64(packet)
	return SPFCMargin{
		Victim: units.Rate(line * victim), Burst: units.Rate(line / n), Limit: units.Rate(line / k),
		KAbove: 1 / victim, KBelow: n,
		Above: perPeriod * (victim - 1/k), Below: perPeriod * (1/k - 1/n),
		FewestBursts: c.K, MostCongested: math.Min(1, 1-1/k+1/n),
	}, nil
}

// VictimHolds reports whether a victim is in the victim state in every period.
func (m SPFCMargin) VictimHolds() bool { return m.Above >= victimJitter }

// BurstsHold reports whether burst ports are in the normal state in every period.
func (m SPFCMargin) BurstsHold() bool { return m.Below >= burstJitter }

// Verdict interprets the figures in a sentence.
func (m SPFCMargin) Verdict() string {
	say := func(margin, jitter float64, what, right, wrong string) string {
		switch {
		case margin >= jitter:
			return fmt.Sprintf("%s %s (by %.1f packets a period)", what, right, margin)
		case margin > -jitter:
			return fmt.Sprintf("%s may change with every period (%+.1f packets, and a count is off by up to %.0f)", what, margin, jitter)
		}
		return fmt.Sprintf("%s %s (by %.1f packets a period)", what, wrong, -margin)
	}
	return say(m.Above, victimJitter, "the victim's port", "is found", "is taken for a burst's") + "; " +
		say(m.Below, burstJitter, "burst ports", "are told apart", "are taken for victims'")
}

// DepartLimit returns SPFC's counting number IRC = C·TC/K (§V-B), in packets of the given size, or in bytes when
// packet is 0.
func DepartLimit(rate units.Rate, period units.Time, k int, packet units.Bytes) uint64 {
	n := uint64(rate.BytesIn(period)) / uint64(k)
	if packet > 0 {
		n /= uint64(packet)
	}
	return n
}

// Meter decides the state of one ingress port for SPFC, in the counting form of Fig. 10: an Ingress Rate Counter,
// which the Timeout Clock's ticks clear, and a State Holder. Its inputs are departures, in packets or bytes, and
// the port's PAUSEs and RESUMEs. A switch's MMU has one Meter per port, and so has a controller that reads
// counters.
type Meter struct {
	limit  uint64 // IRC's counting number
	count  uint64 // IRC
	victim bool   // SH
	paused bool   // SH is held at reset
}

// NewMeter returns a meter in the normal state. A limit of 0 counts as 1.
func NewMeter(limit uint64) Meter { return Meter{limit: max(1, limit)} }

// Depart counts n packets or bytes that left. Reaching the counting number makes the port a
// victim at once, unless it is paused.
func (m *Meter) Depart(n uint64) {
	var carry uint64
	if m.count, carry = bits.Add64(m.count, n, 0); carry != 0 {
		m.count = ^uint64(0)
	}
	if m.count >= m.limit && !m.paused {
		m.victim = true
	}
}

// Tick ends a period: a port that has not reached the counting number is normal from now on.
func (m *Meter) Tick() {
	if m.count < m.limit {
		m.victim = false
	}
	m.count = 0
}

// Pause makes the port normal until Resume: it needed a PAUSE although the whole buffer was its threshold.
func (m *Meter) Pause() { m.paused, m.victim = true, false }

// Resume lets the counter decide again. This period's earlier departures count.
func (m *Meter) Resume() {
	m.paused = false
	if m.count >= m.limit {
		m.victim = true
	}
}

// Victim reports whether the port is in the victim state.
func (m *Meter) Victim() bool { return m.victim }

// victims is SPFC's state of all ports. It owns its meters and loans.
type victims struct {
	period  units.Time
	packets bool // count packets, not bytes
	ports   []meterClock
	loans   []loan // by queue, port · 8 + class
	total   units.Bytes
}

// loan is the headroom that a queue lends. A paused queue needs no headroom once its peer is silent, until RESUME.
// It lends as much of it as it holds of the shared pool, and victims may use more of the pool by that amount:
//
//   - A departure from the queue takes at least as much from the pool as from the loan.
//   - While victims hold more than the pool, T is 0, so no queue resumes but an empty one, which lends nothing.
//
// So every queue that may receive has all of its headroom.
type loan struct {
	heard units.Time // when the last packet came that paused the queue or found it paused
	bytes units.Bytes
}

// meterClock is a meter and its Timeout Clock.
type meterClock struct {
	Meter
	next  units.Time // end of the period
	quiet units.Time // after which a paused peer is silent
}

func newVictims(c *Config) *victims {
	v := &victims{period: c.SPFC.Period, packets: c.SPFC.Packet > 0, ports: make([]meterClock, len(c.Ports)), loans: make([]loan, len(c.Ports)*Classes)}
	told := slices.ContainsFunc(c.Ports, func(p Port) bool { return p.Victim })
	for i, p := range c.Ports {
		limit := DepartLimit(p.Rate, c.SPFC.Period, c.SPFC.K, c.SPFC.Packet)
		if p.Victim {
			limit = 1
		} else if told {
			limit = math.MaxUint64
		}
		v.ports[i] = meterClock{NewMeter(limit), c.SPFC.Period, c.Silence(i)}
	}
	return v
}

// at advances a port's meter by all ticks up to now and returns it.
func (v *victims) at(now units.Time, port int) *Meter {
	p := &v.ports[port]
	if now >= p.next {
		p.Tick()
		if p.next += v.period; now >= p.next {
			p.Tick() // a period or more without a departure: the clock starts again
			p.next = now + v.period
		}
	}
	return &p.Meter
}

// heard records that a packet came although its queue is paused, or paused it. The queue lends nothing for now.
func (v *victims) heard(now units.Time, queue int) {
	v.loans[queue].heard = now
	v.loan(queue, 0)
}

// loan sets what a queue lends.
func (v *victims) loan(queue int, n units.Bytes) {
	l := &v.loans[queue]
	v.total += n - l.bytes
	l.bytes = n
}

// victimThreshold returns the bytes that all queues together may hold of the shared pool when a victim's packet
// arrives: the pool and what paused queues lend, or the buffer with Counted.
func (m *MMU) victimThreshold() units.Bytes {
	switch {
	case m.counted:
		return m.config.Buffer
	case m.lends:
		return m.size + m.spfc.total
	}
	return m.size
}

// lend sets what the queue of a departed packet lends.
func (m *MMU) lend(now units.Time, port int, class uint8) {
	i := port*Classes + int(class)
	var n units.Bytes
	if q := &m.queues[i]; q.off && now-m.spfc.loans[i].heard > m.spfc.ports[port].quiet {
		n = min(m.ports[port].phi-q.headroom, q.shared)
	}
	m.spfc.loan(i, n)
}

func (v *victims) departed(now units.Time, port int, n units.Bytes) {
	count := uint64(n)
	if v.packets {
		count = 1
	}
	v.at(now, port).Depart(count)
}

func (v *victims) paused(now units.Time, port int, paused bool) {
	m := v.at(now, port)
	if paused {
		m.Pause()
	} else {
		m.Resume()
	}
}
