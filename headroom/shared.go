package headroom

import (
	"github.com/headgate/headgate/tables/log2"
	"github.com/headgate/headgate/units"
)

// shared is DSH's dynamic headroom: T of Eq. 2 and τ of Algorithms 3 and 4. It owns its
// estimators and windows.
type shared struct {
	dynamic
	window units.Time
	links  []*Gradients
	queues []Estimator // port · 8 + class
	ports  []Window
}

func newShared(c *Config) (*shared, error) {
	logs, err := log2.New(c.DSH.Precision)
	if err != nil {
		return nil, err
	}
	s := &shared{
		dynamic: dynamic{alpha: c.Alpha}, window: c.DSH.Window,
		links:  make([]*Gradients, len(c.Ports)),
		queues: make([]Estimator, len(c.Ports)*Classes),
		ports:  make([]Window, len(c.Ports)),
	}
	type link struct {
		rate units.Rate
		phi  units.Bytes
	}
	known := make(map[link]*Gradients) // most ports are alike
	for i := range c.Ports {
		l := link{c.Ports[i].Rate, c.fullPhi(&c.Ports[i])}
		if known[l] == nil {
			if known[l], err = NewGradients(l.rate, l.phi, logs, c.DSH.Entries); err != nil {
				return nil, err
			}
		}
		s.links[i] = known[l]
	}
	return s, nil
}

// Arrived implements Policy.
func (s *shared) Arrived(now units.Time, port int, class uint8, length units.Bytes) units.Bytes {
	tau := s.queues[port*Classes+int(class)].Arrived(s.links[port], now, length)
	if s.ports[port].Arrived(now, class, s.window) {
		return 0
	}
	return tau
}

// Window is Algorithm 4 for one port: whether all its packets have gone to one queue for
// longer than a window, in which case the insurance alone is that queue's headroom. The
// zero Window is ready; whoever owns the port owns it.
type Window struct {
	start units.Time
	class uint8
	begun bool
}

// Arrived takes note of a packet of a class and reports whether τ is 0. The paper leaves τ
// at an old φ̂ while the window runs; callers use the φ̂ of this packet.
func (w *Window) Arrived(now units.Time, class uint8, length units.Time) (single bool) {
	if !w.begun || class != w.class {
		w.begun, w.class, w.start = true, class, now
		return false
	}
	return now-w.start > length
}
