package cnpgen

import (
	"math"

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
	return radius(p.loop(rate, r))
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

func (p Params) loop(rate units.Rate, r Reaction) [][]float64 {
	t := float64(p.Interval)
	c := float64(rate) / 8 / bytesPerKB * p.Interval.Seconds()
	alpha, n := r.Alpha(), float64(r.Flows)
	periods := math.Min(float64(r.Delay)/t, maxPeriods)
	whole := int(periods)
	part := periods - float64(whole)

	size := stateU + whole + 1
	a := make([][]float64, size)
	for i := range a {
		a[i] = make([]float64, size)
	}
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
				a[i][j] += weightYoung * cut[j]
			}
		} else {
			a[i][stateU+whole-1] += weightYoung
		}
		a[i][stateU+whole] += weightOld
	}
	a[stateQ][stateQ], a[stateQ][stateR] = 1, 1
	arriving(stateQ, (1-part)*(1-part)/2, part-part*part/2)
	a[stateQOld][stateQ] = 1
	a[stateR][stateR] = 1 - (1.0/3+1.0/2)*t/float64(r.IncreaseTimer)
	arriving(stateR, 1-part, part)
	forget := 1 - math.Pow(1-r.Gain, t/float64(r.AlphaTimer))
	a[stateA][stateA] = 1 - forget
	for i := range perFlow {
		a[stateA][i] += forget * float64(r.AlphaTimer) / t * perFlow[i]
	}
	copy(a[stateU], cut)
	for i := stateU + 1; i < size; i++ {
		a[i][i-1] = 1
	}
	return a
}

// radius is the spectral radius by Gelfand's formula, lim |Aᵐ|^(1/m), with m doubling: the
// error of the logarithm is below 1e-7 after 30 squarings. It destroys a.
func radius(a [][]float64) float64 {
	b := make([][]float64, len(a))
	for i := range b {
		b[i] = make([]float64, len(a))
	}
	log := 0.0
	for m := 1.0; m < 1<<30; m *= 2 {
		norm := 0.0
		for _, row := range a {
			for _, v := range row {
				norm = max(norm, math.Abs(v))
			}
		}
		if norm == 0 {
			return 0
		}
		log += math.Log(norm) / m
		scale := 1 / norm
		for _, row := range a {
			for j := range row {
				row[j] *= scale
			}
		}
		square(b, a)
		a, b = b, a
	}
	return math.Exp(log)
}

func square(to, a [][]float64) {
	for i, row := range a {
		clear(to[i])
		for k, v := range row {
			for j, w := range a[k] {
				to[i][j] += v * w
			}
		}
	}
}
