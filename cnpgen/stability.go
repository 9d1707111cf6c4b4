package cnpgen

import (
	"fmt"
	"math"
	"math/cmplx"
	"sort"

	"gonum.org/v1/gonum/mat"

	"github.com/headgate/headgate/units"
)

// Stability is the result of both analyses of parameters at a line rate: the paper's phase margin of G, and the
// eigenvalues of the loop as it runs. They do not always agree. G has three integrators and a delay of two
// periods, while Algorithm 1 has two integrators and applies the CNPs that it computes at once. G also ignores the
// number of flows; the gain falls with it.
type Stability struct {
	Params Params
	Rate   units.Rate
	Margin         // the paper's
	Radius float64 // spectral radius of the loop as it runs, with Reaction.Flows flows
	Flows  int
	// FewestFlows is the smallest number of flows, 1 to 1024, with which the loop as it runs settles. The loop
	// settles with every larger number too. 0 means that there is no such number.
	FewestFlows int
}

// MarginStable reports whether the paper's criterion is met, a phase margin above 0.
func (s Stability) MarginStable() bool { return s.Phase > 0 }

// LoopStable reports whether the loop as it runs settles, a spectral radius below 1.
func (s Stability) LoopStable() bool { return s.Radius < 1 }

// Verdict describes the two results in a sentence.
func (s Stability) Verdict() string {
	word := map[bool]string{true: "stable", false: "unstable"}
	paper := fmt.Sprintf("%s by the paper's criterion (phase margin %+.1f°)", word[s.MarginStable()], s.Phase)
	loop := fmt.Sprintf("in the loop as it runs (spectral radius %.3f with %d flows)", s.Radius, s.Flows)
	if s.MarginStable() == s.LoopStable() {
		return paper + " and " + loop
	}
	return "the two disagree: " + paper + ", " + word[s.LoopStable()] + " " + loop
}

// UnstableError reports unstable parameters and proposes stable ones near them.
type UnstableError struct {
	Stability
	Proposed Stability
}

// Error names the weights, the figures and the proposal.
func (e *UnstableError) Error() string {
	return fmt.Sprintf("beta1 %.4g, beta2 %.4g at interval %v and %v: %s; want a phase margin above 0° and a spectral radius below 1, as beta1 %.4g, beta2 %.4g with %+.1f° and %.3f",
		e.Params.Beta1, e.Params.Beta2, e.Params.Interval, e.Rate, e.Verdict(),
		e.Proposed.Params.Beta1, e.Proposed.Params.Beta2, e.Proposed.Phase, e.Proposed.Radius)
}

// Stability analyses the parameters with VendorReaction, stretched by Scale. The error is an
// *UnstableError when one of the analyses finds them unstable, or says which parameter is
// out of range.
func (p Params) Stability(rate units.Rate) (Stability, error) {
	return p.StabilityWith(rate, VendorReaction().Stretch(p.scale()))
}

// StabilityWith is like Stability, for hosts with the given Reaction.
func (p Params) StabilityWith(rate units.Rate, r Reaction) (Stability, error) {
	if err := p.Validate(rate); err != nil {
		return Stability{}, err
	}
	if err := r.Validate(); err != nil {
		return Stability{}, fmt.Errorf("reaction point: %w", err)
	}
	s := p.analyse(rate, r)
	s.FewestFlows = p.fewestFlows(rate, r)
	if s.MarginStable() && s.LoopStable() {
		return s, nil
	}
	return s, &UnstableError{Stability: s, Proposed: p.Propose(rate, r)}
}

func (p Params) analyse(rate units.Rate, r Reaction) Stability {
	return Stability{Params: p, Rate: rate, Margin: p.PhaseMargin(rate, r), Radius: p.SpectralRadius(rate, r), Flows: r.Flows}
}

// fewestFlows computes FewestFlows by bisection. It assumes that a loop that settles also settles with more flows,
// because the gain falls with their number.
func (p Params) fewestFlows(rate units.Rate, r Reaction) int {
	settles := func(n int) bool {
		r.Flows = n
		return p.SpectralRadius(rate, r) < 1
	}
	const most = 1024
	if !settles(most) {
		return 0
	}
	return 1 + sort.Search(most-1, func(i int) bool { return settles(i + 1) })
}

// ProposedMargin is the phase margin that proposed weights have at least, in degrees.
const ProposedMargin = 30.0

