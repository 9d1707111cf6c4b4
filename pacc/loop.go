package pacc

import (
	"errors"
	"fmt"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/units"
)

// Flow is what PACC counts by: a pair of addresses at an egress port.
type Flow struct {
	cnpgen.FlowKey
	Port uint32
}

// Count is what the flow table says of a flow, both counted since its entry was made.
type Count struct {
	Flow
	Bytes     uint64
	Congested uint64 // packets that met a queue above Q_th
	// Partial marks a flow that has only one of its two entries; its counts mean nothing.
	Partial bool
}

// Switch is the data plane as a loop needs it.
type Switch interface {
	// Poll asks how much the watched queue of a port holds. The answer is given to
	// Loop.Polled, during the call or later.
	Poll(port uint32, tick uint64) error
	// Counters appends the counters of every flow of every port, read in one request.
	Counters(dst []Count) ([]Count, error)
	// Write puts flows into the table and takes others out. It returns those of add that
	// are not in the table now; flows to be removed that are not there are no error. With
	// ErrBusy it has done nothing, and is asked again.
	Write(add, remove []Flow) (refused []Flow, err error)
	// CNP sends a congestion notification to the flow's source.
	CNP(f Flow) error
}

// ErrBusy is what Switch.Write returns when it cannot write just now.
var ErrBusy = errors.New("somebody else is writing to the switch")

// PortConfig is a port whose queue is watched.
type PortConfig struct {
	Port   uint32
	Params cnpgen.Params // in the switch's own time; Interval is the same on all ports
}

// Config configures a loop.
type Config struct {
	// Ports are the watched ports, at least one, each once.
	Ports []PortConfig
	// MaxFlows bounds the flow table of the switch, 1 to its size.
	MaxFlows int
}

// port is one watched port.
type port struct {
	number uint32
	gen    *cnpgen.Port
	pacer  *cnpgen.Pacer

	flows   []cnpgen.FlowCount // of this tick, once counted
	queue   units.Bytes        // at time at, once polled
	at      units.Time
	counted bool // the counters of this tick are here
	polled  bool // and the queue
	done    bool // computed, or given up
}

// Loop is PACC on one switch. Its owner calls its methods from one goroutine at a time;
// times never decrease. Memory is bounded by MaxFlows.
type Loop struct {
	sw     Switch
	period units.Time
	ports  []*port
	by     map[uint32]*port
	table  table

	tick  uint64
	due   units.Time // of the next tick
	begun bool
	buf   []Count
	stats Stats
}

// New returns a loop whose first tick is due at once.
func New(c Config, sw Switch) (*Loop, error) {
	if len(c.Ports) == 0 {
		return nil, errors.New("pacc: no port is watched")
	}
	if c.MaxFlows < 1 {
		return nil, fmt.Errorf("pacc: max flows is %d, want 1 or more", c.MaxFlows)
	}
	l := &Loop{sw: sw, period: c.Ports[0].Params.Interval, by: map[uint32]*port{}}
	for _, pc := range c.Ports {
		if pc.Params.Interval != l.period {
			return nil, fmt.Errorf("pacc: port %d has the interval %v, port %d %v: want one for all", pc.Port, pc.Params.Interval, c.Ports[0].Port, l.period)
		}
		if l.by[pc.Port] != nil {
			return nil, fmt.Errorf("pacc: port %d is given twice", pc.Port)
		}
		gen, err := cnpgen.NewPort(pc.Params)
		if err != nil {
			return nil, fmt.Errorf("pacc: port %d: %w", pc.Port, err)
		}
		pacer, err := cnpgen.NewPacer(pc.Params)
		if err != nil {
			return nil, fmt.Errorf("pacc: port %d: %w", pc.Port, err)
		}
		p := &port{number: pc.Port, gen: gen, pacer: pacer, done: true}
		l.ports = append(l.ports, p)
		l.by[pc.Port] = p
	}
	l.table = newTable(c.MaxFlows, l.watches)
	return l, nil
}

func (l *Loop) watches(port uint32) bool { return l.by[port] != nil }

// Pending reports whether flows wait to be written.
func (l *Loop) Pending() bool { return len(l.table.add)+len(l.table.remove) > 0 }

