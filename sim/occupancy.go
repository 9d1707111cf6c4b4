package sim

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

// Occupancy records for how long a value held each of its levels within a span of time. The value is, for example,
// the length of an egress queue in bytes. The record is exact: it contains each change, not samples. A packet on
// the wire does not count as queued.
type Occupancy struct {
	class    uint8
	from, to units.Time
	at       units.Time // time of the last change
	value    int64
	spans    map[int64]int64 // by value, the time for which it was held, ps; with peaks, the number of local maxima
	peaks    bool            // count local maxima instead of time
	rising   bool
}

// Unknown is the value of a level at times that do not count.
const Unknown = math.MinInt64

func newOccupancy(now, from, to units.Time, value int64) *Occupancy {
	return &Occupancy{from: from, to: to, at: now, value: value, spans: map[int64]int64{}}
}

// Observe makes a port record the length of a class's queue between two future times.
func (s *Sim) Observe(port int, class uint8, from, to units.Time) *Occupancy {
	if s.observed == nil {
		s.observed = make([][]*Occupancy, len(s.ports))
	}
	o := newOccupancy(s.now, from, to, int64(s.ports[port].queues[class].bytes))
	o.class = class
	s.observed[port] = append(s.observed[port], o)
	s.ports[port].observed = true
	return o
}

// observe records the length of a class's queue, which has changed.
func (s *partition) observe(p *port, class uint8) {
	for _, o := range s.observed[s.nodes[p.node].first+int32(p.local)] {
		if o.class == class {
			o.set(s.now, int64(p.queues[class].bytes))
		}
	}
}

// set records the value from now on.
func (o *Occupancy) set(now units.Time, value int64) {
	if value == o.value {
		return
	}
	if o.peaks {
		if o.rising && value < o.value && o.from <= now && now < o.to {
			o.spans[o.value]++
		}
		o.rising = value > o.value
	} else {
		o.Until(now)
	}
	o.value = value
}

// Until counts the present value up to now. Call it before reading the results.
func (o *Occupancy) Until(now units.Time) {
	if d := min(now, o.to) - max(o.at, o.from); d > 0 && o.value != Unknown && !o.peaks {
		o.spans[o.value] += int64(d)
	}
	o.at = now
}

// Join adds the counts of another Occupancy, for example of another switch.
func (o *Occupancy) Join(other *Occupancy) {
	for value, d := range other.spans {
		o.spans[value] += d
	}
}

// Mean returns the mean value over time, NaN when no time has passed.
func (o *Occupancy) Mean() float64 {
	var sum float64
	var all int64
	for _, value := range slices.Sorted(maps.Keys(o.spans)) {
		sum += float64(value) * float64(o.spans[value])
		all += o.spans[value]
	}
	return sum / float64(all)
}

// Quantile returns the value that was not exceeded for a share q of the time: 0 for the
// lowest, 1 for the highest. It is NaN when no time has passed.
func (o *Occupancy) Quantile(q float64) float64 {
	var all, sum int64
	for _, d := range o.spans {
		all += d
	}
	for _, value := range slices.Sorted(maps.Keys(o.spans)) {
		if sum += o.spans[value]; float64(sum) >= q*float64(all) {
			return float64(value)
		}
	}
	return math.NaN()
}

// Level reads a value of a switch's buffer, such as the bytes of a pool, or Unknown.
type Level func(m *headroom.MMU, now units.Time) int64

// gauged is the MMU of a switch whose levels are recorded. Other switches use the MMU itself and pay
// nothing for gauges.
type gauged struct {
	*headroom.MMU
	gauges    []gauge
	followers []Follower
}

type gauge struct {
	level Level
	*Occupancy
}

// Follower is notified of the packets that a switch's buffer accepts and releases.
type Follower interface {
	// Packet is called after n bytes of a class that entered the switch by port have arrived, or left.
	Packet(m *headroom.MMU, now units.Time, port int, class uint8, n units.Bytes, arrived bool)
}

// MMU returns the buffer of a switch. It returns an error for a host, or for a switch with unlimited memory.
func (s *Sim) MMU(node int) (*headroom.MMU, error) {
	switch b := s.nodes[node].buffer.(type) {
	case *headroom.MMU:
		return b, nil
	case *gauged:
		return b.MMU, nil
	}
	return nil, fmt.Errorf("%s has no buffer with pools: want a switch, and a policy that is not unlimited", s.graph.Names[node])
}

// Gauge records a level of a switch's buffer between two times: the time for which it holds each value, or with
// peaks each local maximum once. It reads the level at each arrival and departure of a packet.
func (s *Sim) Gauge(node int, level Level, from, to units.Time, peaks bool) (*Occupancy, error) {
	g, err := s.gauged(node)
	if err != nil {
		return nil, err
	}
	o := newOccupancy(s.now, from, to, level(g.MMU, s.now))
	o.peaks = peaks
	g.gauges = append(g.gauges, gauge{level, o})
	return o, nil
}

// Follow notifies f of the packets that a switch's buffer accepts and releases.
func (s *Sim) Follow(node int, f Follower) error {
	g, err := s.gauged(node)
	if err == nil {
		g.followers = append(g.followers, f)
	}
	return err
}

func (s *Sim) gauged(node int) (*gauged, error) {
	m, err := s.MMU(node)
	if err != nil {
		return nil, err
	}
	if g, ok := s.nodes[node].buffer.(*gauged); ok {
		return g, nil
	}
	g := &gauged{MMU: m}
	s.setBuffer(node, g)
	return g, nil
}

// Arrive implements Buffer.
func (g *gauged) Arrive(now units.Time, port int, class uint8, n units.Bytes) (ok bool, signals []Signal) {
	ok, signals = g.MMU.Arrive(now, port, class, n)
	g.look(now)
	if ok {
		for _, f := range g.followers {
			f.Packet(g.MMU, now, port, class, n, true)
		}
	}
	return ok, signals
}

// Depart implements Buffer.
func (g *gauged) Depart(now units.Time, port int, class uint8, n units.Bytes) []Signal {
	signals := g.MMU.Depart(now, port, class, n)
	g.look(now)
	for _, f := range g.followers {
		f.Packet(g.MMU, now, port, class, n, false)
	}
	return signals
}

func (g *gauged) look(now units.Time) {
	for _, x := range g.gauges {
		x.set(now, x.level(g.MMU, now))
	}
}
