package sim

import (
	"fmt"
	"math/bits"

	"github.com/headgate/headgate/units"
)

// PFC says how priority flow control (IEEE 802.1Qbb) behaves on all links.
type PFC struct {
	// Processing is how much the receiver of a PFC frame may still send before it reacts,
	// besides the packet on the wire: 3840 B by default (IEEE 802.1Q, Annex O: the delays
	// of the interface and of higher layers).
	Processing units.Bytes
	// Response returns, by a port's rate, a value to use in place of Processing. nil means Processing at every
	// rate.
	Response func(units.Rate) units.Bytes
	// Quanta is the time in a PAUSE, in units of 512 bit times; 65 535 by default. The
	// sender of a PAUSE repeats it when half of that is over.
	Quanta uint16
	// Frame is the size of a PFC frame, 64 B by default.
	Frame units.Bytes
}

// pauseState is the PFC state of a port: as the sender of PAUSE for its ingress, and as the receiver
// that obeys on its egress.
type pauseState struct {
	asked      uint8  // classes that this port has paused its peer for
	refresh    bool   // an evRefresh is due
	expiring   bool   // an evExpire is due
	ignores    uint8  // classes whose PAUSE has no effect
	frame      packet // frame that waits to be sent, see port.ctrl
	pendingPFC list   // frames that have arrived and not taken effect
	until      [NumClasses]units.Time
	since      [NumClasses]units.Time
	total      [NumClasses]units.Time // time paused, in pauses that have ended
	anySince   units.Time             // begin of the time in which at least one class is paused
	anyTotal   units.Time             // total of such times that have ended
	count      [NumClasses]uint32     // PAUSE frames that stopped a class
	frames     uint32                 // PAUSE frames that stopped at least one class
	whole      uint32                 // frames of these that stopped all classes
}

// pfcDelay returns how long a port takes from the arrival of a PFC frame to its effect.
func (s *Sim) pfcDelay(p *port) units.Time {
	if s.pfc.Response != nil {
		return p.rate.TxTime(s.pfc.Response(p.rate))
	}
	return p.rate.TxTime(s.pfc.Processing)
}

// pauseTime returns how long a full PAUSE lasts at a port.
func (s *Sim) pauseTime(p *port, quanta uint16) units.Time {
	return p.rate.TxTime(units.Bytes(quanta) * 64)
}

// signal sends the PFC frames that a switch's buffer asks for.
func (s *partition) signal(node int32, signals []Signal) {
	for _, g := range signals {
		i := s.nodes[node].first + int32(g.Port)
		st := &s.pauses[i]
		if g.Pause {
			st.asked |= g.Classes
			s.stats.PausesSent++
			if g.Classes == 0xFF {
				s.stats.PortPauses++
			}
			s.awaitRefresh(i)
			s.sendPFC(i, g.Classes, s.pfc.Quanta)
		} else {
			st.asked &^= g.Classes
			s.stats.ResumesSent++
			s.sendPFC(i, g.Classes, 0)
		}
	}
}

// sendPFC sends a PFC frame that pauses classes for quanta, or resumes them if quanta is 0. If a frame
// still waits for the packet on the wire, the change joins that frame, as a MAC fills in the classes
// when it begins to send.
func (s *partition) sendPFC(i int32, classes uint8, quanta uint16) {
	e := &s.pauses[i].frame
	if !s.ports[i].ctrl {
		s.ports[i].ctrl = true
		*e = packet{flow: noFlow}
		s.alloc()
	}
	e.set(classes)
	e.psn &^= uint32(classes) << pauseShift
	if quanta > 0 {
		e.psn = e.psn&^0xFFFF | uint32(classes)<<pauseShift | uint32(quanta)
	}
	s.schedulePort(i)
}

// pauseShift is the position in psn of a PFC frame, above the quanta, of the mask of paused classes.
// The other classes have time 0.
const pauseShift = 16

