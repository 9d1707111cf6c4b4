package workload

import (
	"fmt"
	"math/rand/v2"
	"sort"

	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/units"
)

// maxFlows bounds one generator's flows.
const maxFlows = 50_000_000

// Pattern is the common part of a generator's flows: the fields of the FlowSpec except those that Flow
// sets.
type Pattern struct {
	sim.FlowSpec
	// Pick, if not empty, has the classes from which each flow's class is drawn. It replaces Class.
	Pick []uint8
	// Ranks, if not empty, replace the pattern by the size of a flow or coflow. Sizes below Bounds[0] use
	// Ranks[0]. Other sizes use Ranks[i+1], where Bounds[i] is the last bound that is not above the size. There is
	// one bound less than ranks.
	Ranks  []Pattern
	Bounds []units.Bytes
}

// rank returns the pattern for a size.
func (p *Pattern) rank(size units.Bytes) *Pattern {
	if len(p.Ranks) == 0 {
		return p
	}
	i := sort.Search(len(p.Bounds), func(i int) bool { return size < p.Bounds[i] })
	return &p.Ranks[i]
}

// Flow returns a flow of the pattern.
func (p *Pattern) Flow(rng *rand.Rand, src, dst int, size units.Bytes, start units.Time) sim.FlowSpec {
	p = p.rank(size)
	f := p.FlowSpec
	f.Src, f.Dst, f.Size, f.Start = src, dst, size, start
	if len(p.Pick) > 0 {
		f.Class = p.Pick[rng.IntN(len(p.Pick))]
	}
	return f
}

// Shift sends one flow from each host i of a list of n to host i + by, modulo n. by is not
// a multiple of n.
func (p *Pattern) Shift(rng *rand.Rand, hosts []int, by int, size units.Bytes, start units.Time) ([]sim.FlowSpec, error) {
	n := len(hosts)
	if n < 2 || ((by%n)+n)%n == 0 {
		return nil, fmt.Errorf("shift %d over %d hosts: want one that sends no host to itself", by, n)
	}
	flows := make([]sim.FlowSpec, n)
	for i, h := range hosts {
		flows[i] = p.Flow(rng, h, hosts[((i+by)%n+n)%n], size, start)
	}
	return flows, nil
}

// Permutation sends one flow from each host to a distinct other, drawn uniformly among the
// permutations without a fixed point.
func (p *Pattern) Permutation(rng *rand.Rand, hosts []int, size units.Bytes, start units.Time) ([]sim.FlowSpec, error) {
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
	flows := make([]sim.FlowSpec, len(hosts))
	for i, h := range hosts {
		flows[i] = p.Flow(rng, h, hosts[to[i]], size, start)
	}
	return flows, nil
}

// Incast makes every sender send count flows to one receiver at the same time.
func (p *Pattern) Incast(rng *rand.Rand, senders []int, receiver, count int, size units.Bytes, start units.Time) ([]sim.FlowSpec, error) {
	var flows []sim.FlowSpec
	for range count {
		for _, s := range senders {
			if s == receiver {
				return nil, fmt.Errorf("incast: host %d is both sender and receiver", s)
			}
			flows = append(flows, p.Flow(rng, s, receiver, size, start))
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
	// Load is the part of the senders' total line rate that the flows' payload and headers use; above 0 and at
	// most 1.
	Load   float64
	Rate   units.Rate // line rate of a host
	Factor float64    // bytes on the wire per byte of payload, at least 1
	Start  units.Time
	End    units.Time
	// FanIn is the number of flows that arrive together for one receiver; 1 for plain flows. If FanInMax is
	// larger, each arrival draws its own number uniformly from FanIn to FanInMax. No sender repeats until each has
	// sent. With fan-ins, Load refers to the receivers.
	FanIn, FanInMax int
	// AtOnce is the number of flows or fan-ins that arrive at one time; 0 means 1.
	AtOnce int
	// Apart, if not nil, must return true for the two ends of a flow, for example because they are in different
	// racks.
	Apart func(src, dst int) bool
}

// Poisson draws the flows of an arrival process. Each fan-in is a job; they count from 1.
func (p *Pattern) Poisson(rng *rand.Rand, a Arrivals) ([]sim.FlowSpec, error) {
	a.FanIn = max(a.FanIn, 1)
	a.FanInMax = max(a.FanIn, a.FanInMax)
	ends := a.From
	if a.FanInMax > 1 {
		ends = a.To
	}
	atOnce := max(a.AtOnce, 1)
	perArrival := float64(a.FanIn+a.FanInMax) / 2 * float64(atOnce)
	mean := a.Sizes.Mean() * a.Factor * perArrival
	if !(a.Load > 0 && a.Load <= 1) {
		return nil, fmt.Errorf("load %v: want more than 0 and at most 1", a.Load)
	}
	if len(a.From) == 0 || len(a.To) == 0 || a.End <= a.Start || mean <= 0 {
		return nil, fmt.Errorf("arrivals: want senders, receivers, a time to draw for and sizes above 0")
	}
	// In picoseconds: the time that this many bytes take at the load's share of the line rates.
	gap := mean * 8 * float64(units.Second) / (a.Load * float64(a.Rate) * float64(len(ends)))
	if n := float64(a.End-a.Start) / gap * perArrival; n > maxFlows {
		return nil, fmt.Errorf("arrivals: about %.0f flows, at most %d are allowed", n, maxFlows)
	}
	var flows []sim.FlowSpec
	job := 0
	for at := float64(a.Start); ; {
		at += rng.ExpFloat64() * gap
		if at >= float64(a.End) {
			return flows, nil
		}
		for range atOnce {
			job++
			var err error
			if flows, err = p.fanIn(flows, rng, &a, job, units.Time(at)); err != nil {
				return nil, err
			}
		}
	}
}

// fanIn appends the flows of an arrival.
func (p *Pattern) fanIn(flows []sim.FlowSpec, rng *rand.Rand, a *Arrivals, job int, at units.Time) ([]sim.FlowSpec, error) {
	dst := a.To[rng.IntN(len(a.To))]
	used := map[int]bool{}
	n := a.FanIn
	if a.FanInMax > a.FanIn {
		n += rng.IntN(a.FanInMax - a.FanIn + 1)
	}
	able := a.able(dst, n)
	for range n {
		if len(used) == able {
			clear(used) // each has sent once: the next round
		}
		src, ok := a.sender(rng, dst, used)
		if !ok {
			return nil, fmt.Errorf("arrivals: no sender for host %d among %d hosts", dst, len(a.From))
		}
		used[src] = true
		f := p.Flow(rng, src, dst, a.Sizes.Draw(rng), at)
		if a.FanInMax > 1 {
			f.Job = job
		}
		flows = append(flows, f)
	}
	return flows, nil
}

// able returns how many hosts may send to dst, up to n.
func (a *Arrivals) able(dst, n int) (able int) {
	for _, src := range a.From {
		if able == n {
			break
		}
		if src != dst && (a.Apart == nil || a.Apart(src, dst)) {
			able++
		}
	}
	return able
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
