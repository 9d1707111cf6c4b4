package headroom

import (
	"fmt"
	"math"

	"github.com/headgate/headgate/tables/log2"
	"github.com/headgate/headgate/tables/phi"
	"github.com/headgate/headgate/units"
)

// Weights of Algorithm 2 and 3 as shifts: w_g = w_v = 2⁻², k = 2² (DSH §V-A).
const (
	weightShift = 2
	factorShift = 2
)

// maxTicks is the longest Δt, in ticks, that fits in a pipeline's tables.
const maxTicks = math.MaxUint32

// saturation bounds |g| in multiples of the line rate. A queue cannot grow faster than its
// link, but all egress ports may drain it, and two arrivals may have one time stamp.
const saturation = 16

// Gradients are Algorithm 3's constants of a port's link: its unit of gradients,
// the logarithm tables and the thresholds ĝ → φ̂. It is never written after NewGradients, so
// the queues of a port share it.
type Gradients struct {
	Logs  *log2.Table
	Phi   *phi.Table // the thresholds
	Unit  uint       // gradients are in bytes per 2^Unit ticks
	Limit int64      // |g| saturates here, bytes per 2^Unit ticks

	tick units.Time
}

// NewGradients returns the parameters for a link of a rate whose worst-case headroom is Φ,
// with a table of at most entries thresholds, for a clock of ticks (0 means 1 ps).
func NewGradients(rate units.Rate, tick units.Time, full units.Bytes, logs *log2.Table, entries int) (*Gradients, error) {
	tick = max(1, tick)
	g := &Gradients{Logs: logs, tick: tick, Unit: gradientUnit(rate, tick)}
	var err error
	if g.Phi, err = phi.New(phi.Config{Phi: full, Delay: rate.TxTime(full), Unit: g.Unit, Tick: tick, Entries: entries}); err != nil {
		return nil, fmt.Errorf("gradient thresholds for %v and Φ = %d B: %w", rate, full, err)
	}
	g.Limit = saturation * int64(rate.BytesIn(tick<<g.Unit))
	return g, nil
}

// gradientUnit returns u such that a link passes 2¹⁵ to 2¹⁶ bytes in 2^u ticks, so that rounding is far below the
// tables' error. u is 0 if the link passes more in one tick, and at most phi.MaxUnit.
func gradientUnit(rate units.Rate, tick units.Time) uint {
	unit := uint(0)
	for unit < phi.MaxUnit && rate.BytesIn(tick<<unit) < 1<<15 {
		unit++
	}
	return unit
}

func (g *Gradients) elapsed(from, to units.Time) units.Time {
	if g.tick == 1 {
		return to - from
	}
	return min(to/g.tick-from/g.tick, maxTicks)
}

// Estimator is Algorithm 3 for one queue: the headroom φ̂ that the queue's growth requires. The zero Estimator is
// ready. The owner of the queue owns the Estimator.
type Estimator struct {
	length   units.Bytes
	at       units.Time
	avg, dev int64 // g_avg and v_avg, in bytes per 2^unit ticks
	started  bool
}

// Arrived records that the queue holds length bytes now and returns φ̂ in [0, Φ]. A queue
// has no gradient before its second packet.
func (e *Estimator) Arrived(g *Gradients, now units.Time, length units.Bytes) units.Bytes {
	if !e.started {
		e.started, e.at, e.length = true, now, length
		return 0
	}
	x := g.gradient(length-e.length, g.elapsed(e.at, now))
	e.at, e.length = now, length
	diff := x - e.avg
	dev := diff
	if dev < 0 {
		dev = -dev
	}
	// The paper prints g_avg − w_g·|g_avg − g|, which can only fall; Eq. 5 says this.
	e.avg += diff >> weightShift
	e.dev += (dev - e.dev) >> weightShift
	return g.Phi.Lookup(e.Gradient())
}

// Gradient returns ĝ in bytes per 2^unit ticks.
func (e *Estimator) Gradient() int64 { return e.avg + e.dev<<factorShift }

// gradient returns Δq/Δt from the tables, with the sign of Δq. It saturates at Limit.
func (g *Gradients) gradient(dq units.Bytes, dt units.Time) int64 {
	magnitude := dq
	if dq < 0 {
		magnitude = -dq
	}
	x := g.Limit
	if dt > 0 {
		x = min(x, int64(g.Logs.Quotient(uint64(magnitude), uint64(dt), g.Unit)))
	} else if dq == 0 {
		x = 0
	}
	if dq < 0 {
		return -x
	}
	return x
}

// shared is DSH's dynamic headroom: τ of Algorithms 3 and 4. It owns its estimators and windows.
type shared struct {
	window units.Time
	links  []*Gradients
	queues []Estimator // port · 8 + class
	ports  []Window
}

func newShared(c *Config) (*shared, error) {
	s := &shared{
		window: c.DSH.Window,
		queues: make([]Estimator, len(c.Ports)*Classes),
		ports:  make([]Window, len(c.Ports)),
	}
	var err error
	s.links, err = c.gradients()
	return s, err
}

// Gradients returns Algorithm 3's constants for the link of each port. Ports with equal links share one value. It
// returns a *units.FieldError when c, with its defaults, is not valid.
func (c Config) Gradients() ([]*Gradients, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c.gradients()
}

func (c *Config) gradients() ([]*Gradients, error) {
	logs, err := log2.New(c.DSH.Precision)
	if err != nil {
		return nil, err
	}
	type link struct {
		rate units.Rate
		phi  units.Bytes
	}
	list := make([]*Gradients, len(c.Ports))
	known := make(map[link]*Gradients) // most ports are alike
	for i := range c.Ports {
		l := link{c.Ports[i].Rate, c.fullPhi(&c.Ports[i])}
		if known[l] == nil {
			if known[l], err = NewGradients(l.rate, c.DSH.Tick, l.phi, logs, c.DSH.Entries); err != nil {
				return nil, err
			}
		}
		list[i] = known[l]
	}
	return list, nil
}

// arrived records that a packet of a lossless class was accepted and that its queue now holds length bytes. It
// returns τ: the queue pauses τ below T.
func (s *shared) arrived(now units.Time, port int, class uint8, length units.Bytes) units.Bytes {
	tau := s.queues[port*Classes+int(class)].Arrived(s.links[port], now, length)
	if s.ports[port].Arrived(now, class, s.window) {
		return 0
	}
	return tau
}

// Window is Algorithm 4 for one port. It finds whether all packets of the port went to one queue for longer than a
// window; the insurance alone is then that queue's headroom. The zero Window is ready. The owner of the port owns
// the Window.
type Window struct {
	start units.Time
	class uint8
	begun bool
}

// Arrived records a packet of a class and reports whether τ is 0. The paper leaves τ
// at an old φ̂ while the window runs; callers use the φ̂ of this packet.
func (w *Window) Arrived(now units.Time, class uint8, length units.Time) (single bool) {
	if !w.begun || class != w.class {
		w.begun, w.class, w.start = true, class, now
		return false
	}
	return now-w.start > length
}
