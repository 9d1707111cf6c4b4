package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/sim/event"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// Sim is one run. It owns all state of its fabric and is used from one goroutine. Goroutines that it starts itself
// (Config.Cores) do not affect its results.
type Sim struct {
	now         units.Time
	partitions  []*partition
	partitionOf []int32     // per node
	control     event.Queue // actions by their numbers; they may access all partitions
	ports       []port
	nodes       []node // hosts, then switches
	nics        []nic  // per port of a host; hosts have the first ports
	routes      []int32
	flows       []flow // flow 0 stands for none

	pauses    []pauseState     // per port
	reds      []red            // per port and class, nil without ECN
	observed  [][]*Occupancy   // per port
	paccs     []*paccPort      // per port, nil at hosts and without PACC
	cnpRoutes map[uint64]int32 // path of CNPs that the switch makes, by switch and source
	conns     map[int]*conn    // connections with more than one message

	mss, header, ackSize units.Bytes
	mtu                  int32 // size of a full frame
	strict               uint8
	ackClass             uint8
	quantum              [NumClasses]int32
	needs                Needs // needs of all flows so far
	pfc                  PFC
	cnpGap, cnpDelay     units.Time
	rto                  units.Time // 0 for the default of the flow's class
	maxQDUnit            maxqd.Unit
	lossless             uint8 // classes in which no buffer drops packets

	graph    *topo.Graph
	layout   *topo.Ports
	router   *topo.Router
	driver   Driver
	specs    []FlowSpec // in order of their starts
	nextSpec int
	ranked   bool // flows have precedences
	halting  bool // Run returns once no flow runs or waits
	halted   bool
	results  []Result // result of flow i at index i − 1
	started  []units.Time
	actions  []func(*Sim) error
	path     []int32
	ecmpSeed uint64
	chances  []chance // per node
	noise    Noise
	windows  windows

	deadlock      *Deadlock
	deadlockEvery units.Time
	deadlockHold  units.Time
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
		flows: make([]flow, 1), graph: c.Graph,
		mss: c.Payload, header: c.Header, ackSize: c.Ack, mtu: int32(max(c.Payload+c.Header, minFrame)),
		strict: *c.Strict, ackClass: *c.AckClass, pfc: c.PFC, cnpGap: c.CNPGap, cnpDelay: c.CNPDelay, rto: c.RTO, lossless: 0xFF,
		driver: c.Driver, limit: c.Limit, ecmpSeed: Stream(c.Seed, "ecmp").Uint64(), noise: c.Noise,
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
	s.nics = make([]nic, l.First[g.Hosts])
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
			isHost: g.IsHost(n), down: link.Down, jitter: int32(link.Jitter),
			local: uint16(i - l.First[n]),
		}
	}
	s.makePartitions(c)
	for n := range s.nodes {
		s.nodes[n].first = int32(l.First[n])
		if g.IsHost(n) || c.NewBuffer == nil {
			continue
		}
		b, err := c.NewBuffer(InfoOf(g, l, n))
		if err != nil {
			return fmt.Errorf("buffer of switch %s: %w", g.Names[n], err)
		}
		s.setBuffer(n, b)
		if mmu, ok := b.(*headroom.MMU); ok {
			s.lossless &= mmu.Lossless()
		} else {
			s.lossless = 0 // this buffer may drop packets of any class
		}
	}
	if c.PACC != nil {
		if err := s.buildPACC(c.PACC, c.Seed); err != nil {
			return err
		}
	}
	for i := range s.ports {
		own := PortConfig{ECN: c.ECN}
		if c.PortOf != nil {
			own = c.PortOf(l.Node[i], g.Number(l, i))
		}
		s.pauses[i].ignores = own.Ignores
		for class, r := range own.ECN {
			if r == nil {
				continue
			}
			if s.reds == nil {
				s.reds = make([]red, len(s.ports)*NumClasses)
			}
			by := 1.0
			if r.Scale {
				by = float64(s.ports[i].rate) / float64(100*units.Gbps)
			}
			s.reds[i*NumClasses+class] = red{units.Bytes(float64(r.KMin) * by), units.Bytes(float64(r.KMax) * by), r.PMax}
		}
	}
	return nil
}

