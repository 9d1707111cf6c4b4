package soze

import (
	"math"

	"github.com/headgate/headgate/units"
)

// Target is Söze's target function (§3.1.4, Equation 6) between a rate per weight x and
// the queueing delay that stands for it:
//
//	T(x) = p + k·(ln α − ln x)/(ln α − ln β)
//
// It falls as x rises. It is linear in ln x, so a law that keeps ln x needs no logarithm.
type Target struct {
	p, k       float64 // picoseconds
	lnAlpha    float64
	lnBeta     float64
	perLn, inv float64 // k/(ln α − ln β) and its inverse
}

// NewTarget returns the target function of p; P, K, Alpha and Beta must be valid.
func NewTarget(p Params) Target {
	a, b := math.Log(float64(p.Alpha)), math.Log(float64(p.Beta))
	return Target{
		p: float64(p.P), k: float64(p.K), lnAlpha: a, lnBeta: b,
		perLn: float64(p.K) / (a - b), inv: (a - b) / float64(p.K),
	}
}

// Delay returns T(x) for x in bits per second and unit of weight, at least p and at most
// p + k.
func (t *Target) Delay(x float64) units.Time {
	return units.Time(t.delayLn(math.Log(x)))
}

func (t *Target) delayLn(lnX float64) float64 {
	return t.p + t.perLn*(t.lnAlpha-min(max(lnX, t.lnBeta), t.lnAlpha))
}

// lnShare returns the inverse of delayLn: the ln of the rate per weight that a queueing delay stands
// for, of alpha for delays up to p and of beta for delays from p + k on.
func (t *Target) lnShare(d float64) float64 {
	return t.lnAlpha - min(max(d-t.p, 0), t.k)*t.inv
}

// stepLn applies the update function (Equation 7), x ← x·(T⁻¹(d)/x)^m, to ln x.
func (t *Target) stepLn(lnX, d, m float64) float64 {
	return lnX + m*(t.lnShare(d)-lnX)
}
