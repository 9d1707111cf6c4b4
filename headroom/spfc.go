package headroom

import (
	"math"
	"math/bits"
	"slices"

	"github.com/headgate/headgate/units"
)

// DepartLimit returns SPFC's counting number IRC = C·TC/K (§V-B): in packets of a size, or
// in bytes when packet is 0.
func DepartLimit(rate units.Rate, period units.Time, k int, packet units.Bytes) uint64 {
	n := uint64(rate.In(period)) / uint64(k)
	if packet > 0 {
		n /= uint64(packet)
	}
	return n
}

// Meter is the state decision of SPFC for one ingress port, in the counting form of Fig. 10:
// an Ingress Rate Counter, which the Timeout Clock's ticks clear, and a State Holder. It is
// fed with departures, in packets or bytes, and with what PFC does. Whoever owns the port
// owns it; a switch's MMU and a controller that reads counters both do.
type Meter struct {
	limit   uint64 // IRC's counting number
	count   uint64 // IRC
	total   uint64 // last Sample
	sampled bool
	victim  bool // SH
	paused  bool // SH is held at reset
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

// Pause makes the port normal until Resume, since it paused although it had all the buffer.
func (m *Meter) Pause() { m.paused, m.victim = true, false }

// Resume lets the counter decide again, this period's departures included.
func (m *Meter) Resume() {
	m.paused = false
	if m.count >= m.limit {
		m.victim = true
	}
}

// Victim reports whether the port is in the victim state.
func (m *Meter) Victim() bool { return m.victim }

// Sample takes the reading of a counter of all departures at the end of a period: what it
// grew by departed, and the period ends. The first reading only sets the start, and one
// below the last (the switch has restarted) resets the meter: then ok is false.
func (m *Meter) Sample(total uint64) (ok bool) {
	switch {
	case !m.sampled:
	case total < m.total:
		*m = NewMeter(m.limit)
	default:
		m.Depart(total - m.total)
		m.Tick()
		ok = true
	}
	m.total, m.sampled = total, true
	return ok
}

// victims is SPFC's state of all ports. It owns its meters.
type victims struct {
	period  units.Time
	packets bool // count packets, not bytes
	ports   []meterClock
}

// meterClock is a meter and its Timeout Clock.
type meterClock struct {
	Meter
	next units.Time // end of the period
}

func newVictims(c *Config) *victims {
	v := &victims{period: c.SPFC.Period, packets: c.SPFC.Packet > 0, ports: make([]meterClock, len(c.Ports))}
	told := slices.ContainsFunc(c.Ports, func(p Port) bool { return p.Victim })
	for i, p := range c.Ports {
		limit := DepartLimit(p.Rate, c.SPFC.Period, c.SPFC.K, c.SPFC.Packet)
		if p.Victim {
			limit = 1
		} else if told {
			limit = math.MaxUint64
		}
		v.ports[i] = meterClock{NewMeter(limit), c.SPFC.Period}
	}
	return v
}

// at returns a port's meter with all ticks up to now done.
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

// departed records that n bytes of a lossless class left.
func (v *victims) departed(now units.Time, port int, n units.Bytes) {
	count := uint64(n)
	if v.packets {
		count = 1
	}
	v.at(now, port).Depart(count)
}

// paused records that a port began or ceased to have paused classes.
func (v *victims) paused(now units.Time, port int, paused bool) {
	m := v.at(now, port)
	if paused {
		m.Pause()
	} else {
		m.Resume()
	}
}
