package fabric

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/headgate/headgate/fabric/event"
	"github.com/headgate/headgate/fabric/topo"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/hosts/transport"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/units"
)

// Kinds of events; the argument is a port unless it says otherwise.
const (
	evArrive  = iota // the first packet on the link is here
	evFree           // the port has sent its packet and others wait
	evPause          // a PFC frame takes effect (packet)
	evRefresh        // a PAUSE should be repeated
	evExpire         // a PAUSE may be over
	evWake           // pacing lets a flow send (flow)
	evTimer          // a timer of a flow (flow)
	evStart          // the next flow of the list starts
	evStop           // an endless flow ends (flow)
	evNotify         // a receiver may owe a CNP (flow)
	evAction         // something the caller scheduled (action)
	evCheck          // look for deadlocks
)

// Sim is one run. It owns all state of its fabric and is used from one goroutine.
type Sim struct {
	now      units.Time
	agenda   *event.Queue
	pool     pool
	ports    []port
	nodes    []node // hosts, then switches
	nics     []nic  // per host
	routes   []int32
	flows    []flow // flow 0 stands for none
	tele     telePool
	pauses   []pauseState       // per port
	reds     []red              // per port and class, nil without ECN
	observed [][]*Occupancy     // per port
	paccs    []*paccPort        // per port, nil at hosts and without PACC
	conns    map[int]*conn      // connections with more than one message
	queued   int                // messages that wait for their connections
	pairs    map[uint64][]int32 // with PACC: flows that run, by source and destination

	mss, header, ackSize units.Bytes
	mtu                  int32 // size of a full frame
	strict               uint8
	ackClass             uint8
	quantum              [NumClasses]int32
	needs                Needs // of any flow so far
	pfc                  PFC
	cnpGap               units.Time
	rto                  units.Time // 0 for the default of the flow's class
	maxQDUnit            maxqd.Unit
	lossless             uint8 // classes of which no buffer drops a packet

	graph       *topo.Graph
	layout      *topo.Ports
	router      *topo.Router
	driver      Driver
	specs       []FlowSpec // by start
	nextSpec    int
	startAt     units.Time // of the pending evStart, MaxTime for none
	running     int
	ranked      bool    // flows have precedences
	nicTails    []tails // per host, if so
	obeying     int     // PFC frames that have arrived and not taken effect
	halting     bool    // Run returns once no flow runs or waits
	halted      bool
	groups      []units.Bytes // payload delivered
	results     []Result
	started     []units.Time
	actions     []func(*Sim) error
	freeActions []int32

	touched    uint16 // see dequeue
	freeFlows  []int32
	freeRoutes [][]int32 // by length
	path       []int32
	cnpRoutes  map[uint64]int32 // by switch and source: where CNPs of the switch's own go
	feedback   transport.Feedback
	ecmpSeed   uint64
	flowCount  uint64
	ecnRand    *rand.Rand
	lawRand    *rand.Rand
	jitterRand *rand.Rand
	noise      Noise
	noiseRand  *rand.Rand

	deadlock      *Deadlock
	deadlockEvery units.Time
	deadlockHold  units.Time
	stats         Stats
	limit         uint64
	err           error
}

// New builds the fabric of a configuration; an error names the field that is wrong.
func New(c Config) (*Sim, error) {
	c.setDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &Sim{
		pool: newPool(), tele: newTelePool(), flows: make([]flow, 1), graph: c.Graph,
		mss: c.Payload, header: c.Header, ackSize: c.Ack, mtu: int32(max(c.Payload+c.Header, minFrame)),
		strict: *c.Strict, ackClass: *c.AckClass, pfc: c.PFC, cnpGap: c.CNPGap, rto: c.RTO, lossless: 0xFF,
		startAt: units.MaxTime, driver: c.Driver, groups: make([]units.Bytes, c.Groups), limit: c.Limit,
		ecmpSeed: Stream(c.Seed, "ecmp").Uint64(), ecnRand: Stream(c.Seed, "ecn"), lawRand: Stream(c.Seed, "laws"),
		jitterRand: Stream(c.Seed, "jitter"),
		noise:      c.Noise, noiseRand: Stream(c.Seed, "noise"),
	}
	for i, q := range c.Quantum {
		s.quantum[i] = int32(q)
	}
	var err error
	if s.maxQDUnit, err = maxqd.NewUnit(c.MaxQDUnit); err != nil {
		return nil, err
	}
	s.layout = topo.NewPorts(c.Graph)
	s.router = topo.NewRouter(c.Graph, s.layout)
	if err := s.build(&c); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Sim) build(c *Config) error {
	g, l := c.Graph, s.layout
	s.ports = make([]port, len(l.Node))
	s.pauses = make([]pauseState, len(l.Node))
	s.nodes = make([]node, g.Nodes())
	s.nics = make([]nic, g.Hosts)
	var longest units.Time
	spreads := make([]units.Time, len(g.Links))
	rng := Stream(c.Seed, "delays")
	for i, link := range g.Links {
		if link.Spread > 0 {
			spreads[i] = units.Time(rng.Int64N(int64(link.Spread) + 1))
		}
	}
	for i := range s.ports {
		link := g.Links[l.Link[i]]
		n := l.Node[i]
		s.ports[i] = port{
			rate: link.Rate, perByte: perByteOf(link.Rate), delay: link.Delay + spreads[l.Link[i]], node: int32(n), peer: int32(l.Peer[i]),
			local: int32(i - l.First[n]), isHost: g.IsHost(n), down: link.Down, jitter: int32(link.Jitter),
		}
		longest = max(longest, link.Delay+link.Jitter+link.Spread+link.Rate.TxTime(units.Bytes(s.mtu)))
	}
	s.agenda = event.NewQueue(longest)
	for n := range s.nodes {
		s.nodes[n].first = int32(l.First[n])
		if g.IsHost(n) || c.NewBuffer == nil {
			continue
		}
		b, err := c.NewBuffer(InfoOf(g, l, n))
		if err != nil {
			return fmt.Errorf("buffer of switch %s: %w", g.Names[n], err)
		}
		s.nodes[n].buffer = b
		s.nodes[n].mmu, _ = b.(*headroom.MMU)
		if mmu := s.nodes[n].mmu; mmu != nil {
			s.lossless &= mmu.Lossless()
		} else {
			s.lossless = 0 // nothing is known of this buffer
		}
	}
	if c.PACC != nil {
		if err := s.buildPACC(c.PACC, c.Seed); err != nil {
			return err
		}
	}
	for class, r := range c.ECN {
		if r == nil {
			continue
		}
		if s.reds == nil {
			s.reds = make([]red, len(s.ports)*NumClasses)
		}
		for i := range s.ports {
			by := 1.0
			if r.Scale {
				by = float64(s.ports[i].rate) / float64(100*units.Gbps)
			}
			s.reds[i*NumClasses+class] = red{units.Bytes(float64(r.KMin) * by), units.Bytes(float64(r.KMax) * by), r.PMax}
		}
	}
	return nil
}

