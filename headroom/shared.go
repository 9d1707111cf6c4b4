package headroom

import (
	"github.com/headgate/headgate/tables/log2"
	"github.com/headgate/headgate/units"
)

// shared is DSH's dynamic headroom: τ of Algorithms 3 and 4. It owns its estimators and
// windows.
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

// Gradients returns what Algorithm 3 needs to know about the link of each port; ports alike
// share theirs. It returns a *units.FieldError when c, with its defaults, is not valid.
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

// arrived records that a packet of a lossless class was accepted, after which its queue
// holds length bytes. It returns τ, by how much the queue pauses below T.
func (s *shared) arrived(now units.Time, port int, class uint8, length units.Bytes) units.Bytes {
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

// Arrived records a packet of a class and reports whether τ is 0. The paper leaves τ
// at an old φ̂ while the window runs; callers use the φ̂ of this packet.
func (w *Window) Arrived(now units.Time, class uint8, length units.Time) (single bool) {
	if !w.begun || class != w.class {
		w.begun, w.class, w.start = true, class, now
		return false
	}
	return now-w.start > length
}