// Next returns when something is to be done: a tick or a CNP.
func (l *Loop) Next() units.Time {
	if !l.begun {
		return 0
	}
	next := l.due
	for _, p := range l.ports {
		next = min(next, p.pacer.Next())
	}
	return next
}

// Run does what is due at now: CNPs, a tick, and entries for flows that were learned. What
// failed is in the error, and the loop goes on.
func (l *Loop) Run(now units.Time) error {
	err := errors.Join(l.send(now), l.table.write(l.sw, &l.stats))
	if !l.begun || now >= l.due {
		err = errors.Join(err, l.begin(now))
	}
	return errors.Join(err, l.send(now))
}

// begin starts a tick: polls first, so that they are under way while the counters are read.
func (l *Loop) begin(now units.Time) error {
	l.punctuality(now)
	l.tick++
	var errs error
	for _, p := range l.ports {
		if !p.done {
			l.stats.Unanswered++
		}
		p.counted, p.polled, p.done = false, false, false
		p.flows = p.flows[:0]
	}
	for _, p := range l.ports {
		if err := l.sw.Poll(p.number, l.tick); err != nil {
			errs = errors.Join(errs, fmt.Errorf("poll of port %d: %w", p.number, err))
		}
	}
	var err error
	if l.buf, err = l.sw.Counters(l.buf[:0]); err != nil {
		l.stats.ReadErrors++
		return errors.Join(errs, fmt.Errorf("counters: %w", err))
	}
	l.table.read(l.buf, l.tick)
	for _, c := range l.buf {
		if p := l.by[c.Port]; p != nil && !c.Partial {
			p.flows = append(p.flows, cnpgen.FlowCount{Key: c.FlowKey, Bytes: c.Bytes, Congested: c.Congested})
		}
	}
	for _, p := range l.ports {
		p.counted = true
		l.compute(p)
	}
	return errs
}

// punctuality plans the next tick and measures how late this one is. Ticks keep their grid;
// cnpgen computes with the time that has really passed.
func (l *Loop) punctuality(now units.Time) {
	l.stats.Ticks++
	if !l.begun {
		l.begun, l.due = true, now+l.period
		return
	}
	late := now - l.due
	l.stats.Lateness += late
	l.stats.WorstLateness = max(l.stats.WorstLateness, late)
	if late > l.period/4 {
		l.stats.Late++
	}
	missed := late / l.period
	l.stats.Missed += uint64(missed)
	l.due += (missed + 1) * l.period
}

// Polled takes the answer to a poll: what the watched queue of a port held at now. Answers
// to a tick that is over, and to nobody's question, are counted and ignored.
func (l *Loop) Polled(now units.Time, number uint32, tick uint64, queue units.Bytes) {
	p := l.by[number]
	if p == nil || tick != l.tick || p.polled {
		l.stats.Stale++
		return
	}
	p.at, p.queue, p.polled = now, queue, true
	l.compute(p)
}

// compute is the tick of one port, once all that it needs is here.
func (l *Loop) compute(p *port) {
	if p.counted && p.polled && !p.done {
		p.done = true
		p.pacer.Add(p.at, p.gen.Tick(p.at, p.queue, p.flows))
	}
}

// send sends the CNPs that are due.
func (l *Loop) send(now units.Time) error {
	var errs error
	for _, p := range l.ports {
		for {
			key, ok := p.pacer.Pop(now)
			if !ok {
				break
			}
			if err := l.sw.CNP(Flow{key, p.number}); err != nil {
				l.stats.CNPErrors++
				errs = errors.Join(errs, fmt.Errorf("CNP to %v: %w", key.Src, err))
				continue
			}
			l.stats.CNPs++
		}
	}
	return errs
}

// Learned takes flows that the table lacks; Run writes them.
func (l *Loop) Learned(flows ...Flow) {
	for _, f := range flows {
		l.table.learn(f, l.tick, &l.stats)
	}
}

// Aged takes flows that no packet has hit for the ageing time; Run takes them out.
func (l *Loop) Aged(flows ...Flow) {
	for _, f := range flows {
		if l.table.forget(f) {
			l.stats.Aged++
		}
	}
}
