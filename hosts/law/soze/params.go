package soze

import (
	"fmt"
	"math"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

// Params are the parameters of the law; Visit says what each is. All flows of a fabric must have the same P, K,
// Alpha, Beta and M, because these define what a queueing delay means.
type Params struct {
	P, K          units.Time
	Alpha, Beta   units.Rate
	M             float64
	MaxRate       units.Rate // bounds a flow's rate, to the line rate of its NIC
	MSS           units.Bytes
	InitialWindow units.Bytes
	MinWindow     units.Bytes // least in flight: a packet, or two if the receiver acknowledges every second packet
	WholeWindow   bool        // a flow joins only after a whole first window, also if its application pauses before
}

// DefaultM is the exponent per round trip when none is given.
const DefaultM = 0.2

// DefaultBeta returns the default of Beta, the lowest expected rate per unit of weight: a hundredth of alpha. A
// longer range would tell rates apart less well.
func DefaultBeta(alpha units.Rate) units.Rate { return max(alpha/100, 1) }

// MaxUnitShift bounds the unit of maxQD: 2^16 µs is longer than any useful unit.
const MaxUnitShift = 16

// UnitShift returns the default unit of maxQD as the exponent n of 2^n µs; longest is a law's p + k. n is the
// least for which 16 bits hold four times p + k, at most MaxUnitShift.
func UnitShift(longest units.Time) (n uint8) {
	for n < MaxUnitShift && longest/units.Microsecond*4 > 65535<<n {
		n++
	}
	return n
}

// LongestQD returns the longest delay that maxQD can express in the default unit; longest is a law's p + k. A
// longer delay saturates.
func LongestQD(longest units.Time) units.Time {
	return math.MaxUint16 * units.Microsecond << UnitShift(longest)
}

// Visit visits the parameters.
func (p *Params) Visit(s *param.Set, f *law.Flow) {
	param.Of(s, "p", &p.P, f.Stretch(3*units.Microsecond), param.Above(0), "p, the queueing delay of a link that one flow fills at alpha; small values lose utilisation")
	param.Of(s, "k", &p.K, f.Stretch(37*units.Microsecond), param.Above(0), "k, rise of the queueing delay while the rate per weight falls from alpha to beta; large values distinguish rates better and queue longer")
	param.Of(s, "alpha", &p.Alpha, 100*units.Gbps, param.Above(0), "highest expected rate per unit of weight, the fastest link over the smallest weight; a flow alone is held to alpha times its weight")
	param.Of(s, "beta", &p.Beta, DefaultBeta(p.Alpha), param.Between(0, p.Alpha), "lowest expected rate per unit of weight; flows whose share is below it queue longer than p + k; default alpha / 100")
	param.Of(s, "m", &p.M, DefaultM, param.Between(0, 2), "m, the exponent that one round trip's acknowledgements apply together; the fairness lemma's range is for feedback without delay, see the package's documentation")
	param.Path(s, "max_rate", &p.MaxRate, f.Rate, param.Above(0))
	param.Path(s, "mss", &p.MSS, f.MSS, param.Above(0))
	param.Of(s, "initial_window", &p.InitialWindow, 8*p.MSS, param.AtLeast(p.MSS), "bytes that a flow sends before its first acknowledgement, paced at the line rate; default eight packets")
	param.Path(s, "min_window", &p.MinWindow, p.MSS, param.AtLeast(p.MSS))
	param.Bool(s, "whole_window", &p.WholeWindow, false, "whether a flow that pauses within its first window waits for the rest of the window before it believes the path's delay, so that connections that begin with a few bytes see each other")
}

// CheckWeight returns an error unless w is a weight: finite and positive.
func CheckWeight(w float64) error {
	if !(w > 0) || math.IsInf(w, 0) {
		return fmt.Errorf("weight %v: want a finite number above 0", w)
	}
	return nil
}

// Target is Söze's target function (§3.1.4, Equation 6), which maps a rate per weight x to
// a queueing delay:
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

// lnShare is the inverse of delayLn: it returns the ln of the rate per weight for a queueing delay. The result is ln
// alpha for delays up to p, and ln beta for delays of p + k or more.
func (t *Target) lnShare(d float64) float64 {
	return t.lnAlpha - min(max(d-t.p, 0), t.k)*t.inv
}

// stepLn applies the update function (Equation 7), x ← x·(T⁻¹(d)/x)^m, to ln x.
func (t *Target) stepLn(lnX, d, m float64) float64 {
	return lnX + m*(t.lnShare(d)-lnX)
}