// resendPFC sends one PFC frame with the state of every class.
func (s *partition) resendPFC(i int32) {
	st := &s.pauses[i]
	s.sendPFC(i, ^st.asked, 0)
	if st.asked != 0 {
		s.sendPFC(i, st.asked, s.pfc.Quanta)
		s.awaitRefresh(i)
	}
}

// awaitRefresh schedules the repetition of a PAUSE after half of its time.
func (s *partition) awaitRefresh(i int32) {
	if st := &s.pauses[i]; !st.refresh {
		st.refresh = true
		s.events.schedule(s.now+s.pauseTime(&s.ports[i], s.pfc.Quanta)/2, evRefresh, i)
	}
}

// refresh repeats a PAUSE that is still in force.
func (s *partition) refresh(i int32) {
	st := &s.pauses[i]
	st.refresh = false
	if st.asked == 0 || s.ports[i].down {
		return
	}
	s.awaitRefresh(i)
	s.stats.Refreshes++
	s.sendPFC(i, st.asked, s.pfc.Quanta)
}

// applyPFC applies the first PFC frame that waits at a port.
func (s *partition) applyPFC(i int32) {
	e := s.store.pop(&s.pauses[i].pendingPFC)
	quanta, mask := uint16(e.psn), uint8(e.psn>>pauseShift)
	over := uint8(e.psn>>flagShift) &^ mask
	s.free(e)
	s.pendingPFC--
	p, st := &s.ports[i], &s.pauses[i]
	if mask &^= st.ignores; mask == 0 {
		s.resume(i, p.paused&over)
		return
	}
	until := s.now + s.pauseTime(p, quanta)
	if mask&^p.paused != 0 {
		st.frames++
		if mask == 0xFF {
			st.whole++
		}
	}
	for m := mask; m != 0; m &= m - 1 {
		c := bits.TrailingZeros8(m)
		st.until[c] = until
		if p.paused>>c&1 == 0 {
			st.since[c] = s.now
			st.count[c]++
		}
	}
	if p.paused == 0 {
		st.anySince = s.now
	}
	p.paused |= mask
	if !st.expiring {
		st.expiring = true
		s.events.schedule(until, evExpire, i)
	}
	s.resume(i, p.paused&over)
}

// resume lets a port send the classes of mask, which were paused, again.
func (s *partition) resume(i int32, mask uint8) {
	if mask == 0 {
		return
	}
	p, st := &s.ports[i], &s.pauses[i]
	for m := mask; m != 0; m &= m - 1 {
		c := bits.TrailingZeros8(m)
		st.total[c] += s.now - st.since[c]
	}
	if p.paused &^= mask; p.paused == 0 {
		st.anyTotal += s.now - st.anySince
	}
	if (p.active|p.ready)&mask != 0 {
		s.schedulePort(i)
	}
}

// expire ends the pauses of port i whose time has passed.
func (s *partition) expire(i int32) {
	p, st := &s.ports[i], &s.pauses[i]
	st.expiring = false
	next := units.MaxTime
	var over uint8
	for m := p.paused; m != 0; m &= m - 1 {
		c := bits.TrailingZeros8(m)
		if st.until[c] <= s.now {
			over |= 1 << c
		} else {
			next = min(next, st.until[c])
		}
	}
	if next != units.MaxTime {
		st.expiring = true
		s.events.schedule(next, evExpire, i)
	}
	s.resume(i, over)
}

// pausedFor returns the total time for which a class of a port has been paused.
func (s *Sim) pausedFor(i int32, class int) units.Time {
	t := s.pauses[i].total[class]
	if s.ports[i].paused>>class&1 == 1 {
		t += s.now - s.pauses[i].since[class]
	}
	return t
}

// stoppedFor returns the total time for which at least one class of a port has been paused.
func (s *Sim) stoppedFor(i int32) units.Time {
	t := s.pauses[i].anyTotal
	if s.ports[i].paused != 0 {
		t += s.now - s.pauses[i].anySince
	}
	return t
}

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