// Propose returns the analysis of the nearest parameters that both analyses find stable, with a
// phase margin of at least ProposedMargin. These are p itself if it is stable, or else the largest
// stable weights in the same ratio, or else those in the paper's ratio, β2 = 2·β1.
func (p Params) Propose(rate units.Rate, r Reaction) Stability {
	good := func(q Params) bool {
		return q.PhaseMargin(rate, r).Phase >= ProposedMargin && q.SpectralRadius(rate, r) < 1
	}
	if good(p) {
		return p.analyse(rate, r)
	}
	q := p
	for _, ratio := range []float64{p.Beta2 / p.Beta1, PaperBeta2 / PaperBeta1} {
		q = p
		q.Beta2 = ratio * q.Beta1
		// Bisection would not do: the stable weights of a ratio need not be one interval.
		for range maxSteps {
			if good(q) {
				return q.analyse(rate, r)
			}
			q.Beta1 *= 0.995
			q.Beta2 *= 0.995
		}
	}
	return q.analyse(rate, r)
}

// maxSteps bounds the steps; 0.995^maxSteps divides the weights by 8e8.
const maxSteps = 4096

// Margin is the result of the paper's stability analysis (§IV) for parameters at a line rate.
type Margin struct {
	Phase     float64 // degrees; the loop is stable by Bode's criterion when it is above 0
	Crossover float64 // angular frequency where |G| = 1, radians per second
	K         float64 // gain of G, 1/s³
	Z         float64 // zero of G, radians per second
	Alpha     float64 // the α* used
}

// PhaseMargin analyses the open loop of Eq. 16,
//
//	G(s) = −K·(1 + s/z)·e^(−2sT)/s³,  K = C·β1·α*/(2T²),  z = β1/((β2 + β1/2)·T),
//
// with C in KB of 1000 B per second. The phase margin is 180° more than G's phase where
// |G| = 1, in the paper's convention that the sign of −K turns by +180° and each
// integrator by −90°: 90° + atan(ω/z) − 2ωT.
func (p Params) PhaseMargin(rate units.Rate, r Reaction) Margin {
	t := p.Interval.Seconds()
	c := float64(rate) / 8 / bytesPerKB
	m := Margin{
		Alpha: r.Alpha(),
		Z:     p.Beta1 / ((p.Beta2 + p.Beta1/2) * t),
	}
	m.K = c * p.Beta1 * m.Alpha / (2 * t * t)
	m.Crossover = crossover(m.K*t*t*t, m.Z*t) / t
	m.Phase = degrees(math.Pi/2 + math.Atan(m.Crossover/m.Z) - 2*m.Crossover*t)
	return m
}

// crossover solves k·√(1 + (x/z)²) = x³ for x above 0. There is one solution, because the left side divided by x³
// falls.
func crossover(k, z float64) float64 {
	low, high := math.Log(1e-12), math.Log(1e12)
	for range 64 {
		mid := (low + high) / 2
		x := math.Exp(mid)
		if math.Log(k)+math.Log(math.Hypot(1, x/z)) > 3*mid {
			low = mid
		} else {
			high = mid
		}
	}
	return math.Exp((low + high) / 2)
}

func degrees(rad float64) float64 { return rad * 180 / math.Pi }

// Reaction describes DCQCN at the hosts and the path to them, for the analysis.
type Reaction struct {
	AlphaTimer    units.Time // τ': alpha falls by Gain after each such time without a CNP
	IncreaseTimer units.Time // T_i
	Gain          float64    // g
	// Delay is the time from the moment that a CNP leaves the switch to its effect on the queue.
	Delay units.Time
	// Flows is the number of flows in the queue. The gain of the loop falls with it, because a CNP cuts only one
	// flow's share. Two is the smallest number that can congest a link if the senders' links have the same rate.
	Flows int
}

// VendorReaction returns DCQCN as in NICs, with the paper's values: (τ', T_i) = (1, 300) µs, g = 1/256, two flows,
// and the longest base round trip of 12 µs.
func VendorReaction() Reaction {
	return Reaction{
		AlphaTimer: units.Microsecond, IncreaseTimer: 300 * units.Microsecond, Gain: 1.0 / 256,
		Delay: 12 * units.Microsecond, Flows: 2,
	}
}

// Stretch returns r with all times s times longer, for a fabric that runs s times slower.
func (r Reaction) Stretch(s float64) Reaction {
	r.AlphaTimer, r.IncreaseTimer = stretch(r.AlphaTimer, s), stretch(r.IncreaseTimer, s)
	r.Delay = stretch(r.Delay, s)
	return r
}

// Alpha is α* = √(2τ'/(3T_i)), alpha at the operating point (appendix A): 0.04714 for
// (1, 300).
func (r Reaction) Alpha() float64 {
	return math.Sqrt(2 * float64(r.AlphaTimer) / (3 * float64(r.IncreaseTimer)))
}

