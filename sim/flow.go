package sim

import (
	"fmt"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/dcqcn"
	"github.com/headgate/headgate/hosts/transport"
	"github.com/headgate/headgate/units"
)

// FlowSpec describes a flow to start.
type FlowSpec struct {
	Src, Dst int         // hosts
	Size     units.Bytes // payload; 0 for a flow that ends only at Stop
	Start    units.Time
	Stop     units.Time // 0 for none
	Class    uint8
	// Precedence is served strictly, highest first, among the flows of a class in switches and hosts, as
	// if each had its own queue. PFC and buffers distinguish only classes. Range 0 to NumPrecedences-1.
	Precedence uint8
	Group      int     // the flows of a group have a common byte counter; 0 to Config.Groups-1
	Weight     float64 // weight for laws that have one; 0 means 1
	Law        LawMaker
	Tag        int    // free for the caller's use
	SrcPort    uint16 // UDP source port, which switches of a graph with ECMP hash; 0 draws one
	Job        int    // number shared by the flows of one job, such as a coflow; 0 for none
	// Paced spreads each window over a round trip.
	Paced bool
	// Deadline is the time after its start by which the flow should end, 0 for never. If it is 0, DeadlineFactor
	// times Result.Ideal is the deadline. Laws such as D2TCP get the deadline.
	Deadline       units.Time
	DeadlineFactor float64
	// Conn, if not 0, makes the flow a message of the connection with this number, such as a queue pair of RoCE.
	// All messages of a connection have the same ends and law. A message starts when the previous one is
	// acknowledged. It continues with the previous message's law and its state, on the same path. With 0 the flow
	// has a connection of its own.
	Conn int
}

// deadline returns the deadline of a flow relative to its start, 0 for none.
func (f *FlowSpec) deadline(ideal units.Time) units.Time {
	if f.Deadline == 0 {
		return units.Time(f.DeadlineFactor * float64(ideal))
	}
	return f.Deadline
}

// LawMaker makes the law of a flow that starts.
type LawMaker interface {
	NewLaw(f FlowInfo) (law.Law, error)
}

// Needs says which fields data packets must carry for a law. A LawMaker returns it from an optional method
// Needs. Without that method the law gets only round-trip times, ECN and CNPs.
type Needs struct {
	INT   bool // per-hop telemetry
	MaxQD bool // the largest queueing delay on the path
	Delay bool // the one-way delay
}

// needs returns the fields that a flow's data packets must carry.
func (f *FlowSpec) needs() Needs {
	if n, ok := f.Law.(interface{ Needs() Needs }); ok {
		return n.Needs()
	}
	return Needs{}
}

// FlowInfo describes a flow and its path to its law when the flow starts.
type FlowInfo = law.Flow

// Result is the result of a flow.
type Result struct {
	Spec      *FlowSpec
	Delivered units.Time // when its last byte arrived; 0 if it has not
	FCT       units.Time // time from its start to the last acknowledgement; 0 if that has not arrived
	Ideal     units.Time // FCT of the flow alone at line rate over its path
	Deadline  units.Time // time after the flow's start; 0 for none
	CNPs      uint32     // CNPs that reached its sender
	Stats     transport.SenderStats
}

// FlowInfo returns the description that a law gets of an endless flow between two hosts.
func (s *Sim) FlowInfo(src, dst int) (FlowInfo, error) {
	route, back, hops, err := s.newRoutes(src, dst, &FlowSpec{}, 0)
	if err != nil {
		return FlowInfo{}, err
	}
	return s.flowInfo(&flow{spec: &FlowSpec{}, src: int32(src), dst: int32(dst), route: route, back: back, hops: hops}), nil
}

const noFlow = -1

// flow is the state of a flow in the fabric. The first cache line of 64 B is its sender at one host,
// the second its receiver at the other. They may belong to different partitions.
type flow struct {
	tx         *transport.Sender // nil before the start and when over
	wakeAt     units.Time        // time of its pending evWake, MaxTime for none
	timerAt    units.Time        // time of its pending evTimer, MaxTime for none
	ideal      units.Time
	weight     float64
	src        int32
	dst        int32
	route      int32 // where its path starts in Sim.routes
	next       int32 // next flow in its port's list of ready flows; 0 for none
	listed     bool  // the flow is in its port's list of ready flows
	stale      bool  // something changed since it was listed
	needs      Needs
	class      uint8
	precedence uint8

	rx        transport.Receiver
	notify    dcqcn.NotificationPoint
	spec      *FlowSpec
	back      int32 // where its ACKs' path starts in Sim.routes
	hops      int32 // length of each path
	group     int32 // copy of spec.Group, because a packet should not access spec
	delivered bool  // all of its payload
	_         [8]byte
}

// Start starts a flow now and ignores spec.Start. The spec is kept and not changed. Workloads whose
// flows depend on each other use it; see Driver.
func (s *Sim) Start(spec *FlowSpec) error {
	if err := s.checkSpec(spec, s.now); err != nil {
		return err
	}
	s.expect(spec)
	i, err := s.admit(spec)
	if err != nil {
		return err
	}
	p := s.at(spec.Src)
	p.now = s.now
	return p.start(i)
}

