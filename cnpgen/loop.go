package cnpgen

import (
	"errors"
	"fmt"

	"github.com/headgate/headgate/units"
)

// Flow identifies what a switch counts: the packets between a pair of addresses at an egress port.
type Flow struct {
	FlowKey
	Port uint32
}

// Counters are the counters of a flow in a switch's flow table, since its entry was made.
type Counters struct {
	Flow
	Bytes     uint64
	Congested uint64 // packets that met a queue above Q_th
	// Partial marks a flow that has only one of its two entries; its counts mean nothing.
	Partial bool
}

// Switch is the part of a data plane that a loop needs.
type Switch interface {
	// Poll asks for the length of a port's watched queue. The switch passes the answer to
	// Loop.Polled, during the call or later.
	Poll(port uint32) error
	// Counters appends the counters of every flow of every port, read in one request.
	Counters(dst []Counters) ([]Counters, error)
	// Write adds flows to the table and removes others. It returns the flows of add that are
	// not in the table afterwards. It is no error if a flow to be removed is not there. When
	// Write returns ErrBusy it has done nothing, and the loop calls it again.
	Write(add, remove []Flow) (refused []Flow, err error)
	// CNP sends a congestion notification to the flow's source for one of its queue pairs. qp is 0 when the queue
	// pair is not known.
	CNP(f Flow, qp uint32) error
}

// ErrBusy is the error of Switch.Write when it cannot write just now.
var ErrBusy = errors.New("somebody else is writing to the switch")

// PortConfig is a port whose queue is watched.
type PortConfig struct {
	Port   uint32
	Params Params // in the switch's own time; Interval is the same on all ports
}

// LoopConfig configures a loop.
type LoopConfig struct {
	// Ports are the watched ports, at least one, each once.
	Ports []PortConfig
	// MaxFlows bounds the learned flows, and also the learned queue pairs. It is at least 1 and at most the size
	// of the switch's flow table.
	MaxFlows int
	// QueuePairs is the switch's table of queue pairs. It is nil for a switch without one;
	// notifications then carry queue pair 0.
	QueuePairs QueuePairTable
	// Phases is the number of groups in which the ports tick, one after the other within each
	// interval; 0 means 1, and it is at most the number of ports. See Phases.
	Phases int
	// Counted, if not nil, is called with the bytes that each pair of addresses sent since the last reading of the
	// counters. There are up to Phases readings in an interval. Counted must not keep the map.
	Counted func(sent map[FlowKey]uint64)
}

// phaseGap is the least time between two groups of ports: each reads all counters.
const phaseGap = 5 * units.Millisecond

// Phases returns the number of groups in which the ports of a switch should tick, at most most. All ports of one
// group answer the same burst or all miss it. More groups are closer to hardware, where the ports' clocks are not
// in step.
func Phases(interval units.Time, ports, most int) int {
	return max(1, min(ports, most, int(interval/phaseGap)))
}

type port struct {
	*Port
	number uint32

	began   units.Time   // start of its present tick
	flows   []FlowCount  // traffic since the last computed tick; valid if counted
	states  []*flowState // the states of flows, in the same order
	queue   units.Bytes  // queue length at time at; valid if polled
	at      units.Time
	counted bool // the counters of this tick have been read
	polled  bool // the queue length of this tick has arrived
	done    bool // this tick has been computed
}

type group struct {
	ports []*port
	due   units.Time // when its next tick is due
}

// Loop is PACC on one switch. Once a period it polls the queues of each group of ports, reads the counters of all
// flows and computes their differences. It passes these to the Tick of each Port, and sends the CNPs that the Port
// grants. Its owner calls its methods from one goroutine at a time, with times that never decrease. Memory is
// bounded by MaxFlows.
type Loop struct {
	sw     Switch
	period units.Time
	ports  []*port
	by     map[uint32]*port
	table  learned
	pairs  queuePairs

	groups  []*group // the first one begins a period
	tick    uint64   // periods begun
	reading uint64   // number of the last reading of counters
	begun   bool
	ticking []*port // scratch of Run
	buf     []Counters
	counted func(map[FlowKey]uint64) // LoopConfig.Counted
	sent    map[FlowKey]uint64       // scratch
	stats   LoopStats
}

