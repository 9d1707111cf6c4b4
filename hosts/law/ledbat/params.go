package ledbat

import (
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

// Params are the parameters of the law; Visit says what each is.
type Params struct {
	LineRate                            units.Rate
	MSS                                 units.Bytes
	Target                              units.Time
	Gain                                float64
	Filter                              int
	BaseDelay                           units.Time
	BaseHistory                         int
	BaseInterval                        units.Time
	AllowedIncrease                     float64
	MinWindow, InitialWindow, MaxWindow units.Bytes
}

// maxTarget is the most that RFC 6817 allows, for the Internet.
const maxTarget = 100 * units.Millisecond

// Visit visits the parameters.
func (p *Params) Visit(s *param.Set, f *law.Flow) {
	param.Path(s, "line_rate", &p.LineRate, f.Rate, param.Above(0))
	param.Path(s, "mss", &p.MSS, f.MSS, param.Above(0))
	base := f.BaseRTT
	if f.OneWay > 0 { // both clocks are one: it can be measured
		base = 0
	}
	param.Of(s, "target", &p.Target, min(f.Stretch(25*units.Microsecond), maxTarget), param.AboveTo(0, maxTarget), "TARGET, the queueing delay sought")
	param.Of(s, "gain", &p.Gain, 1, param.AboveTo(0, 100), "GAIN, the packets that the window grows by in a round trip on an empty path; at most 1 by the RFC")
	param.Of(s, "filter", &p.Filter, 4, param.From(1, maxKept), "CURRENT_FILTER, of how many delays the least counts")
	param.Of(s, "base_delay", &p.BaseDelay, base, param.AtLeast(0), "delay of an empty path; 0s takes the least of base_history intervals; default the base round trip where one-way delays are unknown")
	param.Of(s, "base_history", &p.BaseHistory, 10, param.From(1, maxKept), "BASE_HISTORY, intervals of which the least delay counts")
	param.Of(s, "base_interval", &p.BaseInterval, 60*units.Second, param.Above(0), "length of an interval, a minute in the RFC")
	param.Of(s, "allowed_increase", &p.AllowedIncrease, 1, param.AtLeast(0), "ALLOWED_INCREASE, how many packets the window may grow beyond what is in flight")
	param.Of(s, "min_window", &p.MinWindow, 2*p.MSS, param.Above(0), "MIN_CWND, may be less than a packet; default two packets; PrioPlus, which steers the law, has none")
	param.Of(s, "initial_window", &p.InitialWindow, max(2*p.MSS, p.MinWindow), param.AtLeast(p.MinWindow), "INIT_CWND; default two packets")
	param.Of(s, "max_window", &p.MaxWindow, 0, param.AtLeast(0), "bound of the window; 0B for none")
	if p.MaxWindow > 0 && p.MaxWindow < p.InitialWindow {
		s.Fault("max_window", p.MaxWindow, "want at least initial_window, %v, or 0B for no bound", p.InitialWindow)
	}
}
