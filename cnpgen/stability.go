package cnpgen

import (
	"fmt"
	"sort"

	"github.com/headgate/headgate/units"
)

// Stability is the result of both analyses of parameters at a line rate. They do not always agree.
// G has three integrators and a delay of two periods, while Algorithm 1 has two integrators and
// applies the CNPs that it computes at once. And G ignores the number of flows, with which the gain
// falls.
type Stability struct {
	Params Params
	Rate   units.Rate
	Margin         // the paper's
	Radius float64 // spectral radius of the loop as it runs, with Flows flows
	Flows  int
	// FewestFlows is the smallest number of flows, 1 to 1024, from which on the loop as it
	// runs settles; 0 when there is no such number.
	FewestFlows int
}

// MarginStable reports whether the paper's criterion is met, a phase margin above 0.
func (s Stability) MarginStable() bool { return s.Phase > 0 }

// LoopStable reports whether the loop as it runs settles, a spectral radius below 1.
func (s Stability) LoopStable() bool { return s.Radius < 1 }

// Verdict says in a sentence what the two figures mean together.
func (s Stability) Verdict() string {
	paper := fmt.Sprintf("phase margin %+.1f°", s.Phase)
	loop := fmt.Sprintf("spectral radius %.3f with %d flows", s.Radius, s.Flows)
	switch {
	case s.MarginStable() && s.LoopStable():
		return fmt.Sprintf("stable by the paper's criterion (%s) and in the loop as it runs (%s)", paper, loop)
	case s.MarginStable():
		return fmt.Sprintf("the two disagree: stable by the paper's criterion (%s), unstable in the loop as it runs (%s)", paper, loop)
	case s.LoopStable():
		return fmt.Sprintf("the two disagree: unstable by the paper's criterion (%s), stable in the loop as it runs (%s)", paper, loop)
	}
	return fmt.Sprintf("unstable by the paper's criterion (%s) and in the loop as it runs (%s)", paper, loop)
}

// UnstableError reports parameters that are not stable, and proposes stable ones near them.
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

// fewestFlows computes FewestFlows by bisection, because the gain falls with the number of flows.
// It checks the upper end first, because without gain the loop does not settle either.
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
