package sim

import (
	"fmt"

	"github.com/headgate/headgate/units"
)

// Deadlock is a cycle of ports that PFC has stopped. Each waits for the next: the packets that fill
// the buffer behind one port are queued for the next port.
type Deadlock struct {
	At    units.Time // when it was found
	Since units.Time // when the last of its ports was stopped
	Class int
	Ports []int
}

// WatchDeadlock looks for deadlocks every interval. It keeps the first one whose ports have all been
// stopped for at least hold without sending, because shorter cycles dissolve by themselves.
func (s *Sim) WatchDeadlock(interval, hold units.Time) error {
	if interval <= 0 || hold < 0 {
		return fmt.Errorf("deadlock check every %v, hold %v: want an interval above 0 and a hold of 0 or more", interval, hold)
	}
	s.deadlockEvery, s.deadlockHold = interval, hold
	s.At(s.now+interval, (*Sim).checkDeadlock)
	return nil
}

// FirstDeadlock returns the first deadlock found, nil for none.
func (s *Sim) FirstDeadlock() *Deadlock { return s.deadlock }

func (s *Sim) checkDeadlock() error {
	if s.deadlock == nil && s.running() > 0 {
		for class := range NumClasses {
			if s.deadlock = s.findDeadlock(class); s.deadlock != nil {
				return nil
			}
		}
		s.At(s.now+s.deadlockEvery, (*Sim).checkDeadlock)
	}
	return nil
}

// stuck reports whether a class of a port has been stopped for at least the hold time. A paused class
// sends nothing.
func (s *Sim) stuck(i int32, class int) bool {
	p := &s.ports[i]
	return p.paused>>class&1 == 1 && p.active>>class&1 == 1 && s.now-s.pauses[i].since[class] >= s.deadlockHold
}

// findDeadlock looks for a cycle by depth-first search over the stuck ports. Port a waits for port b
// if b is at the node that a sends to and holds packets that arrived from a. Until b sends some of
// them, that node has no reason to resume a.
func (s *Sim) findDeadlock(class int) *Deadlock {
	state := make(map[int32]uint8)
	var path []int32
	var visit func(i int32) []int32
	visit = func(i int32) []int32 {
		state[i] = 1
		path = append(path, i)
		in := s.ports[i].peer
		at := int(s.ports[in].node)
		for b := int32(s.layout.First[at]); b < int32(s.layout.First[at+1]); b++ {
			if state[b] == 2 || !s.stuck(b, class) || !s.holdsFrom(b, class, in) {
				continue
			}
			if state[b] == 1 {
				for j, x := range path {
					if x == b {
						return path[j:]
					}
				}
			}
			if cycle := visit(b); cycle != nil {
				return cycle
			}
		}
		state[i] = 2
		path = path[:len(path)-1]
		return nil
	}
	for i := range s.ports {
		if !s.stuck(int32(i), class) || state[int32(i)] != 0 {
			continue
		}
		if cycle := visit(int32(i)); cycle != nil {
			d := &Deadlock{At: s.now, Class: class}
			for _, x := range cycle {
				d.Ports = append(d.Ports, int(x))
				d.Since = max(d.Since, s.pauses[x].since[class])
			}
			return d
		}
	}
	return nil
}

func (s *Sim) holdsFrom(b int32, class int, in int32) bool {
	holds, local := false, int32(s.ports[in].local)
	p := &s.ports[b]
	for precedence := range p.precedences() {
		s.at(int(p.node)).store.each(*p.rank(uint8(class), precedence), func(e *packet) bool {
			holds = e.in() == local
			return !holds
		})
	}
	return holds
}
