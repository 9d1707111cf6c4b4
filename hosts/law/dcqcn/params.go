package dcqcn

import (
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

// Params are the parameters of the reaction point; Visit says what each is. Times are those of
// the paper (Table 14), increases scale from its 40 Gb/s to LineRate.
type Params struct {
	LineRate, MinRate               units.Rate
	Gain                            float64
	AlphaTimer, IncreaseTimer       units.Time
	ByteCounter                     units.Bytes
	FastRecovery                    int
	AdditiveIncrease, HyperIncrease units.Rate
	CutInterval                     units.Time
	KeepTarget                      bool
}

// Vendor returns the parameters of NICs as the public HPCC simulator has them. PACC's
// (τ', T_i) = (1, 300) is this.
func Vendor(f law.Flow) (p Params) {
	param.Defaults(func(s *param.Set) { p.VisitVendor(s, &f) })
	return p
}

// Visit visits the parameters with the paper's defaults.
func (p *Params) Visit(s *param.Set, f *law.Flow) {
	p.visit(s, f, Params{
		AlphaTimer: 55 * units.Microsecond, IncreaseTimer: 55 * units.Microsecond, ByteCounter: 10 * units.MB, FastRecovery: 5,
		AdditiveIncrease: f.Rate / 1000, HyperIncrease: f.Rate / 100,
	})
}

// VisitVendor visits the parameters with the defaults of NICs: alpha falls every 1 µs, T is
// 300 µs, cuts are 4 µs apart, fast recovery is one step, there is no byte counter, and
// increases are 5 and 50 Mb/s per 25 Gb/s of line rate.
func (p *Params) VisitVendor(s *param.Set, f *law.Flow) {
	p.visit(s, f, Params{
		AlphaTimer: units.Microsecond, IncreaseTimer: 300 * units.Microsecond, FastRecovery: 1,
		AdditiveIncrease: f.Rate / 5000, HyperIncrease: f.Rate / 500, CutInterval: 4 * units.Microsecond, KeepTarget: true,
	})
}

func (p *Params) visit(s *param.Set, f *law.Flow, def Params) {
	param.Path(s, "line_rate", &p.LineRate, f.Rate, param.Above(0))
	param.Of(s, "min_rate", &p.MinRate, max(p.LineRate/1000, 1), param.AboveTo(0, p.LineRate), "floor of the rate; default line rate / 1000")
	param.Of(s, "gain", &p.Gain, 1.0/256, param.Between(0, 1), "g of the estimate of congestion")
	param.Of(s, "alpha_timer", &p.AlphaTimer, f.Stretch(def.AlphaTimer), param.Above(0), "after how long without a notification alpha falls")
	param.Of(s, "increase_timer", &p.IncreaseTimer, f.Stretch(def.IncreaseTimer), param.Above(0), "T of the rate increase")
	param.Of(s, "byte_counter", &p.ByteCounter, def.ByteCounter, param.AtLeast(0), "B of the rate increase, payload sent between events; 0B for the timer alone")
	param.Of(s, "fast_recovery", &p.FastRecovery, def.FastRecovery, param.AtLeast(0), "F, the events that only halve the distance to the target rate")
	param.Of(s, "additive_increase", &p.AdditiveIncrease, max(def.AdditiveIncrease, 1), param.Above(0), "what an event adds to the target rate; default 40 Mb/s at 40 Gb/s, NICs' 8 Mb/s")
	param.Of(s, "hyper_increase", &p.HyperIncrease, max(def.HyperIncrease, 1), param.Above(0), "the same in hyper increase; default 400 Mb/s at 40 Gb/s, NICs' 80 Mb/s")
	param.Of(s, "cut_interval", &p.CutInterval, f.Stretch(def.CutInterval), param.AtLeast(0), "least time between two cuts, a notification that comes sooner waits for it; 0s cuts at each, as the paper does")
	param.Of(s, "keep_target", &p.KeepTarget, def.KeepTarget, param.Any, "leave the target rate alone when a flow is cut again before it has increased, as NICs do; the paper lowers it with each cut")
}
