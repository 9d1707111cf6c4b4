package sim

import (
	"slices"

	"github.com/headgate/headgate/sim/event"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// outboxes hold what a part sends to others and says to the Sim. What one window puts in is
// taken out in the next: there are two of each, used in turn.
type outboxes struct {
	out     [2][]outbox // by receiving part
	turn    int
	sent    units.Time // when the first of what is in them arrives, MaxTime for nothing
	endings []ending
	failure error
	before  uint64 // events before the window
}

// outbox holds packets for the ports of another part.
type outbox struct {
	parcels []parcel
	extras  []extra // of those that have some
	teles   []teleRecord
}

// parcel is a packet on its way into another part, in half a cache line.
type parcel struct {
	packet
	port int32 // where it arrives
	lane int32 // by which it does in the other part, negative for none
}

// ending is an acknowledgement of all of a flow, which ends it when it arrives.
type ending struct {
	at     units.Time
	tagged bool // a Driver is told
}

func newOutboxes(n int) outboxes {
	return outboxes{out: [2][]outbox{make([]outbox, n), make([]outbox, n)}, sent: units.MaxTime}
}

// windows is how a run of several parts goes: in windows of the virtual time that it takes at
// least to get from one part to another (the conservative algorithm YAWNS; Nicol, 1993).
type windows struct {
	look    units.Time // the least time from sending to arriving in another part
	team    *team      // nil when it rests
	last    uint64     // events of the last window
	enough  uint64     // events that a window must have for other processors to be woken for it
	abreast bool       // parts run side by side at present
	work    Work
}

// Work says how a run was shared between processors.
type Work struct {
	Cores    int    // parts of the fabric
	Why      string // that there is one, where more were asked for
	Windows  uint64 // of more than one part
	Serial   uint64 // those whose parts could not go side by side
	Events   uint64 // in windows
	Critical uint64 // in the part of each window that had most, or in all of a serial one
}

// Work returns how the run has been shared so far. It is of no consequence for results.
func (s *Sim) Work() Work { return s.windows.work }

// plan parts the nodes among as many processors as make sense.
func (s *Sim) plan(c *Config) (of []int32, n int) {
	of, n = make([]int32, len(s.nodes)), max(c.Cores, 1)
	s.windows.work.Cores = 1
	if n == 1 {
		return of, 1
	}
	n = min(n, s.graph.Switches)
	split := topo.Split(s.graph, n)
	least := uint16(min(s.ackSize, s.pfc.Frame, minFrame))
	look := units.MaxTime
	for i := range s.ports {
		p := &s.ports[i]
		peer := s.ports[p.peer].node
		p.cross = split[p.node] != split[peer]
		// Endings have to be known a window ahead, see mustBeSerial.
		p.toHost = s.graph.IsHost(int(peer))
		if p.cross || p.toHost {
			look = min(look, p.delay+p.txTime(least))
		}
	}
	switch {
	case n < 2:
		s.windows.work.Why = "the fabric has one switch"
	case look < minLook:
		s.windows.work.Why = "a link's delay of " + look.String() + " leaves too little to do side by side"
	default:
		s.windows.look, s.windows.enough, s.windows.work.Cores = look, worthwhile, n
		for node, part := range split {
			of[node] = int32(part)
		}
		return of, n
	}
	for i := range s.ports {
		s.ports[i].cross, s.ports[i].toHost = false, false
	}
	return of, 1
}

// minLook is the shortest window worth its barrier, and worthwhile the fewest events of one that
// other processors are woken for.
const (
	minLook    = 50 * units.Nanosecond
	worthwhile = 400
)

// post sends a packet to another part.
func (s *part) post(p *port, at units.Time, e *packet) {
	box := &s.out[s.turn][p.into]
	if e.extra != 0 {
		x := &s.extras.all[e.extra]
		box.extras = append(box.extras, *x)
		if x.tele != 0 {
			box.teles = append(box.teles, s.tele.records[x.tele])
		}
	}
	box.parcels = append(box.parcels, parcel{})
	m := &box.parcels[len(box.parcels)-1]
	m.become(e.on(at), e)
	m.port, m.lane = p.peer, int32(s.laneFor(p.lanes>>4, e.size()))
	s.discard(e)
	s.sent = min(s.sent, at)
}

// drain takes what other parts have sent in the window before.
func (s *part) drain() {
	for _, from := range s.parts {
		box := &from.out[1-s.turn][s.number]
		extras, teles := box.extras, box.teles
		for i := range box.parcels {
			m := &box.parcels[i]
			e := &m.packet
			if e.extra != 0 {
				e.extra = s.extras.get()
				x := &s.extras.all[e.extra]
				*x, extras = extras[0], extras[1:]
				if x.tele != 0 {
					x.tele = s.tele.get()
					s.tele.records[x.tele], teles = teles[0], teles[1:]
				}
			}
			s.born()
			if at := e.due(s.Sim.now); m.lane >= 0 {
				s.push(int(m.lane), at, m.port, e)
			} else {
				s.land(m.port, at, e)
			}
		}
		box.parcels, box.extras, box.teles = box.parcels[:0], box.extras[:0], box.teles[:0]
	}
}

// window runs what happens from a time on, not beyond limit.
func (s *Sim) window(from, limit units.Time) {
	if len(s.parts) == 1 {
		s.serially(limit)
		s.meet()
		return
	}
	end := limit
	if limit-from >= s.windows.look {
		end = from + s.windows.look - 1
	}
	for _, p := range s.parts {
		p.turn = 1 - p.turn
		p.sent = units.MaxTime
		p.before = p.stats.Events
	}
	if s.mustBeSerial(from, end) {
		for _, p := range s.parts {
			p.drain()
		}
		s.serially(end)
		s.meet()
		s.windows.count(s.parts, true)
		return
	}
	s.admitDue(end)
	if s.err == nil {
		s.windows.abreast = true
		s.windows.each(s, end)
		s.windows.abreast = false
	}
	s.meet()
	s.windows.count(s.parts, false)
}

// earliest returns when the next thing happens that is not an action, MaxTime for nothing.
func (s *Sim) earliest() units.Time {
	at := s.nextStart()
	for _, p := range s.parts {
		if e, ok := p.peek(); ok {
			at = min(at, e.At)
		}
		at = min(at, p.sent)
	}
	return at
}

// mustBeSerial reports whether something may happen in a window that reaches another part at
// once: a flow's end that a Driver answers with other flows, or the last of all. Only what is on
// the wire to a host when the window begins can arrive there before it is over.
func (s *Sim) mustBeSerial(from, end units.Time) bool {
	ends, tagged := 0, false
	for _, p := range s.parts {
		p.endings = slices.DeleteFunc(p.endings, func(e ending) bool { return e.at < from })
		for _, e := range p.endings {
			if e.at <= end {
				ends++
				tagged = tagged || e.tagged
			}
		}
	}
	return tagged || s.halting && s.running() <= ends
}

// serially runs what happens until a time, in order over all parts.
func (s *Sim) serially(end units.Time) {
	for s.err == nil {
		if !s.step(min(s.untilAction(end), s.nextStart()-1)) {
			return
		}
		start := s.nextStart() // there may be a new one, or an action
		if start > s.untilAction(end) || start == units.MaxTime {
			return
		}
		s.admitDue(start)
	}
}

// step lets happen what is due until a time and known, and reports whether the run goes on.
func (s *Sim) step(until units.Time) bool {
	if len(s.parts) == 1 {
		s.parts[0].run(until)
		return !s.parts[0].stopped
	}
	for _, p := range s.parts {
		p.until = until
	}
	for {
		var first *part
		at := event.Event{At: units.MaxTime}
		for _, p := range s.parts {
			if p.stopped {
				return false
			}
			if e, ok := p.peek(); ok && e.At <= p.until && (first == nil || e.Before(at)) {
				first, at = p, e
			}
		}
		if first == nil {
			return true
		}
		first.single = true
		first.run(first.until)
		first.single = false
	}
}

// notBeyond keeps events after a time from happening before something else has.
func (s *Sim) notBeyond(t units.Time) {
	for _, p := range s.parts {
		p.until = min(p.until, t)
	}
}

// meet takes note of what parts say at the end of a window.
func (s *Sim) meet() {
	var failed *part
	for _, p := range s.parts {
		s.now = max(s.now, p.now)
		if p.failure != nil && (failed == nil || p.now < failed.now) {
			failed = p
		}
	}
	if failed != nil && s.err == nil {
		s.err = failed.failure
	}
}

// gather brings all parts to the time of the run, with nothing on its way between them.
func (s *Sim) gather() {
	for _, p := range s.parts {
		p.turn = 1 - p.turn
		p.sent = units.MaxTime
		p.now = s.now
	}
	for _, p := range s.parts {
		p.drain()
	}
}

// count adds a window to what is said of the work.
func (w *windows) count(parts []*part, serial bool) {
	most, all := uint64(0), uint64(0)
	for _, p := range parts {
		n := p.stats.Events - p.before
		most, all = max(most, n), all+n
	}
	w.last = all
	w.work.Windows++
	w.work.Events += all
	if serial {
		w.work.Serial++
		most = all
	}
	w.work.Critical += most
}

// each runs a window of all parts, side by side if there is enough to do.
func (w *windows) each(s *Sim, end units.Time) {
	do := func(i int) {
		s.parts[i].drain()
		s.parts[i].run(end)
	}
	if w.last < w.enough {
		for i := range s.parts {
			do(i)
		}
		return
	}
	if w.team == nil {
		w.team = newTeam(len(s.parts))
	}
	w.team.run(do)
}

// rest sends the helpers home.
func (w *windows) rest() {
	if w.team != nil {
		w.team.close()
		w.team = nil
	}
}
