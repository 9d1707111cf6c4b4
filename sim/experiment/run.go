package experiment

import (
	"context"
	"fmt"
	"math"

	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/sim/workload"
	"github.com/headgate/headgate/units"
)

// run is the state of one run in progress.
type run struct {
	plan  *Plan
	sim   *sim.Sim
	chain *workload.Chain
	out   *Outcome
	last  []units.Bytes // per group, at the last sample
	ports []int         // ports of the recorded queues

	portAt   []int            // the ports of Plan.ports
	samplers []func() float64 // samplers of the gauges
	readings []reading        // readings of the measures
	links    *links           // nil if the plan does not ask for links
}

// slicesPerRun is the number of parts in which a run is done. Between two parts it can be stopped and reports its
// progress.
const slicesPerRun = 400

// Run runs the plan with a seed. It calls progress, which may be nil, with the part done, 0 to 1. When ctx ends
// the run stops early, and the outcome is marked. An error is a fault of the plan, or of a simulator whose
// accounts are wrong.
func (p *Plan) Run(ctx context.Context, name string, seed uint64, progress func(float64)) (*Outcome, error) {
	r := &run{plan: p, chain: workload.NewChain(), out: &Outcome{Experiment: name, Variant: p.Variant, Seed: seed}}
	if err := r.prepare(seed); err != nil {
		return nil, err
	}
	step := max(p.Until/slicesPerRun, 1)
	for r.sim.Now() < p.Until {
		if ctx.Err() != nil {
			r.out.Interrupted = true
			break
		}
		until := min(r.sim.Now()+step, p.Until)
		advance := r.sim.Run
		if p.ToEnd {
			advance = r.sim.RunFlows
		}
		if err := advance(until); err != nil {
			return nil, err
		}
		if progress != nil {
			progress(float64(r.sim.Now()) / float64(p.Until))
		}
		if p.ToEnd && r.sim.Running() == 0 && r.sim.Waiting() == 0 {
			break
		}
	}
	if err := r.chain.Err(); err != nil {
		return nil, err
	}
	if err := r.sim.Check(); err != nil {
		return nil, fmt.Errorf("packet conservation: %w", err)
	}
	r.finish()
	return r.out, nil
}

func (r *run) prepare(seed uint64) error {
	p := r.plan
	c := p.Config
	c.Seed, c.Groups, c.Driver = seed, len(p.Groups), r.chain
	sim, err := sim.New(c)
	if err != nil {
		return err
	}
	r.sim = sim
	if err := r.addFlows(seed); err != nil {
		return err
	}
	for _, ch := range p.changes {
		sim.At(ch.at, ch.do)
	}
	for _, q := range p.Queues {
		port, err := sim.PortOf(q.from, q.to)
		if err != nil {
			return err
		}
		r.ports = append(r.ports, port)
		r.out.Series.Queues = append(r.out.Series.Queues, q.name)
	}
	r.out.Series.Groups = p.Groups
	r.out.Series.Goodput = make([][]float64, len(p.Groups))
	r.out.Series.Queue = make([][]float64, len(p.Queues))
	r.last = make([]units.Bytes, len(p.Groups))
	if err := r.preparePorts(); err != nil {
		return err
	}
	if err := r.prepareMeasures(); err != nil {
		return err
	}
	if p.Interval > 0 {
		sim.At(p.Interval, r.sample)
	}
	if p.deadlock > 0 {
		return sim.WatchDeadlock(max(p.deadlock/4, 1), p.deadlock)
	}
	return nil
}

// addFlows makes the flows of all sources.
func (r *run) addFlows(seed uint64) error {
	tags := map[int][]int{} // tags of stages, by group
	conns := map[connection]int{}
	for i := range r.plan.sources {
		s := &r.plan.sources[i]
		first := r.chain.Tags()
		flows, err := s.make(sim.Stream(seed, fmt.Sprintf("flows %d", i)), r.chain)
		if err != nil {
			return fmt.Errorf("flows[%d]: %w", i, err)
		}
		r.chain.Jobs(flows)
		if s.persistent {
			connect(flows, i, conns)
			r.chain.Held(first, func(flows []sim.FlowSpec) { connect(flows, i, conns) })
		}
		var after []int
		for _, g := range s.after {
			after = append(after, tags[g]...)
		}
		if s.awaited || len(after) > 0 {
			flows = r.chain.Stage(flows, first, after, s.pause)
			for t := first + 1; t <= r.chain.Tags(); t++ {
				tags[s.group] = append(tags[s.group], t)
			}
		}
		if err := r.sim.AddFlows(flows); err != nil {
			return fmt.Errorf("flows[%d]: %w", i, err)
		}
	}
	return nil
}

