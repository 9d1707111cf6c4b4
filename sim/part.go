package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/headgate/headgate/hosts/transport"
	"github.com/headgate/headgate/sim/event"
	"github.com/headgate/headgate/units"
)

// Kinds of events; the argument is a port unless it says otherwise. Events of one time happen in
// this order, and those of a kind in the order of their arguments.
const (
	evArrive  = iota // the first packet on the link is here
	evFree           // the port has sent its packet and others wait
	evPause          // a PFC frame takes effect
	evRefresh        // a PAUSE should be repeated
	evExpire         // a PAUSE may be over
	evWake           // pacing lets a flow send (flow)
	evTimer          // a timer of a flow (flow)
	evNotify         // a receiver may owe a CNP (flow)
	evTick           // a period of PACC is over
	evCNP            // a CNP of PACC's is due
	evStart          // a flow of the list starts (flow)
)

// part is some of a fabric's nodes with their events and packets. Its methods touch nothing of
// nodes elsewhere: what it sends them goes through its outboxes. Fields of the Sim are read only,
// but for what belongs to a node or a flow: a flow's sender is of the part of its source, its
// receiver of that of its destination.
type part struct {
	*Sim
	number int
	now    units.Time
	until  units.Time // events up to here happen at present
	agenda *event.Queue
	lanes
	extras   extras
	store    store
	ports    []port // these four are the Sim's
	nodes    []node
	routes   []int32
	flows    []flow
	tele     telePool
	pairs    map[uint64][]int32 // with PACC: flows that run, by source and destination
	stats    Stats
	groups   []units.Bytes // payload delivered
	running  int           // flows that have started and not ended
	waiting  int           // flows that are known and have yet to start
	live     int           // packets
	peak     int           // the most of them at once
	obeying  int           // PFC frames that have arrived and not taken effect
	feedback transport.Feedback
	pulled   packet // see pull
	stopped  bool
	single   bool // run lets one event happen
	outboxes
}

// chance is what a node draws; each kind has a stream of its own.
type chance struct {
	ecn, laws, jitter, noise *rand.Rand
}

// divide makes the parts of a configuration. Most events are not further ahead than horizon.
func (s *Sim) divide(c *Config, horizon units.Time) {
	of, n := s.plan(c)
	s.partOf = of
	for i := range s.ports {
		p := &s.ports[i]
		p.special = p.jitter != 0 || p.cross || p.toHost
		p.into = uint16(of[s.ports[p.peer].node])
	}
	s.chances = make([]chance, len(s.nodes))
	for i := range s.chances {
		draw := func(what string) *rand.Rand { return Stream(c.Seed, fmt.Sprintf("%s %d", what, i)) }
		s.chances[i] = chance{draw("ecn"), draw("laws"), draw("jitter"), draw("noise")}
	}
	for i := range n {
		p := &part{
			Sim: s, number: i, agenda: event.NewQueue(horizon), store: newStore(), tele: newTelePool(),
			groups: make([]units.Bytes, c.Groups), outboxes: newOutboxes(n),
		}
		s.parts = append(s.parts, p)
	}
	s.addLanes()
	s.share()
}

// share tells the parts where ports, routes and flows are, which move as they grow.
func (s *Sim) share() {
	for _, p := range s.parts {
		p.ports, p.nodes, p.routes, p.flows = s.ports, s.nodes, s.routes, s.flows
	}
}

// at returns the part of a node.
func (s *Sim) at(node int) *part { return s.parts[s.partOf[node]] }

// run lets happen what is due until a time, with single the next of it alone.
func (s *part) run(until units.Time) {
	s.until = until
	for !s.stopped {
		at, what := s.lanes.next.At, s.lanes.next.What
		if at > s.until {
			at, what = s.until, event.Never
		}
		switch {
		case s.agenda.Soon() <= at && s.agenda.Before(at, what):
			s.happen(s.agenda.Take())
		case what == event.Never:
			return
		default:
			s.now = at
			s.stats.Events++
			if e, i := s.pop(), what.Arg(); what.Kind() == evArrive {
				s.take(i, &s.ports[i], e)
			} else {
				s.freed(i)
			}
		}
		if s.single {
			return
		}
	}
}

// peek returns the part's next event, false for none.
func (s *part) peek() (event.Event, bool) {
	e, ok := s.agenda.Peek()
	if first := s.lanes.next; first.What != event.Never && (!ok || first.Before(e)) {
		return first, true
	}
	return e, ok
}

// happen lets an event happen.
func (s *part) happen(e event.Event) {
	s.now = e.At
	s.stats.Events++
	switch e.Kind() {
	case evArrive:
		s.arrive(e.Arg())
	case evFree:
		s.freed(e.Arg())
	default:
		s.rare(e)
	}
}

func (s *part) rare(e event.Event) {
	switch e.Kind() {
	case evPause:
		s.obey(e.Arg())
	case evRefresh:
		s.refresh(e.Arg())
	case evExpire:
		s.expire(e.Arg())
	case evWake:
		s.wake(e.Arg())
	case evTimer:
		s.timer(e.Arg())
	case evNotify:
		s.notifyOwed(e.Arg())
	case evTick:
		s.paccs[e.Arg()].onTick(s)
	case evCNP:
		s.paccs[e.Arg()].onSend(s)
	case evStart:
		s.waiting--
		s.fail(s.start(e.Arg()))
	}
	if s.limit > 0 && s.stats.Events > s.limit {
		s.fail(ErrLimit)
	}
}

// fail stops the part; the Sim hears of it when the parts meet.
func (s *part) fail(err error) {
	if err != nil && s.failure == nil {
		s.failure, s.stopped = fmt.Errorf("at %v: %w", s.now, err), true
	}
}