// Validate reports the first value outside its range.
func (r Reaction) Validate() error {
	switch {
	case r.AlphaTimer <= 0:
		return fmt.Errorf("alpha timer: %v, want more than 0", r.AlphaTimer)
	case r.IncreaseTimer <= r.AlphaTimer:
		return fmt.Errorf("increase timer: %v, want more than the alpha timer, %v", r.IncreaseTimer, r.AlphaTimer)
	case !(r.Gain > 0 && r.Gain < 1):
		return fmt.Errorf("gain: %v, want more than 0 and less than 1", r.Gain)
	case r.Delay < 0:
		return fmt.Errorf("delay: %v, want 0 or more", r.Delay)
	case r.Flows < 1:
		return fmt.Errorf("flows: %d, want at least 1", r.Flows)
	}
	return nil
}

// SpectralRadius is the largest magnitude of an eigenvalue of the closed loop as the
// algorithm runs, linearised around the paper's operating point α*; below 1 the loop
// settles.
//
// This is another model than G, which has an integrator for N that Algorithm 1 lacks, and which
// delays the CNPs of a period by a period, although they cut within it. Here the loop is, per period
// T, in differences from the operating point, with C in KB per period and n flows,
//
//	N   = β1·q + β2·(q − q₋₁)                        Algorithm 1, line 12
//	u   = −C/2 · (α*·N/n + N*·a)                      cuts: Eq. 1, N/n CNPs to each flow
//	a₊₁ = a + (1 − (1−g)^(T/τ')) · (N/n · τ'/T − a)   alpha: DCQCN §3.1
//	r₊₁ = r + u − (1/3 + 1/2)·T/T_i · r               and DCQCN's increase
//	q₊₁ = q + r + u/2
//
// CNPs are paced over the period, so on average their cuts act during half of it. The delay of the
// feedback moves a part of u into later periods. N* = α*·T/τ' is the number of CNPs that a flow gets
// per period at α*. They cut a third of the rate per T_i. The increase restores it, going half of
// the way to a constant target.
//
// The model omits rounding down and the bound on the CNPs per flow, which are not linear.
func (p Params) SpectralRadius(rate units.Rate, r Reaction) float64 {
	var eigen mat.Eigen
	if !eigen.Factorize(p.loop(rate, r), mat.EigenNone) {
		return math.Inf(1) // this cannot happen to a matrix of finite numbers
	}
	largest := 0.0
	for _, v := range eigen.Values(nil) {
		largest = max(largest, cmplx.Abs(v))
	}
	return largest
}

// The states of the loop. The cuts that are on their way follow them, the latest first.
const (
	stateQ = iota
	stateQOld
	stateR
	stateA
	stateU
)

// maxPeriods bounds the feedback delay that the loop represents.
const maxPeriods = 64

func (p Params) loop(rate units.Rate, r Reaction) *mat.Dense {
	t := float64(p.Interval)
	c := float64(rate) / 8 / bytesPerKB * p.Interval.Seconds()
	alpha, n := r.Alpha(), float64(r.Flows)
	periods := math.Min(float64(r.Delay)/t, maxPeriods)
	whole := int(periods)
	part := periods - float64(whole)

	size := stateU + whole + 1
	a := mat.NewDense(size, size, nil)
	add := func(i, j int, v float64) { a.Set(i, j, a.At(i, j)+v) }
	// N/n and u as rows over the state.
	perFlow, cut := make([]float64, size), make([]float64, size)
	perFlow[stateQ], perFlow[stateQOld] = (p.Beta1+p.Beta2)/n, -p.Beta2/n
	for i := range cut {
		cut[i] = -c / 2 * alpha * perFlow[i]
	}
	cut[stateA] -= c / 2 * alpha * t / float64(r.AlphaTimer)

	// CNPs of a period: the end of the older cut, the start of the younger one.
	arriving := func(i int, weightYoung, weightOld float64) {
		if whole == 0 {
			for j := range cut {
				add(i, j, weightYoung*cut[j])
			}
		} else {
			add(i, stateU+whole-1, weightYoung)
		}
		add(i, stateU+whole, weightOld)
	}
	add(stateQ, stateQ, 1)
	add(stateQ, stateR, 1)
	arriving(stateQ, (1-part)*(1-part)/2, part-part*part/2)
	add(stateQOld, stateQ, 1)
	add(stateR, stateR, 1-(1.0/3+1.0/2)*t/float64(r.IncreaseTimer))
	arriving(stateR, 1-part, part)
	forget := 1 - math.Pow(1-r.Gain, t/float64(r.AlphaTimer))
	add(stateA, stateA, 1-forget)
	for i := range perFlow {
		add(stateA, i, forget*float64(r.AlphaTimer)/t*perFlow[i])
	}
	a.SetRow(stateU, cut)
	for i := stateU + 1; i < size; i++ {
		add(i, i-1, 1)
	}
	return a
}
