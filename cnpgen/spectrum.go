package cnpgen

import (
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/mat"

	"github.com/headgate/headgate/units"
)

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
		return math.Inf(1) // not of a matrix of finite numbers
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

	// What arrives in a period: the end of the older cut, the start of the younger one.
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
