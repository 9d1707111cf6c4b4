package sim

import (
	"fmt"
	"hash/fnv"
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
	evMade           // a receiver's NIC has made a CNP (flow)
	evTick           // a period of PACC is over
	evCNP            // a CNP of PACC's is due
	evStart          // a flow of the list starts (flow)
)

// partition owns some of a fabric's nodes with their events and packets. A run has one partition, or
// one per processor. Its methods access no other nodes: packets for them go through its outboxes. It
// only reads the Sim, except the Sim's entries of its own nodes and flows. A flow's sender belongs to
// the partition of its source, its receiver to that of its destination.
type partition struct {
	*Sim
	number     int
	now        units.Time
	until      units.Time // run handles events up to this time
	events     eventQueue
	extras     pool[extra]
	wide       bool // packets have an extra
	store      store
	ports      []port // this and the next three are slices of the Sim
	nodes      []node
	routes     []int32
	flows      []flow
	tele       pool[teleRecord]
	pairs      map[uint64][]int32 // running flows by source and destination; used with PACC
	stats      Stats
	groups     []units.Bytes // payload delivered
	running    int           // flows that have started and not ended
	waiting    int           // flows that are known and have yet to start
	live       int           // packets
	peak       int           // largest number of packets at one time
	pendingPFC int           // PFC frames that have arrived and not taken effect
	feedback   transport.Feedback
	pulled     packet // see pull
	stopped    bool
	single     bool // run handles one event
	outboxes
}

// chance is a kind of random draw of a node. Each kind has its own stream.
type chance struct {
	ecn, laws, jitter, noise *rand.Rand
}

// makePartitions makes the partitions of a configuration.
func (s *Sim) makePartitions(c *Config) {
	of, n := s.plan(c)
	s.partitionOf = of
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
		p := &partition{
			Sim: s, number: i, store: newStore(), extras: newPool[extra](), tele: newPool[teleRecord](),
			groups: make([]units.Bytes, c.Groups), outboxes: newOutboxes(n),
		}
		s.partitions = append(s.partitions, p)
	}
	s.addFIFOs()
	s.shareSlices()
}

// shareSlices passes the slices of ports, routes and flows to the partitions again, because they move
// when they grow.
func (s *Sim) shareSlices() {
	for _, p := range s.partitions {
		p.ports, p.nodes, p.routes, p.flows = s.ports, s.nodes, s.routes, s.flows
	}
}

// at returns the partition of a node.
func (s *Sim) at(node int) *partition { return s.partitions[s.partitionOf[node]] }

// run handles the events due by a time. If single is set it handles one event.
func (s *partition) run(until units.Time) {
	s.until = until
	for !s.stopped {
		e, p := s.events.next(s.until)
		if e.What == event.Never {
			return
		}
		s.now = e.At
		s.stats.Events++
		s.dispatch(e.What, p)
		if s.single {
			return
		}
	}
}

// dispatch handles an event. p is the packet that the event queue held with it, nil if the packet is
// in its link's list or there is none.
func (s *partition) dispatch(what event.What, p *packet) {
	switch i := what.Arg(); what.Kind() {
	case evArrive:
		if p == nil {
			p = s.takeFromLink(i)
		}
		s.arriveAt(i, &s.ports[i], p)
		return
	case evFree:
		s.freed(i)
		return
	case evPause:
		s.applyPFC(i)
	case evRefresh:
		s.refresh(i)
	case evExpire:
		s.expire(i)
	case evWake:
		s.wake(i)
	case evTimer:
		s.timer(i)
	case evNotify:
		s.notifyOwed(i)
	case evMade:
		s.sendCNP(i)
		s.schedulePort(s.answeredBy(&s.flows[i]))
	case evTick:
		s.paccs[i].onTick(s)
	case evCNP:
		s.paccs[i].onSend(s)
	case evStart:
		s.waiting--
		s.fail(s.start(i))
	}
	if s.limit > 0 && s.stats.Events > s.limit {
		s.fail(ErrLimit)
	}
}

// fail stops the partition. The Sim reads the error at the end of the window.
func (s *partition) fail(err error) {
	if err != nil && s.failure == nil {
		s.failure, s.stopped = fmt.Errorf("at %v: %w", s.now, err), true
	}
}

// Stream returns the random stream of the component called name for a seed. A component's draws do not
// change another component's stream.
func Stream(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name)) // never fails (hash.Hash)
	return rand.New(rand.NewPCG(splitmix(seed), h.Sum64()))
}

// splitmix is splitmix64 (Steele, Lea and Flood, OOPSLA 2014): a bijection that mixes.
func splitmix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