// expect prepares the fabric for a flow's needs and precedence.
func (s *Sim) expect(spec *FlowSpec) {
	s.require(spec.needs())
	if spec.Precedence > 0 {
		s.rank()
	}
}

// admit gives a starting flow its number and its path.
func (s *Sim) admit(spec *FlowSpec) (int32, error) {
	i := int32(len(s.flows))
	f := flow{
		spec: spec, src: int32(spec.Src), dst: int32(spec.Dst), class: spec.Class, precedence: spec.Precedence, group: int32(spec.Group),
		wakeAt: units.MaxTime, timerAt: units.MaxTime, needs: spec.needs(),
	}
	var err error
	if f.route, f.back, f.hops, err = s.newRoutes(spec.Src, spec.Dst, spec, s.hashOf(spec, i)); err != nil {
		return 0, err
	}
	s.routeCNPs(&f)
	s.flows = append(s.flows, f)
	s.results = append(s.results, Result{Spec: spec})
	s.started = append(s.started, 0)
	s.shareSlices()
	if spec.Stop > 0 {
		s.At(spec.Stop, func(s *Sim) error { s.at(spec.Src).stop(i); return nil })
	}
	return i, nil
}

// start begins a flow whose time has come, or queues it behind its connection.
func (s *partition) start(i int32) error {
	s.started[i-1] = s.now
	if s.queueMessage(i) {
		return nil
	}
	return s.begin(i)
}

// begin makes a flow's law and sender and starts to send.
func (s *partition) begin(i int32) error {
	f := &s.flows[i]
	spec := f.spec
	info := s.flowInfo(f)
	f.weight = info.Weight
	f.ideal = s.ideal(f)
	info.Deadline = spec.deadline(f.ideal)
	if err := s.attachLaw(i, s.conns[spec.Conn], info); err != nil {
		return fmt.Errorf("flow %s → %s: %w", s.graph.Names[spec.Src], s.graph.Names[spec.Dst], err)
	}
	r := &s.results[i-1]
	r.Ideal, r.Deadline = f.ideal, info.Deadline
	s.stats.FlowsStarted++
	s.running++
	if s.paccs != nil {
		pair := pairOf(f.src, f.dst)
		s.pairs[pair] = append(s.pairs[pair], i)
	}
	s.scheduleFlow(i)
	s.armTimer(i)
	return nil
}

// attachLaw gives a flow its law, or the law of its connection, and its sender.
func (s *partition) attachLaw(i int32, c *conn, info FlowInfo) error {
	f := &s.flows[i]
	spec := f.spec
	tx := transport.SenderConfig{MSS: s.mss, Size: spec.Size, InitialRTO: s.timeout(spec.Class), MinRTO: s.timeout(spec.Class)}
	if spec.Paced {
		tx.Spread = info.BaseRTT
	}
	if c != nil && c.law != nil {
		tx.Law, tx.Running, tx.FirstSeq = c.law, true, c.seq
		c.catchUp(s.now)
	} else {
		var err error
		if tx.Law, err = spec.Law.NewLaw(info); err != nil {
			return err
		}
	}
	var err error
	f.tx, err = transport.NewSender(tx, s.now)
	return err
}

// Retransmission timeouts; see Config.RTO.
const (
	lossyRTO    = units.Millisecond
	losslessRTO = 4096 * units.Nanosecond << 14
)

// timeout returns the lowest retransmission timeout of a class.
func (s *Sim) timeout(class uint8) units.Time {
	switch {
	case s.rto > 0:
		return s.rto
	case s.lossless>>class&1 == 1:
		return losslessRTO
	}
	return lossyRTO
}

// require makes data packets carry the fields that a law needs.
func (s *Sim) require(n Needs) {
	s.needs.INT = s.needs.INT || n.INT
	s.needs.MaxQD = s.needs.MaxQD || n.MaxQD
	s.needs.Delay = s.needs.Delay || n.Delay
	if n != (Needs{}) {
		for _, p := range s.partitions {
			p.wide = true
		}
	}
}

func (s *Sim) checkSpec(f *FlowSpec, start units.Time) error {
	switch {
	case f.Src < 0 || f.Src >= s.graph.Hosts || f.Dst < 0 || f.Dst >= s.graph.Hosts:
		return fmt.Errorf("flow from host %d to host %d: want hosts 0 to %d", f.Src, f.Dst, s.graph.Hosts-1)
	case f.Src == f.Dst:
		return fmt.Errorf("flow from host %s to itself", s.graph.Names[f.Src])
	case f.Size < 0:
		return fmt.Errorf("flow of %d B: want 0 (endless) or more", int64(f.Size))
	case f.Stop > 0 && f.Stop <= start:
		return fmt.Errorf("flow from %v to %v: want a stop later than the start, or 0 for none", start, f.Stop)
	case f.Class >= NumClasses:
		return fmt.Errorf("flow in class %d: want 0 to %d", f.Class, NumClasses-1)
	case f.Precedence >= NumPrecedences:
		return fmt.Errorf("flow with precedence %d: want 0 to %d", f.Precedence, NumPrecedences-1)
	case f.Group < 0 || f.Group >= len(s.partitions[0].groups):
		return fmt.Errorf("flow in group %d: want 0 to %d", f.Group, len(s.partitions[0].groups)-1)
	case f.Law == nil:
		return fmt.Errorf("flow without a law")
	case f.Deadline < 0 || !(f.DeadlineFactor >= 0) || f.DeadlineFactor > 1e6:
		return fmt.Errorf("flow with a deadline of %v or %v times its ideal time: want 0 (none) or more", f.Deadline, f.DeadlineFactor)
	}
	return s.checkConn(f)
}

