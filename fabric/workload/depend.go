package workload

import (
	"fmt"
	"math/rand/v2"

	"github.com/headgate/headgate/fabric"
	"github.com/headgate/headgate/units"
)

// Chain starts flows when others have ended. It implements fabric.Driver for one run and
// is owned by it.
type Chain struct {
	stages []stage // by tag; tag 0 stands for none
	err    error
}

// stage is a set of flows that start together once all stages that it waits for have ended.
type stage struct {
	left  int // flows that have not ended
	waits int // stages that have not ended
	flows []fabric.FlowSpec
	then  []int // stages that wait for this one
}

// NewChain returns a driver without stages.
func NewChain() *Chain { return &Chain{stages: make([]stage, 1)} }

// Done implements fabric.Driver.
func (c *Chain) Done(s *fabric.Sim, f *fabric.FlowSpec) {
	if f.Tag == 0 {
		return
	}
	done := &c.stages[f.Tag]
	if done.left--; done.left > 0 {
		return
	}
	for _, t := range done.then {
		next := &c.stages[t]
		if next.waits--; next.waits > 0 {
			continue
		}
		for i := range next.flows {
			if err := s.Start(&next.flows[i]); err != nil && c.err == nil {
				c.err = err
			}
		}
	}
}

// Left returns the number of stages that have not ended.
func (c *Chain) Left() int {
	n := 0
	for i := range c.stages {
		if c.stages[i].left > 0 {
			n++
		}
	}
	return n
}

// Err returns the first error of a flow that could not be started.
func (c *Chain) Err() error { return c.err }

// stage gives flows a tag of their own, which it returns; they start when the stages of
// after have ended, or by whoever makes them if there are none.
func (c *Chain) stage(flows []fabric.FlowSpec, after []int) int {
	tag := len(c.stages)
	for i := range flows {
		flows[i].Tag = tag
	}
	st := stage{left: len(flows), waits: len(after)}
	if len(after) > 0 {
		st.flows = flows
	}
	c.stages = append(c.stages, st)
	for _, a := range after {
		c.stages[a].then = append(c.stages[a].then, tag)
	}
	return tag
}

// Ring adds ring all-reduces over hosts, one after another: each has 2(n − 1) steps, in
// which every host sends 1/n of the data to the next host, and a step begins when the one
// before has ended for all (Patarasuk and Yuan, JPDC 2009). It returns the first step's
// flows.
func (c *Chain) Ring(p *Pattern, rng *rand.Rand, hosts []int, data units.Bytes, rounds int, start units.Time) ([]fabric.FlowSpec, error) {
	n := len(hosts)
	if n < 2 || rounds < 1 || data < units.Bytes(n) {
		return nil, fmt.Errorf("ring of %d hosts, %d rounds, %v: want at least 2 hosts, 1 round and a byte per host", n, rounds, data)
	}
	chunk := (data + units.Bytes(n) - 1) / units.Bytes(n)
	steps := make([][]fabric.FlowSpec, rounds*2*(n-1))
	for i := range steps {
		for j, h := range hosts {
			steps[i] = append(steps[i], p.flow(rng, h, hosts[(j+1)%n], chunk, start))
		}
	}
	var before []int
	for i := range steps {
		before = []int{c.stage(steps[i], before)}
	}
	return steps[0], nil
}

// Coflow is a set of flows that counts as done when the last of them is.
type Coflow struct {
	First, Count int // its flows' places in the list
	Start        units.Time
}

// Coflows draws shuffles that arrive as a Poisson process: each has so many mappers that
// send to so many reducers, drawn without repetition, the same size from each to each.
func (p *Pattern) Coflows(rng *rand.Rand, hosts []int, mappers, reducers int, sizes *Sizes, gap, start, end units.Time) ([]fabric.FlowSpec, []Coflow, error) {
	if mappers < 1 || reducers < 1 || mappers+reducers > len(hosts) || gap <= 0 {
		return nil, nil, fmt.Errorf("coflows of %d mappers and %d reducers every %v: want at least 1 each, no more than the %d hosts together, and a gap above 0", mappers, reducers, gap, len(hosts))
	}
	var flows []fabric.FlowSpec
	var list []Coflow
	at := float64(start)
	for {
		at += rng.ExpFloat64() * float64(gap)
		if at >= float64(end) {
			return flows, list, nil
		}
		if len(flows) > maxFlows {
			return nil, nil, fmt.Errorf("coflows: more than %d flows", maxFlows)
		}
		order := rng.Perm(len(hosts))
		c := Coflow{First: len(flows), Start: units.Time(at)}
		size := sizes.Draw(rng)
		for _, m := range order[:mappers] {
			for _, r := range order[mappers : mappers+reducers] {
				flows = append(flows, p.flow(rng, hosts[m], hosts[r], size, units.Time(at)))
			}
		}
		c.Count = len(flows) - c.First
		list = append(list, c)
	}
}
