package prioplus

import (
	"fmt"
	"math/rand/v2"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

// Level says how a priority starts (§4.4, "Setting of W_LS" and "Whether to probe").
type Level uint8

// The levels. Low is the default.
const (
	Low    Level = iota // W_LS is an eighth of the bandwidth-delay product
	Middle              // a quarter
	High                // the whole link, and no probe before the start
)

// part returns the divisor of the bandwidth-delay product.
func (l Level) part() units.Bytes {
	switch l {
	case High:
		return 1
	case Middle:
		return 4
	}
	return 8
}

// NoLimit is the limit of the highest priority, which stops for no other.
const NoLimit = units.MaxTime

// Params are the parameters of a flow; Visit says what each is.
type Params struct {
	LineRate        units.Rate
	BaseRTT, OneWay units.Time // if OneWay is set, the law uses one-way delays
	MSS             units.Bytes
	// Target and Limit are the channel, D_target and D_limit: delays with the base
	// included, base + Tolerance < Target < Limit. Limit may be NoLimit. See package
	// channel.
	Target, Limit units.Time
	Level         Level
	LinearStart   units.Bytes
	StartNow      bool
	Tolerance     units.Time
	Filter        int
	// Rand is the source of the probes' random delays and must be set. Flows may share one on the same
	// goroutine.
	Rand *rand.Rand

	EveryRTT, NoCardinality bool // ablations
}

func (p *Params) bdp() units.Bytes { return p.LineRate.BytesIn(p.BaseRTT) }

// base returns the delay of an empty path, of the kind that the law uses.
func (p *Params) base() units.Time {
	if p.OneWay > 0 {
		return p.OneWay
	}
	return p.BaseRTT
}

// Visit visits the parameters. The channel is the flow's if it has one; otherwise the parameters target and
// limit set it, relative to the base delay.
func (p *Params) Visit(s *param.Set, f *law.Flow) {
	param.Path(s, "line_rate", &p.LineRate, f.Rate, param.Above(0))
	param.Path(s, "base_rtt", &p.BaseRTT, f.BaseRTT, param.Above(0))
	param.Path(s, "mss", &p.MSS, f.MSS, param.Above(0))
	oneWay := p.OneWay > 0
	param.Bool(s, "one_way", &oneWay, false, "one-way delays decide, not round trips")
	if s.Fills() {
		p.Rand, p.OneWay = f.Rand, 0
		if oneWay {
			p.OneWay = f.OneWay
		}
		if oneWay && f.OneWay == 0 {
			s.Fault("one_way", true, "want false: one-way delays are not measured here")
		}
	}
	param.Path(s, "one_way_delay", &p.OneWay, p.OneWay, param.From(0, p.BaseRTT))
	param.Choice(s, "level", &p.Level, p.Level, []string{"low", "middle", "high"}, "how a flow starts (§4.4): its first window, and high without a probe")
	param.Of(s, "linear_start", &p.LinearStart, max(p.bdp()/p.Level.part(), 1), param.Above(0), "W_LS, the window of a start on an empty path and its step per round trip; default an eighth, a quarter or all of the bandwidth-delay product by level")
	param.Bool(s, "start_now", &p.StartNow, p.Level == High, "start without a probe, as at level high")
	param.Of(s, "tolerance", &p.Tolerance, f.Stretch(units.Microsecond), param.AtLeast(0), "largest distance from the base at which a delay still counts as equal to it")
	param.Of(s, "filter", &p.Filter, 2, param.AtLeast(1), "number of consecutive delays that must exceed the limit; 1 in the authors' reference runs")
	param.Bool(s, "every_rtt", &p.EveryRTT, false, "ablation: adaptive increase every round trip instead of every second (§4.2.3)")
	param.Bool(s, "no_cardinality", &p.NoCardinality, false, "ablation: no estimate of how many flows there are (§4.3.1)")
	p.visitChannel(s, f)
}

func (p *Params) visitChannel(s *param.Set, f *law.Flow) {
	target, limit := p.Target-p.base(), max(p.Limit-p.base(), 0)
	if f.Target == 0 {
		param.Of(s, "target", &target, f.Stretch(4*units.Microsecond), param.Any, "D_target above the delay of the empty path; more than the tolerance")
		param.Of(s, "limit", &limit, 0, param.Any, "D_limit above the delay of the empty path; 0s for none, as of a highest priority")
	}
	switch {
	case !s.Fills():
	case f.Target > 0:
		p.Target, p.Limit = f.Target, f.Limit
		for _, name := range []string{"target", "limit"} {
			if s.Has(name) {
				s.Fault(name, s.Given(name), "want none: the flow's channel has it")
			}
		}
	case limit == 0:
		p.Target, p.Limit = p.base()+target, NoLimit
	default:
		p.Target, p.Limit = p.base()+target, p.base()+limit
	}
	if err := p.checkChannel(p.Target, p.Limit); err != nil && !s.Describes() {
		s.Fail(err)
	}
}

func (p *Params) checkChannel(target, limit units.Time) error {
	if least := p.base() + p.Tolerance; target <= least {
		return &param.Error{Name: "target", Value: target.String(), Text: fmt.Sprintf("want more than the base delay and its tolerance, %v", least)}
	}
	if limit <= target {
		return &param.Error{Name: "limit", Value: limit.String(), Text: fmt.Sprintf("want more than the target, %v", target)}
	}
	return nil
}

// DelayLaw is a law that holds a delay at a target and lets PrioPlus steer it.
type DelayLaw interface {
	law.Law
	Steered
}

// Steered are the methods by which PrioPlus drives the law underneath. Windows and steps are bytes of payload,
// in floating point so that steps of less than a byte add up.
type Steered interface {
	// OnDelay is the law's step (the paper's OriginalCC) for an acknowledgement with a delay. The Ack is
	// valid until OnDelay returns.
	OnDelay(a *law.Ack, delay units.Time)
	// SetTarget sets the delay to hold. target is of the kind that OnDelay gets, round trip or one-way; base is
	// that delay on an empty path. The law must not scale the target.
	SetTarget(base, target units.Time)
	// SetIncrease sets the additive increase per round trip to the law's own times scale, plus extra bytes.
	SetIncrease(scale, extra float64)
	// Window and SetWindow get and set the congestion window.
	Window() float64
	SetWindow(w float64)
}
