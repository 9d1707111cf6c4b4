package workload

import (
	"fmt"
	"math/rand/v2"

	"github.com/headgate/headgate/fabric"
	"github.com/headgate/headgate/units"
)

// maxFlows bounds what one generator makes.
const maxFlows = 50_000_000

// Pattern is what all flows of a generator have in common.
type Pattern struct {
	Class  uint8
	Weight float64
	Group  int
	Law    fabric.LawMaker
	// Pick draws the class of each flow from these instead of Class when it is not empty.
	Pick []uint8
}

func (p *Pattern) flow(rng *rand.Rand, src, dst int, size units.Bytes, start units.Time) fabric.FlowSpec {
	f := fabric.FlowSpec{
		Src: src, Dst: dst, Size: size, Start: start,
		Class: p.Class, Weight: p.Weight, Group: p.Group, Law: p.Law,
	}
	if len(p.Pick) > 0 {
		f.Class = p.Pick[rng.IntN(len(p.Pick))]
	}
	return f
}

// Shift sends one flow from each host i of a list of n to host i + by, modulo n. by is not
// a multiple of n.
func (p *Pattern) Shift(rng *rand.Rand, hosts []int, by int, size units.Bytes, start units.Time) ([]fabric.FlowSpec, error) {
	n := len(hosts)
	if n < 2 || ((by%n)+n)%n == 0 {
		return nil, fmt.Errorf("shift %d over %d hosts: want one that sends no host to itself", by, n)
	}
	flows := make([]fabric.FlowSpec, n)
	for i, h := range hosts {
		flows[i] = p.flow(rng, h, hosts[((i+by)%n+n)%n], size, start)
	}
	return flows, nil
}

// Permutation sends one flow from each host to a distinct other, drawn uniformly among the
// permutations without a fixed point.
func (p *Pattern) Permutation(rng *rand.Rand, hosts []int, size units.Bytes, start units.Time) ([]fabric.FlowSpec, error) {
	if len(hosts) < 2 {
		return nil, fmt.Errorf("permutation of %d hosts: want at least 2", len(hosts))
	}
	to := make([]int, len(hosts))
	for fixed := true; fixed; { // one draw in e has no fixed point
		fixed = false
		for i, j := range rng.Perm(len(hosts)) {
			to[i] = j
			fixed = fixed || i == j
		}
	}
	flows := make([]fabric.FlowSpec, len(hosts))
	for i, h := range hosts {
		flows[i] = p.flow(rng, h, hosts[to[i]], size, start)
	}
	return flows, nil
}

// Incast lets every sender send to one receiver at once, count flows each.
func (p *Pattern) Incast(rng *rand.Rand, senders []int, receiver, count int, size units.Bytes, start units.Time) ([]fabric.FlowSpec, error) {
	var flows []fabric.FlowSpec
	for range count {
		for _, s := range senders {
			if s == receiver {
				return nil, fmt.Errorf("incast: host %d is both sender and receiver", s)
			}
			flows = append(flows, p.flow(rng, s, receiver, size, start))
		}
	}
	if len(flows) == 0 {
		return nil, fmt.Errorf("incast: no senders")
	}
	return flows, nil
}

// Arrivals is a Poisson process of flows (or of fan-ins) over hosts.
type Arrivals struct {
	From, To []int // hosts; drawn uniformly, never the same for both ends
	Sizes    *Sizes
	// Load is the part of the senders' sum of line rates that the flows' payload and
	// headers take; above 0 and at most 1.
	Load   float64
	Rate   units.Rate // line rate of a host
	Factor float64    // bytes on the wire per byte of payload, at least 1
	Start  units.Time
	End    units.Time
	// FanIn is the number of flows that arrive at once for one receiver, from different
	// senders; 1 for plain flows. The load is then that of the receivers.
	FanIn int
	// Apart, when not nil, must hold for the two ends of a flow, such as being in
	// different racks.
	Apart func(src, dst int) bool
}

// Poisson draws the flows of an arrival process.
func (p *Pattern) Poisson(rng *rand.Rand, a Arrivals) ([]fabric.FlowSpec, error) {
	ends := a.From
	if a.FanIn > 1 {
		ends = a.To
	}
	mean := a.Sizes.Mean() * a.Factor * float64(max(a.FanIn, 1))
	if !(a.Load > 0 && a.Load <= 1) {
		return nil, fmt.Errorf("load %v: want more than 0 and at most 1", a.Load)
	}
	if len(a.From) == 0 || len(a.To) == 0 || a.End <= a.Start || mean <= 0 {
		return nil, fmt.Errorf("arrivals: want senders, receivers, a time to draw for and sizes above 0")
	}
	// In picoseconds: so many bytes take so long at the load's share of the line rates.
	gap := mean * 8 * float64(units.Second) / (a.Load * float64(a.Rate) * float64(len(ends)))
	if n := float64(a.End-a.Start) / gap * float64(max(a.FanIn, 1)); n > maxFlows {
		return nil, fmt.Errorf("arrivals: about %.0f flows, at most %d are allowed", n, maxFlows)
	}
	var flows []fabric.FlowSpec
	at := float64(a.Start)
	for {
		at += rng.ExpFloat64() * gap
		if at >= float64(a.End) {
			return flows, nil
		}
		dst := a.To[rng.IntN(len(a.To))]
		used := map[int]bool{}
		for range max(a.FanIn, 1) {
			src, ok := a.sender(rng, dst, used)
			if !ok {
				return nil, fmt.Errorf("arrivals: no sender left for host %d: fewer than %d differ from it", dst, a.FanIn)
			}
			used[src] = true
			flows = append(flows, p.flow(rng, src, dst, a.Sizes.Draw(rng), units.Time(at)))
		}
	}
}

// sender draws a sender for dst that is not used yet.
func (a *Arrivals) sender(rng *rand.Rand, dst int, used map[int]bool) (int, bool) {
	for range 10_000 {
		src := a.From[rng.IntN(len(a.From))]
		if src != dst && !used[src] && (a.Apart == nil || a.Apart(src, dst)) {
			return src, true
		}
	}
	return 0, false
}
