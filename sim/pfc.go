package sim

import (
	"math/bits"

	"github.com/headgate/headgate/units"
)

// PFC says how priority flow control (IEEE 802.1Qbb) behaves on all links.
type PFC struct {
	// Processing is how much the receiver of a PFC frame may still send before it reacts,
	// besides the packet on the wire: 3840 B by default (IEEE 802.1Q, Annex O: the delays
	// of the interface and of higher layers).
	Processing units.Bytes
	// Response is Processing by a port's rate; nil is Processing at every rate.
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
	frame      packet // that waits to be sent, see port.ctrl
	pendingPFC list   // frames that have arrived and not taken effect
	until      [NumClasses]units.Time
	since      [NumClasses]units.Time
	total      [NumClasses]units.Time // paused, over periods that have ended
	count      [NumClasses]uint32     // PAUSE frames that stopped a class
	frames     uint32                 // PAUSE frames that stopped any
	whole      uint32                 // those of frames that stopped all
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
	if mask == 0 {
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
	p.paused &^= mask
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

// pausedFor returns how long a class of a port has been paused in all.
func (s *Sim) pausedFor(i int32, class int) units.Time {
	t := s.pauses[i].total[class]
	if s.ports[i].paused>>class&1 == 1 {
		t += s.now - s.pauses[i].since[class]
	}
	return t
}