// AddFlows adds flows that start at their Start times, which must not be in the past.
func (s *Sim) AddFlows(specs []FlowSpec) error {
	first := units.MaxTime
	for i := range specs {
		if err := s.checkSpec(&specs[i], specs[i].Start); err != nil {
			return err
		}
		if specs[i].Start < s.now {
			return fmt.Errorf("flow starts at %v, want %v or later", specs[i].Start, s.now)
		}
		s.expect(&specs[i])
		first = min(first, specs[i].Start)
	}
	left := append(slices.Clone(s.specs[s.nextSpec:]), specs...)
	slices.SortStableFunc(left, func(a, b FlowSpec) int { return cmp.Compare(a.Start, b.Start) })
	s.specs, s.nextSpec = left, 0
	s.limitUntil(first - 1)
	return nil
}

// At calls fn at a time of the run, before all events of that time. At time 0 it calls fn after them, when the
// initial flows have started. An error that fn returns ends the run.
func (s *Sim) At(t units.Time, fn func(*Sim) error) {
	t = max(t, s.now)
	s.control.Schedule(t, 0, int32(len(s.actions)))
	s.actions = append(s.actions, fn)
	s.limitUntil(t - 1)
}

// untilAction returns the time up to which events happen before the next action, at most until.
func (s *Sim) untilAction(until units.Time) units.Time {
	return min(until, max(s.control.First().At-1, 0))
}

// Now returns the time of the run.
func (s *Sim) Now() units.Time { return s.now }

// Running returns the number of flows that have started and not ended.
func (s *Sim) Running() (n int) {
	for _, p := range s.partitions {
		n += p.running
	}
	return n
}

// Waiting returns the number of flows that have yet to start.
func (s *Sim) Waiting() int {
	n := len(s.specs) - s.nextSpec
	for _, p := range s.partitions {
		n += p.waiting
	}
	return n
}

// ErrLimit is returned when a run has reached its limit of events.
var ErrLimit = errors.New("the run reached its limit of events")

// RunFlows runs until all flows have ended, but not beyond a time. Some of their packets may still be
// in flight.
func (s *Sim) RunFlows(until units.Time) error {
	s.halting, s.halted = true, s.running() == 0
	err := s.Run(until)
	s.halting, s.halted = false, false
	return err
}

// running returns the number of flows that have not ended.
func (s *Sim) running() int { return s.Running() + s.Waiting() }

// Run runs until a time, or until nothing is left to do. It may be called again with a
// later time.
func (s *Sim) Run(until units.Time) error {
	defer func() {
		if s.windows.workers != nil {
			s.windows.workers.close()
			s.windows.workers = nil
		}
	}()
	for _, p := range s.partitions {
		p.stopped = p.failure != nil
	}
	for s.err == nil && !s.halted {
		limit := s.untilAction(until)
		if at := s.earliest(); at <= limit && at < units.MaxTime {
			s.window(at, limit)
			continue
		}
		action, ok := s.control.Next(until)
		if !ok {
			if s.now < until && until != units.MaxTime {
				s.now = until
			}
			break
		}
		s.now = action.At
		s.synchronise()
		fn := s.actions[action.Arg()]
		s.actions[action.Arg()] = nil
		s.fail(fn(s))
	}
	s.synchronise()
	return s.err
}

// nextStart returns when the next flow of the list starts, MaxTime for none.
func (s *Sim) nextStart() units.Time {
	if s.nextSpec == len(s.specs) {
		return units.MaxTime
	}
	return s.specs[s.nextSpec].Start
}

// admitDue admits the flows that start by a time, and schedules their starts at their hosts.
func (s *Sim) admitDue(until units.Time) {
	for s.nextStart() <= until {
		spec := &s.specs[s.nextSpec]
		s.nextSpec++
		i, err := s.admit(spec)
		if err != nil {
			s.fail(err)
			return
		}
		p := s.at(spec.Src)
		p.waiting++
		p.events.schedule(spec.Start, evStart, i)
	}
}

func (s *Sim) fail(err error) {
	if err != nil && s.err == nil {
		s.err = fmt.Errorf("at %v: %w", s.now, err)
	}
}