// NewLoop returns a loop whose first tick is due at once.
func NewLoop(c LoopConfig, sw Switch) (*Loop, error) {
	if len(c.Ports) == 0 {
		return nil, errors.New("cnpgen: no port is watched")
	}
	if c.MaxFlows < 1 {
		return nil, fmt.Errorf("cnpgen: max flows is %d, want 1 or more", c.MaxFlows)
	}
	l := &Loop{sw: sw, period: c.Ports[0].Params.Interval, by: map[uint32]*port{}, counted: c.Counted, sent: map[FlowKey]uint64{}}
	for _, pc := range c.Ports {
		if pc.Params.Interval != l.period {
			return nil, fmt.Errorf("cnpgen: port %d has the interval %v, port %d %v: want one for all", pc.Port, pc.Params.Interval, c.Ports[0].Port, l.period)
		}
		if l.by[pc.Port] != nil {
			return nil, fmt.Errorf("cnpgen: port %d is given twice", pc.Port)
		}
		gen, err := NewPort(pc.Params)
		if err != nil {
			return nil, fmt.Errorf("cnpgen: port %d: %w", pc.Port, err)
		}
		p := &port{Port: gen, number: pc.Port, done: true}
		l.ports = append(l.ports, p)
		l.by[pc.Port] = p
	}
	phases := max(1, min(c.Phases, len(l.ports)))
	for i := range phases {
		l.groups = append(l.groups, &group{due: units.Time(i) * l.period / units.Time(phases)})
	}
	for i, p := range l.ports {
		g := l.groups[i%phases]
		g.ports = append(g.ports, p)
	}
	l.table = newLearned(c.MaxFlows, len(l.ports), l.watches)
	l.pairs = newQueuePairs(c.QueuePairs, c.MaxFlows)
	return l, nil
}

func (l *Loop) watches(port uint32) bool { return l.by[port] != nil }

// Pending reports whether flows or queue pairs wait to be written.
func (l *Loop) Pending() bool {
	return len(l.table.add)+len(l.table.remove)+len(l.pairs.add)+len(l.pairs.remove) > 0
}

// Next returns when the next tick or CNP is due.
func (l *Loop) Next() units.Time {
	if !l.begun {
		return 0
	}
	next := units.MaxTime
	for _, g := range l.groups {
		next = min(next, g.due)
	}
	for _, p := range l.ports {
		next = min(next, p.Next())
	}
	return next
}

// Run does what is due at now: it sends CNPs, starts a tick, and writes entries for learned flows
// and queue pairs. An error says what has failed; the loop goes on regardless.
func (l *Loop) Run(now units.Time) error {
	err := errors.Join(l.send(now), l.table.write(l.sw, &l.stats), l.pairs.write())
	if !l.begun {
		l.begun = true
		for _, g := range l.groups {
			g.due += now
		}
	}
	l.ticking = l.ticking[:0]
	for i, g := range l.groups {
		if now < g.due {
			continue
		}
		l.punctuality(g, now)
		if i == 0 {
			l.tick++
			l.stats.Ticks++
		}
		l.ticking = append(l.ticking, g.ports...)
	}
	if len(l.ticking) > 0 {
		err = errors.Join(err, l.begin(now))
	}
	return errors.Join(err, l.send(now))
}

// begin starts a tick of the ports in ticking. The polls travel while it reads the counters.
func (l *Loop) begin(now units.Time) error {
	var errs error
	for _, p := range l.ticking {
		if !p.done {
			l.stats.Unanswered++
		}
		p.began, p.counted, p.polled, p.done = now, false, false, false
		p.flows, p.states = p.flows[:0], p.states[:0]
	}
	for _, p := range l.ticking {
		if err := l.sw.Poll(p.number); err != nil {
			errs = errors.Join(errs, fmt.Errorf("poll of port %d: %w", p.number, err))
		}
	}
	var err error
	if l.buf, err = l.sw.Counters(l.buf[:0]); err != nil {
		l.stats.ReadErrors++
		return errors.Join(errs, fmt.Errorf("counters: %w", err))
	}
	l.reading++
	l.table.read(l.buf, l.tick, l.reading)
	if l.counted != nil {
		l.counted(l.table.sent(l.sent))
	}
	for _, s := range l.table.before {
		p := l.by[s.flow.Port]
		if p.counted || p.done || p.began != now {
			continue // the port is of another group
		}
		f := s.last
		s.listed = s.now
		f.Key, f.Bytes, f.Congested = s.flow.FlowKey, s.now.bytes-s.base.bytes, s.now.congested-s.base.congested
		p.flows, p.states = append(p.flows, f), append(p.states, s)
	}
	for _, p := range l.ticking {
		p.counted = true
		l.compute(p)
	}
	return errs
}

