// Package dcqcn is the reaction point of DCQCN (Zhu et al., "Congestion Control for
// Large-Scale RDMA Deployments", SIGCOMM 2015, §3 and Figure 7), which also answers PACC's
// notifications (PACC, Equation 1). A flow starts at line rate. Each congestion
// notification packet cuts the rate by half of alpha, an estimate of how congested the path is.
// Without them a timer and a byte counter restore the rate in three phases, as in QCN.
//
// The public HPCC simulator (alibaba-edu/High-Precision-Congestion-Control,
// simulation/src/point-to-point/model/rdma-hw.cc, "Mellanox's version of DCQCN") updates alpha by a clock;
// Params.AlphaClock does so.
//
// DCQCN is a rate law: its window is unbounded, so only the transport's own bound applies. Params.Window
// bounds the window as the public HPCC simulator does.
package dcqcn

import (
	"cmp"
	"fmt"
	"math"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

// Law is DCQCN for one flow. The flow's sender owns it.
type Law struct {
	par Params

	current, target float64 // R_C and R_T, bits per second
	alpha           float64
	begun           bool // the first notification has come; nothing runs without it

	alphaFrom  units.Time // the last event of alpha's timer
	heard      bool       // with AlphaClock: a notification came since alphaFrom
	cutFrom    units.Time // with AlphaClock: cuts are due at multiples of CutInterval from then on
	increaseAt units.Time // when the increase timer goes off; MaxTime at line rate
	timerStage int        // T of the paper: events of the timer since the last cut
	byteStage  int        // BC: events of the byte counter
	bytes      units.Bytes

	lastCut units.Time
	cutAt   units.Time // when the cut for a notification is due; MaxTime for none
}

var _ law.Law = (*Law)(nil)

// New returns the law of a flow. An error names the parameter that is wrong and what is allowed.
func New(p Params) (*Law, error) {
	if err := param.Check(p.Visit); err != nil {
		return nil, err
	}
	if p.Window > 0 && p.BDP == 0 {
		return nil, fmt.Errorf("window %g: want 0, since the base round trip, of which it is a part, is not known", p.Window)
	}
	if p.AlphaClock && p.CutInterval == 0 {
		return nil, fmt.Errorf("cut_interval %v: want more than 0 with alpha_clock", p.CutInterval)
	}
	line := float64(p.LineRate)
	return &Law{par: p, current: line, target: line, alpha: 1, increaseAt: units.MaxTime, cutAt: units.MaxTime}, nil
}

// OnAck implements law.Law. The byte counter counts acknowledged payload in place of sent payload.
func (l *Law) OnAck(a *law.Ack) {
	if a.CE && l.par.MarkedACKs {
		l.OnEvent(law.CNP, a.Now)
	}
	if !l.begun || l.par.ByteCounter == 0 {
		return
	}
	l.bytes += a.Acked
	for l.bytes >= l.par.ByteCounter {
		l.bytes -= l.par.ByteCounter
		l.increase()
		l.byteStage++
	}
}

// OnEvent implements law.Law. Go-back-N losses are not the reaction point's concern: the
// paper assumes a lossless fabric.
func (l *Law) OnEvent(e law.Event, now units.Time) {
	switch e {
	case law.CNP:
		switch {
		case l.par.AlphaClock:
			l.notified(now)
		case l.begun && now < l.lastCut+l.par.CutInterval:
			l.cutAt = l.lastCut + l.par.CutInterval
		default:
			l.cut(now)
		}
	case law.Tick:
		l.tick(now)
	}
}

// tick runs the due timers, each at its own time.
func (l *Law) tick(now units.Time) {
	for {
		at := l.Timer()
		switch {
		case at > now:
			return
		case at == l.cutAt:
			l.cut(at)
		default:
			l.increaseAt += l.par.IncreaseTimer
			l.increase()
			l.timerStage++
		}
	}
}

// notified is cnp_received_mlx of the public HPCC simulator. The first notification starts the clocks of alpha
// and of cuts. Each notification counts at the next event of both clocks.
func (l *Law) notified(now units.Time) {
	if l.begun {
		l.alpha, l.alphaFrom = l.clocked(now)
		l.heard = true
	} else {
		l.begun, l.alphaFrom, l.cutFrom = true, now, now+units.Nanosecond // a cut comes after alpha's event of the same time
	}
	if l.cutAt == units.MaxTime {
		l.cutAt = l.cutFrom + ((now-l.cutFrom)/l.par.CutInterval+1)*l.par.CutInterval
	}
}

// clocked returns alpha after the events of its clock up to now, and the time of the last of these events
// (UpdateAlphaMlx). An event moves alpha by g towards 1 if a notification came since the event before,
// otherwise towards 0.
func (l *Law) clocked(now units.Time) (alpha float64, last units.Time) {
	n := (now - l.alphaFrom) / l.par.AlphaTimer
	if n == 0 {
		return l.alpha, l.alphaFrom
	}
	alpha = l.alpha * math.Pow(1-l.par.Gain, float64(n))
	if l.heard {
		alpha += l.par.Gain * math.Pow(1-l.par.Gain, float64(n-1))
		l.heard = false
	}
	return alpha, l.alphaFrom + n*l.par.AlphaTimer
}

// cut is §3.1, Equation 1, in the order of PACC's Equation 1: the cut uses the alpha before this notification raises
// it. With AlphaClock it is CheckRateDecreaseMlx.
func (l *Law) cut(now units.Time) {
	increased := l.timerStage > 0 || l.byteStage > 0
	if !l.par.KeepTarget || increased || !l.begun {
		l.target = l.current
	}
	if l.par.AlphaClock {
		l.alpha, l.alphaFrom = l.clocked(now)
	} else {
		l.alpha = l.Alpha(now)
	}
	l.current = max(l.current*(1-l.alpha/2), float64(l.par.MinRate))
	if !l.par.AlphaClock {
		l.alpha = (1-l.par.Gain)*l.alpha + l.par.Gain
		l.alphaFrom = now
	}
	l.begun, l.lastCut, l.cutAt = true, now, units.MaxTime
	l.increaseAt = now + l.par.IncreaseTimer
	l.timerStage, l.byteStage, l.bytes = 0, 0, 0
}

// increase is Figure 7's right side, at an event of the timer or the byte counter. The stages count the events
// before this one. Fast recovery (Equation 3) lasts until the larger stage is F ("for F = 5 successive
// iterations"), as in the public HPCC simulator. Hyper increase replaces additive increase (Equation 4) when
// the smaller stage exceeds F.
func (l *Law) increase() {
	most, least := max(l.timerStage, l.byteStage), min(l.timerStage, l.byteStage)
	if l.par.ByteCounter == 0 {
		least = l.timerStage
	}
	switch {
	case most < l.par.FastRecovery:
	case least > l.par.FastRecovery:
		l.target += float64(l.par.HyperIncrease)
	default:
		l.target += float64(l.par.AdditiveIncrease)
	}
	l.target = min(l.target, float64(l.par.LineRate))
	l.current = (l.target + l.current) / 2
	if line := float64(l.par.LineRate); line-l.current < 1 {
		l.current, l.increaseAt = line, units.MaxTime // nothing left to increase
	}
}

// Timer implements law.Law.
func (l *Law) Timer() units.Time { return min(l.increaseAt, l.cutAt) }

// Allowance implements law.Law.
func (l *Law) Allowance() law.Allowance {
	return law.Allowance{Rate: max(units.Rate(l.current), 1), Window: l.window()}
}

// window returns how much payload may be in flight.
func (l *Law) window() units.Bytes {
	w := l.par.Window * float64(l.par.BDP)
	switch {
	case w == 0:
		return law.Unbounded
	case l.par.VarWindow:
		w *= l.current / float64(l.par.LineRate)
	}
	return max(units.Bytes(w), 1)
}

// Alpha returns the estimate of congestion at now, 0 to 1. It falls by g with each period of its timer without
// a notification (§3.1, Equation 2). Only a cut uses it, so it is computed on demand and no timer runs.
func (l *Law) Alpha(now units.Time) float64 {
	if !l.begun || now <= l.alphaFrom {
		return l.alpha
	}
	if l.par.AlphaClock {
		alpha, _ := (&Law{par: l.par, alpha: l.alpha, alphaFrom: l.alphaFrom, heard: l.heard}).clocked(now)
		return alpha
	}
	return l.alpha * math.Pow(1-l.par.Gain, float64((now-l.alphaFrom)/l.par.AlphaTimer))
}

// Params are the parameters of the reaction point; Visit says what each is. Times are the paper's (Table 14);
// increases are the paper's, scaled from 40 Gb/s to LineRate.
type Params struct {
	LineRate, MinRate               units.Rate
	Gain                            float64
	AlphaTimer, IncreaseTimer       units.Time
	ByteCounter                     units.Bytes
	FastRecovery                    int
	AdditiveIncrease, HyperIncrease units.Rate
	CutInterval                     units.Time
	KeepTarget                      bool
	AlphaClock, MarkedACKs          bool
	Window                          float64 // window in BDPs; 0 for none
	VarWindow                       bool
	BDP                             units.Bytes // the flow's BDP, the unit of Window
}

// Vendor returns the parameters of NICs in the public HPCC simulator, which PACC calls (τ', T_i) = (1, 300).
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

// VisitNS3 visits the parameters with the defaults of the public HPCC simulator's run.py --cc dcqcn. They
// differ from VisitVendor's: one clock updates alpha, another cuts at most every 4 µs, every marked ACK is a
// notification, and MIN_RATE is 1 Gb/s.
func (p *Params) VisitNS3(s *param.Set, f *law.Flow) {
	p.visit(s, f, ns3(f, units.Microsecond, 4*units.Microsecond, 300*units.Microsecond))
}

// VisitNS3Paper is VisitNS3 with --cc dcqcn_paper: alpha and cuts each 50 µs, T of 55 µs.
func (p *Params) VisitNS3Paper(s *param.Set, f *law.Flow) {
	p.visit(s, f, ns3(f, 50*units.Microsecond, 50*units.Microsecond, 55*units.Microsecond))
}

// ns3 are the parameters of simulation/run.py: t_alpha, t_dec and t_inc; FAST_RECOVERY_TIMES 1, RATE_AI 5 and
// RATE_HAI 50 Mb/s per 25 Gb/s, CLAMP_TARGET_RATE 0, MIN_RATE 1000 Mb/s.
func ns3(f *law.Flow, alpha, cut, increase units.Time) Params {
	return Params{
		AlphaTimer: alpha, CutInterval: cut, IncreaseTimer: increase, FastRecovery: 1,
		AdditiveIncrease: f.Rate / 5000, HyperIncrease: f.Rate / 500, KeepTarget: true,
		AlphaClock: true, MarkedACKs: true, MinRate: min(units.Gbps, f.Rate),
	}
}

func (p *Params) visit(s *param.Set, f *law.Flow, def Params) {
	param.Path(s, "line_rate", &p.LineRate, f.Rate, param.Above(0))
	param.Of(s, "min_rate", &p.MinRate, cmp.Or(def.MinRate, max(p.LineRate/1000, 1)), param.AboveTo(0, p.LineRate), "floor of the rate; default line rate / 1000, 1 Gb/s in the public HPCC simulator")
	param.Of(s, "gain", &p.Gain, 1.0/256, param.Between(0, 1), "g of the estimate of congestion")
	param.Of(s, "alpha_timer", &p.AlphaTimer, f.Stretch(def.AlphaTimer), param.Above(0), "time without a notification after which alpha falls")
	param.Of(s, "increase_timer", &p.IncreaseTimer, f.Stretch(def.IncreaseTimer), param.Above(0), "T of the rate increase")
	param.Of(s, "byte_counter", &p.ByteCounter, def.ByteCounter, param.AtLeast(0), "B of the rate increase, payload sent between events; 0B for the timer alone")
	param.Of(s, "fast_recovery", &p.FastRecovery, def.FastRecovery, param.AtLeast(0), "F, the events that only halve the distance to the target rate")
	param.Of(s, "additive_increase", &p.AdditiveIncrease, max(def.AdditiveIncrease, 1), param.Above(0), "increase of the target rate per event; default 40 Mb/s at 40 Gb/s, NICs' 8 Mb/s")
	param.Of(s, "hyper_increase", &p.HyperIncrease, max(def.HyperIncrease, 1), param.Above(0), "the same in hyper increase; default 400 Mb/s at 40 Gb/s, NICs' 80 Mb/s")
	param.Of(s, "cut_interval", &p.CutInterval, f.Stretch(def.CutInterval), param.AtLeast(0), "least time between two cuts, a notification that comes sooner waits for it; 0s cuts at each, as the paper does")
	if s.Fills() {
		p.BDP = f.BDP()
	}
	param.Of(s, "window", &p.Window, 0, param.From(0, 1000), "bound of the payload in flight, in line rate times base round trip (1 is has_win of the public HPCC simulator); 0 for none")
	param.Bool(s, "var_window", &p.VarWindow, false, "the window shrinks and grows with the rate (var_win of the public HPCC simulator)")
	param.Bool(s, "keep_target", &p.KeepTarget, def.KeepTarget, "leave the target rate alone when a flow is cut again before it has increased, as NICs do; the paper lowers it with each cut")
	param.Bool(s, "alpha_clock", &p.AlphaClock, def.AlphaClock, "alpha moves by a clock of alpha_timer from the first notification on, towards 1 or 0 by whether one came since (binary feedback), and a flow is cut by a clock of cut_interval, as in the public HPCC simulator; else alpha rises with each cut")
	param.Bool(s, "marked_acks", &p.MarkedACKs, def.MarkedACKs, "each acknowledgement of a marked packet is a notification, as in the public HPCC simulator; else CNPs alone are")
}

// NotificationPoint is the receiver's side of one flow (Zhu et al., SIGCOMM 2015, §3.1 and Figure 6). A marked
// packet is answered with a CNP immediately if none was sent within the last gap. All packets marked within a
// gap are answered by one CNP at its end. The zero value has sent none. The gap is the paper's N, 50 µs there;
// it is above 0.
type NotificationPoint struct {
	until units.Time // end of the window that the last CNP opened
	owed  bool       // a packet within it was marked
}

// Marked takes a packet that arrived marked and reports whether to send a CNP now. If not, Due says
// when.
func (n *NotificationPoint) Marked(now, gap units.Time) bool {
	if now < n.until {
		n.owed = true
		return false
	}
	n.until, n.owed = now+gap, false
	return true
}

// Due returns when to call Expired, units.MaxTime for never.
func (n *NotificationPoint) Due() units.Time {
	if !n.owed {
		return units.MaxTime
	}
	return n.until
}

// End returns the end of the window that the last CNP opened.
func (n *NotificationPoint) End() units.Time { return n.until }

// Expired reports whether to send the deferred CNP now.
func (n *NotificationPoint) Expired(now, gap units.Time) bool {
	return n.owed && n.Marked(now, gap)
}
