package fabric

import "github.com/headgate/headgate/units"

// Wait is what the packets that left a watched class of a port had waited.
type Wait struct {
	Packets uint64
	Sum     units.Time
	Max     units.Time
	// Deepest is the longest queue that a leaving packet left behind.
	Deepest units.Bytes
}

// Mean returns the mean wait of a packet.
func (w *Wait) Mean() units.Time {
	if w.Packets == 0 {
		return 0
	}
	return w.Sum / units.Time(w.Packets)
}

type watch struct {
	class [NumClasses]Wait
}

// Watch makes a switch port count how long its packets wait.
func (s *Sim) Watch(port int) {
	if s.watches == nil {
		s.watches = make([]*watch, len(s.ports))
	}
	s.watching = true
	if s.watches[port] == nil {
		s.watches[port] = &watch{}
	}
}

// Waited returns what Watch has counted for a class of a port since then.
func (s *Sim) Waited(port, class int) Wait {
	if s.watches == nil || s.watches[port] == nil {
		return Wait{}
	}
	return s.watches[port].class[class]
}

func (s *Sim) watch(i int32, p *port, class uint8, since units.Time) {
	w := s.watches[i]
	if w == nil {
		return
	}
	c := &w.class[class]
	c.Packets++
	c.Sum += s.now - since
	c.Max = max(c.Max, s.now-since)
	c.Deepest = max(c.Deepest, p.queues[class].bytes)
}