// punctuality measures how late the tick of a group is and schedules its next one. A late tick does
// not shift the later ones. The Ports compute with the time that has really passed.
func (l *Loop) punctuality(g *group, now units.Time) {
	late := now - g.due
	l.stats.Lateness += late
	l.stats.WorstLateness = max(l.stats.WorstLateness, late)
	if late > l.period/4 {
		l.stats.Late++
	}
	missed := late / l.period
	l.stats.Missed += uint64(missed)
	g.due += (missed + 1) * l.period
}

// Polled receives the length that the watched queue of a port had at now. The poll was sent at
// asked. Polled ignores the answer to a poll from before the present tick, and all answers of a tick
// but the first.
func (l *Loop) Polled(now, asked units.Time, number uint32, queue units.Bytes) {
	p := l.by[number]
	if p == nil || !l.begun || asked < p.began || p.polled {
		return
	}
	p.at, p.queue, p.polled = now, queue, true
	l.compute(p)
}

// compute ticks the Port of one port when both counters and queue length are there, and sets the base of its flows'
// counters. If the poll is not answered, the next tick counts the traffic of this one too.
func (l *Loop) compute(p *port) {
	if !p.counted || !p.polled || p.done {
		return
	}
	p.done = true
	p.Tick(p.at, p.queue, p.flows)
	for i, s := range p.states {
		s.base, s.last = s.listed, p.flows[i]
	}
}

func (l *Loop) send(now units.Time) error {
	var errs error
	for _, p := range l.ports {
		for {
			key, ok := p.Pop(now)
			if !ok {
				break
			}
			for _, qp := range l.pairs.notified(key) {
				if err := l.sw.CNP(Flow{key, p.number}, qp); err != nil {
					l.stats.CNPErrors++
					errs = errors.Join(errs, fmt.Errorf("CNP to %v: %w", key.Src, err))
					continue
				}
				l.stats.CNPs++
			}
		}
	}
	return errs
}

// Learned reports flows that are missing in the switch's table. Run writes them.
func (l *Loop) Learned(flows ...Flow) {
	for _, f := range flows {
		l.table.learn(f, l.tick, &l.stats)
	}
}

// Aged reports flows that no packet has hit for the ageing time. Run removes them.
func (l *Loop) Aged(flows ...Flow) {
	for _, f := range flows {
		if l.table.forget(f) {
			l.stats.Aged++
		}
	}
}

// LearnedQueuePairs reports queue pairs that are missing in the switch's table. Run writes them.
func (l *Loop) LearnedQueuePairs(list ...QueuePair) {
	for _, p := range list {
		l.pairs.learn(p)
	}
}

// AgedQueuePairs reports queue pairs that no acknowledgement has named for the ageing time. Run
// removes them.
func (l *Loop) AgedQueuePairs(list ...QueuePair) {
	for _, p := range list {
		l.pairs.forget(p)
	}
}

// LoopStats are a loop's counters since its start.
type LoopStats struct {
	Ticks         uint64     // periods begun
	Late          uint64     // ticks of a group of ports that were more than a quarter of a period late
	Missed        uint64     // periods without a tick of a group
	Lateness      units.Time // sum over all ticks
	WorstLateness units.Time
	Unanswered    uint64 // ports whose poll did not come back within a period
	ReadErrors    uint64 // ticks without counters

	CNPs      uint64 // frames sent, one to each known queue pair
	CNPErrors uint64 // frames that could not be sent

	Flows   int    // flows in the table now
	Learned uint64 // flows added to the table
	Aged    uint64 // flows removed because they were idle
	Evicted uint64 // flows removed to make room, the one that has sent nothing for longest first
	Refused uint64 // flows for which there was no room, or which the switch refused

	QueuePairs int // queue pairs of sources that are known now
}

// PortStats are the counters of a watched port.
type PortStats struct {
	Port  uint32
	Queue units.Bytes // length of the queue at the last poll
	Stats
}

// Stats returns the counters.
func (l *Loop) Stats() LoopStats {
	st := l.stats
	st.QueuePairs = len(l.pairs.known)
	return st
}

// Ports returns the watched ports' own counters, in the order of the configuration.
func (l *Loop) Ports() []PortStats {
	list := make([]PortStats, len(l.ports))
	for i, p := range l.ports {
		list[i] = PortStats{p.number, p.queue, p.Stats()}
	}
	return list
}