// AddFlows adds flows to start at their times; before Run, or for times to come.
func (s *Sim) AddFlows(specs []FlowSpec) error {
	for i := range specs {
		if err := s.checkSpec(&specs[i]); err != nil {
			return err
		}
		if specs[i].Start < s.now {
			return fmt.Errorf("flow starts at %v, want %v or later", specs[i].Start, s.now)
		}
	}
	left := append(slices.Clone(s.specs[s.nextSpec:]), specs...)
	slices.SortStableFunc(left, func(a, b FlowSpec) int { return compare(a.Start, b.Start) })
	s.specs, s.nextSpec = left, 0
	s.scheduleStart()
	return nil
}

// scheduleStart keeps one evStart pending for the next flow of the list.
func (s *Sim) scheduleStart() {
	if s.nextSpec == len(s.specs) {
		return
	}
	if at := s.specs[s.nextSpec].Start; at < s.startAt {
		s.startAt = at
		s.agenda.Schedule(at, evStart, 0)
	}
}

func compare(a, b units.Time) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// At calls fn at a time of the run. An error that fn returns ends the run.
func (s *Sim) At(t units.Time, fn func(*Sim) error) {
	i := int32(len(s.actions))
	if n := len(s.freeActions); n > 0 {
		i = s.freeActions[n-1]
		s.freeActions = s.freeActions[:n-1]
		s.actions[i] = fn
	} else {
		s.actions = append(s.actions, fn)
	}
	s.agenda.Schedule(t, evAction, i)
}

// Now returns the time of the run.
func (s *Sim) Now() units.Time { return s.now }

// Running returns the number of flows that have started and not ended; Waiting that of
// those that have yet to start.
func (s *Sim) Running() int { return s.running }

// Waiting returns the number of flows that have yet to start.
func (s *Sim) Waiting() int { return len(s.specs) - s.nextSpec + s.queued }

// ErrLimit is returned when a run has reached its limit of events.
var ErrLimit = errors.New("the run reached its limit of events")

// RunFlows runs until all flows have ended, but not beyond a time. Packets of theirs may
// be left on their way.
func (s *Sim) RunFlows(until units.Time) error {
	s.halting, s.halted = true, s.running == 0 && s.Waiting() == 0
	err := s.Run(until)
	s.halting, s.halted = false, false
	return err
}

// Run runs until a time, or until nothing is left to do. It may be called again with a
// later time.
func (s *Sim) Run(until units.Time) error {
	for s.err == nil && !s.halted {
		e, ok := s.agenda.Next(until)
		if !ok {
			if s.now < until && until != units.MaxTime {
				s.now = until
			}
			break
		}
		s.now = e.At
		s.stats.Events++
		switch e.Kind {
		case evArrive:
			s.arrive(e.Arg)
		case evFree:
			s.ports[e.Arg].pending = false
			s.transmit(e.Arg)
		default:
			s.rare(e)
		}
	}
	return s.err
}

func (s *Sim) rare(e event.Event) {
	switch e.Kind {
	case evPause:
		s.obey(e.Arg)
	case evRefresh:
		s.refresh(e.Arg)
	case evExpire:
		s.expire(e.Arg)
	case evWake:
		s.wake(e.Arg)
	case evTimer:
		s.timer(e.Arg)
	case evStart:
		s.startDue()
	case evStop:
		s.stop(e.Arg)
	case evNotify:
		s.notifyOwed(e.Arg)
	case evAction:
		fn := s.actions[e.Arg]
		s.actions[e.Arg] = nil
		s.freeActions = append(s.freeActions, e.Arg)
		s.fail(fn(s))
	case evCheck:
		s.checkDeadlock()
	}
	if s.limit > 0 && s.stats.Events > s.limit {
		s.fail(ErrLimit)
	}
}

// startDue starts all flows of the list whose time has come.
func (s *Sim) startDue() {
	for s.nextSpec < len(s.specs) && s.specs[s.nextSpec].Start <= s.now {
		s.nextSpec++
		s.fail(s.Start(&s.specs[s.nextSpec-1]))
	}
	s.startAt = units.MaxTime
	s.scheduleStart()
}

func (s *Sim) fail(err error) {
	if err != nil && s.err == nil {
		s.err = fmt.Errorf("at %v: %w", s.now, err)
	}
}