// finish ends a flow that was acknowledged completely or stopped.
func (s *partition) finish(i int32) {
	f := &s.flows[i]
	r := &s.results[i-1]
	r.Stats = f.tx.Stats()
	if f.tx.Done() {
		r.FCT = s.now - s.started[i-1]
		s.stats.FlowsDone++
	}
	spec, law := f.spec, f.tx.Law()
	f.tx = nil
	s.running--
	if s.paccs != nil {
		s.unpair(i)
	}
	if spec.Conn > 0 {
		s.fail(s.nextMessage(f, law))
	}
	if s.driver != nil && spec.Tag != 0 {
		s.Sim.now = s.now
		s.driver.Done(s.Sim, spec)
	}
	if s.halting && !s.windows.parallel && s.Sim.running() == 0 {
		s.halted, s.stopped = true, true
	}
}

// stop ends an endless flow at its time.
func (s *partition) stop(i int32) {
	if s.flows[i].tx != nil {
		s.finish(i)
	}
}

func (s *Sim) flowInfo(f *flow) FlowInfo {
	nic := s.ports[s.nicOf(f)].rate
	payload := units.Rate(float64(nic) * float64(s.mss) / float64(s.mss+s.header))
	rtt, oneWay := s.baseRTT(f)
	w := f.spec.Weight
	if w == 0 {
		w = 1
	}
	return FlowInfo{
		Rate: payload, BaseRTT: rtt, OneWay: oneWay, MSS: s.mss, Hops: int(f.hops), Size: f.spec.Size,
		Weight: w, Rand: s.chances[f.src].laws,
	}
}

// conn is a connection whose messages are sent one after another; see FlowSpec.Conn. The Sim owns it.
type conn struct {
	src, dst int
	hash     uint64
	busy     bool
	law      law.Law // nil before the first message
	seq      uint64  // bytes of its ended messages
	waiting  []int32 // flows
}

// queueMessage queues a message behind a busy connection and returns true. Otherwise it marks the connection as
// busy.
func (s *partition) queueMessage(i int32) (waits bool) {
	c := s.conns[s.flows[i].spec.Conn]
	switch {
	case c == nil:
		return false
	case c.busy:
		c.waiting = append(c.waiting, i)
		s.waiting++
		return true
	}
	c.busy = true
	return false
}

// checkConn returns an error if a message belongs to a connection between other hosts or has no size.
func (s *Sim) checkConn(f *FlowSpec) error {
	if f.Conn > 0 && (f.Size == 0 || f.Stop > 0) {
		return fmt.Errorf("flow on connection %d: want a size and no stop", f.Conn)
	}
	if c := s.conns[f.Conn]; c != nil && (c.src != f.Src || c.dst != f.Dst) {
		return fmt.Errorf("flow from %s to %s on connection %d, which joins %s and %s",
			s.graph.Names[f.Src], s.graph.Names[f.Dst], f.Conn, s.graph.Names[c.src], s.graph.Names[c.dst])
	}
	return nil
}

// hashOf returns the number that replaces the hash of flow i's five-tuple. All messages of a connection have the
// same. The first one makes the connection.
func (s *Sim) hashOf(spec *FlowSpec, i int32) uint64 {
	if spec.Conn == 0 {
		return s.flowHash(spec, i)
	}
	c := s.conns[spec.Conn]
	if c == nil {
		c = &conn{src: spec.Src, dst: spec.Dst, hash: s.flowHash(spec, i)}
		if s.conns == nil {
			s.conns = map[int]*conn{}
		}
		s.conns[spec.Conn] = c
	}
	return c.hash
}

// nextMessage keeps the law of an ended message and starts the next message on the same path.
func (s *partition) nextMessage(f *flow, law law.Law) error {
	c := s.conns[f.spec.Conn]
	c.law, c.busy = law, false
	c.seq += uint64(f.spec.Size)
	if len(c.waiting) == 0 {
		return nil
	}
	i := c.waiting[0]
	c.waiting = c.waiting[1:]
	s.waiting--
	c.busy = true
	next := &s.flows[i]
	next.route, next.back, next.hops = f.route, f.back, f.hops
	return s.begin(i)
}

// catchUp fires the timers of a connection's law that were due while it had nothing to send, because a
// NIC's timers run on.
func (c *conn) catchUp(now units.Time) {
	for {
		at := c.law.Timer()
		if at > now {
			return
		}
		c.law.OnEvent(law.Tick, at)
		if c.law.Timer() <= at {
			return // the law wants no later timer
		}
	}
}
