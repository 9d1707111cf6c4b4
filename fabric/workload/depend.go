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
	left  map[int]int               // flows of a stage that have not ended, by tag
	after map[int][]fabric.FlowSpec // what a stage that ends starts
	next  int
	err   error
}

// NewChain returns a driver without stages.
func NewChain() *Chain {
	return &Chain{left: map[int]int{}, after: map[int][]fabric.FlowSpec{}, next: 1}
}

// Done implements fabric.Driver.
func (c *Chain) Done(s *fabric.Sim, f *fabric.FlowSpec) {
	if f.Tag == 0 {
		return
	}
	if c.left[f.Tag]--; c.left[f.Tag] > 0 {
		return
	}
	flows := c.after[f.Tag]
	delete(c.after, f.Tag)
	delete(c.left, f.Tag)
	for i := range flows {
		if err := s.Start(&flows[i]); err != nil && c.err == nil {
			c.err = err
		}
	}
}

// Err returns the first error of a flow that could not be started.
func (c *Chain) Err() error { return c.err }

// stage gives flows a tag of their own; those of then start when all of them have ended.
func (c *Chain) stage(flows, then []fabric.FlowSpec) {
	tag := c.next
	c.next++
	for i := range flows {
		flows[i].Tag = tag
	}
	c.left[tag] = len(flows)
	if len(then) > 0 {
		c.after[tag] = then
	}
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
	for i := range steps {
		var then []fabric.FlowSpec
		if i+1 < len(steps) {
			then = steps[i+1]
		}
		c.stage(steps[i], then)
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
