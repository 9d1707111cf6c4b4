package soze

import (
	"fmt"
	"math"

	"github.com/headgate/headgate/units"
)

// Margin is the linearised loop of flows that share one link; see the package's documentation. The rates of all
// flows are off by e^ρ. The queue, which they see a round trip later, pulls them back by m·G·ρ per round trip:
// ρ'(t) = −(m·G/RTT)·ρ(t − RTT), an integrator with a delay.
type Margin struct {
	Share units.Rate // rate on the link per unit of weight
	Delay units.Time // T(Share), where the queue settles
	RTT   units.Time // round trip with it, or the gap between a flow's packets where that is longer
	// Gain is G = RTT·L/k with L = ln α − ln β: how strongly the queue answers. Asked is m·G with the
	// configured m, Applied with the exponent M, to which the law lowers m.
	Gain, Asked, Applied, M float64
	// Phase is the phase margin of Applied in degrees, AskedPhase that of Asked: 90° − m·G. At the crossover
	// frequency, m·G/RTT, the integrator turns the phase by 90° and the delay by m·G. The loop is stable if the
	// margin is above 0, which is m·G < π/2, and does not oscillate for m·G ≤ 1/e.
	Phase, AskedPhase float64
	// Within reports whether Share lies between β and α, where T has a slope. Outside, rates stay in proportion
	// to weights, but the queue does not settle at Delay.
	Within bool
	// Lemma reports whether the paper's own conditions hold (Appendix C and D): 0 < m < 2, and k > L times the
	// update interval, which is the gap between two packets of a flow. They assume feedback without delay.
	Lemma bool
}

// NoOscillation is the largest m·G at which the loop does not oscillate. From StableGain on the loop is
// unstable.
const (
	NoOscillation = 1 / math.E
	StableGain    = math.Pi / 2
)

// Margin analyses the flows of one link. rtt is the round trip without the link's queue, and weights the sum of
// the flows' weights, 1 each on average. An error names the argument that is not a positive number.
func (p Params) Margin(rate units.Rate, rtt units.Time, weights float64) (Margin, error) {
	switch {
	case rate <= 0:
		return Margin{}, fmt.Errorf("rate: %v is not allowed: want more than 0", rate)
	case rtt <= 0:
		return Margin{}, fmt.Errorf("rtt: %v is not allowed: want more than 0", rtt)
	case CheckWeight(weights) != nil:
		return Margin{}, CheckWeight(weights)
	}
	p.MaxRate = max(p.MaxRate, rate)
	l, err := New(p, 1)
	if err != nil {
		return Margin{}, err
	}
	share := float64(rate) / weights
	l.lnX, l.rest = math.Log(share), float64(rtt)
	m := Margin{Share: units.Rate(share), Delay: l.target.Delay(share), Gain: l.gain(), M: l.exponent()}
	m.RTT = units.Time(m.Gain / l.target.inv)
	m.Asked, m.Applied = p.M*m.Gain, m.M*m.Gain
	phase := func(gain float64) float64 { return 90 - gain*180/math.Pi }
	m.Phase, m.AskedPhase = phase(m.Applied), phase(m.Asked)
	m.Within = share >= float64(p.Beta) && share <= float64(p.Alpha)
	m.Lemma = p.M > 0 && p.M < 2 && float64(p.MSS)/(share*picobits)*l.target.inv < 1
	return m, nil
}

// Verdict interprets the figures in a sentence.
func (m Margin) Verdict() string {
	what := "stable and does not oscillate"
	switch {
	case m.Applied >= StableGain:
		what = "unstable"
	case m.Applied > NoOscillation:
		what = "stable, and oscillations fade"
	}
	text := fmt.Sprintf("%s (m·G %.2f, phase margin %+.1f°)", what, m.Applied, m.Phase)
	if m.Applied < m.Asked {
		text += fmt.Sprintf("; without the law's bound it would be m·G %.2f, %+.1f°", m.Asked, m.AskedPhase)
	}
	return text
}
