package sim

import (
	"fmt"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

// Level reads a value of a switch's buffer, such as the bytes of a pool; ok is false at times
// that count for nothing.
type Level func(m *headroom.MMU, now units.Time) (value int64, ok bool)

// gauged is the MMU of a switch whose levels are followed. Other switches use the MMU itself, without
// the cost of a gauge.
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
	// Packet is called after n bytes of a class that came by an ingress port of the switch have
	// arrived, or left.
	Packet(m *headroom.MMU, now units.Time, port int, class uint8, n units.Bytes, arrived bool)
}

// MMU returns the buffer of a switch; an error when it is none or its memory is unlimited.
func (s *Sim) MMU(node int) (*headroom.MMU, error) {
	switch b := s.nodes[node].buffer.(type) {
	case *headroom.MMU:
		return b, nil
	case *gauged:
		return b.MMU, nil
	}
	return nil, fmt.Errorf("%s has no buffer with pools: want a switch, and a policy that is not unlimited", s.graph.Names[node])
}

// Gauge follows a level of a switch's buffer from a time to another: each value for as long as
// it holds, or with peaks each local maximum once. A level is read at each arrival and
// departure of a packet.
func (s *Sim) Gauge(node int, level Level, from, to units.Time, peaks bool) (*Occupancy, error) {
	g, err := s.gauged(node)
	if err != nil {
		return nil, err
	}
	o := newOccupancy(s.now, from, to, read(level, g.MMU, s.now))
	o.peaks = peaks
	g.gauges = append(g.gauges, gauge{level, o})
	return o, nil
}

// Follow notifies f of the packets of a switch.
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

func read(level Level, m *headroom.MMU, now units.Time) int64 {
	if v, ok := level(m, now); ok {
		return v
	}
	return unknown
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
		x.set(now, read(x.level, g.MMU, now))
	}
}
