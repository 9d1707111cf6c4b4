package experiment

import (
	"context"
	"fmt"
	"math"

	"github.com/headgate/headgate/fabric"
	"github.com/headgate/headgate/fabric/workload"
	"github.com/headgate/headgate/units"
)

// run is one run under way.
type run struct {
	plan  *Plan
	sim   *fabric.Sim
	chain *workload.Chain
	out   *Outcome
	last  []units.Bytes // per group, at the last sample
	span  []units.Bytes // per measure of goodput: delivered within its times
	ports []int         // of the recorded queues
}

// slices is in how many parts a run is done, so that it can be stopped and watched.
const slicesPerRun = 400

// Run runs the plan with a seed. progress is called with the part done, 0 to 1; it may be
// nil. When ctx ends the run stops early and the outcome says so. An error is one of the
// plan, or of a simulator that lost count of its packets.
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
	sim, err := fabric.New(c)
	if err != nil {
		return err
	}
	r.sim = sim
	for i, s := range p.sources {
		flows, err := s.make(fabric.Stream(seed, fmt.Sprintf("flows %d", i)), r.chain)
		if err != nil {
			return fmt.Errorf("flows[%d]: %w", i, err)
		}
		if err := sim.AddFlows(flows); err != nil {
			return fmt.Errorf("flows[%d]: %w", i, err)
		}
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
	r.span = make([]units.Bytes, len(p.Measures))
	for i, me := range p.Measures {
		if me.what == "goodput" {
			sim.At(me.from, func(s *fabric.Sim) error { r.span[i] -= s.Delivered(me.group); return nil })
			sim.At(me.to, func(s *fabric.Sim) error { r.span[i] += s.Delivered(me.group); return nil })
		}
	}
	if p.Interval > 0 {
		sim.At(p.Interval, r.sample)
	}
	if p.deadlock > 0 {
		return sim.WatchDeadlock(max(p.deadlock/4, 1), p.deadlock)
	}
	return nil
}

// sample records an interval and asks for the next.
func (r *run) sample(s *fabric.Sim) error {
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
	if next := s.Now() + r.plan.Interval; next <= r.plan.Until {
		s.At(next, r.sample)
	}
	return nil
}

func (r *run) finish() {
	o, s := r.out, r.sim
	o.Ended, o.Stats, o.PauseTime, o.PeakPackets = int64(s.Now()), s.Stats(), int64(s.PauseTime()), s.PeakPackets()
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
		if len(fct) > 1 {
			for q := 0; q <= 100; q++ {
				g.Quantiles = append(g.Quantiles, quantile(fct, float64(q)/100))
			}
		}
	}
	for _, res := range s.Results() {
		o.Groups[res.Spec.Group].Flows++
	}
	o.Measures = r.measure()
	for i, me := range r.plan.Measures {
		if o.Interrupted && me.to > s.Now() {
			o.Measures[i].Value = math.NaN()
		}
	}
}