// connection identifies the connection that several flows share.
type connection struct {
	source, src, dst, group int
	class                   uint8
	law                     sim.LawMaker
}

// connect puts the flows of a source on connections.
func connect(flows []sim.FlowSpec, source int, conns map[connection]int) {
	for i := range flows {
		f := &flows[i]
		c := connection{source, f.Src, f.Dst, f.Group, f.Class, f.Law}
		if conns[c] == 0 {
			conns[c] = len(conns) + 1
		}
		f.Conn = conns[c]
	}
}

// at calls fn at a time of the run.
func (r *run) at(t time, fn func()) {
	r.sim.At(t, func(*sim.Sim) error { fn(); return nil })
}

// preparePorts finds the ports that the plan names and readies the gauges.
func (r *run) preparePorts() error {
	for _, ref := range r.plan.ports {
		port, err := r.sim.PortOf(ref.from, ref.to)
		if err != nil {
			return err
		}
		r.portAt = append(r.portAt, port)
	}
	for i := range r.plan.Gauges {
		g := &r.plan.Gauges[i]
		s, err := r.sampler(g)
		if err != nil {
			return err
		}
		r.samplers = append(r.samplers, s)
		r.out.Series.Gauges = append(r.out.Series.Gauges, g.label())
	}
	r.out.Series.Gauge = make([][]float64, len(r.plan.Gauges))
	return nil
}

// sample records an interval and schedules the next sample.
func (r *run) sample(s *sim.Sim) error {
	se := &r.out.Series
	se.Time = append(se.Time, s.Now().Micros())
	for g := range r.plan.Groups {
		n := s.Delivered(g)
		gbps := float64(n-r.last[g]) * 8 / r.plan.Interval.Seconds() / 1e9
		se.Goodput[g] = append(se.Goodput[g], gbps)
		r.last[g] = n
	}
	for i, port := range r.ports {
		se.Queue[i] = append(se.Queue[i], float64(s.Queued(port, r.plan.Queues[i].class))/1e3)
	}
	for i, sample := range r.samplers {
		se.Gauge[i] = append(se.Gauge[i], sample())
	}
	if next := s.Now() + r.plan.Interval; next <= r.plan.Until {
		s.At(next, r.sample)
	}
	return nil
}

func (r *run) finish() {
	o, s := r.out, r.sim
	o.Ended, o.Stats, o.PauseTime = int64(s.Now()), s.Stats(), int64(s.PauseTime())
	o.work, o.packets = s.Work(), s.PeakPackets()
	if d := s.FirstDeadlock(); d != nil {
		for _, port := range d.Ports {
			st := s.Port(port)
			o.Deadlock = append(o.Deadlock, st.Node+"→"+st.Peer)
		}
	}
	o.Groups = make([]Group, len(r.plan.Groups))
	for i, name := range r.plan.Groups {
		g := &o.Groups[i]
		fct := r.times(i, fctOf)
		*g = Group{Name: name, Done: len(fct), Bytes: int64(s.Delivered(i)), FCT: spread(fct), Slowdown: spread(r.times(i, slowdownOf))}
		if r.links != nil {
			g.Victims = r.victims(i)
		}
		if len(fct) > 1 {
			g.Quantiles = percentiles(func(q float64) float64 { return quantile(fct, q) })
		}
	}
	for _, res := range s.Results() {
		o.Groups[res.Spec.Group].Flows++
	}
	if r.plan.perLink {
		o.Links = r.linkRecords()
	}
	if r.plan.perFlow {
		o.Flows = r.flowRecords(r.plan.Graph)
	}
	o.Measures = r.measure()
	for i, me := range r.plan.Measures {
		if o.Interrupted && me.to > s.Now() {
			o.Measures[i].Value = math.NaN()
		}
	}
}
