package swift_test

import (
	"math"
	"strings"
	"testing"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/swift"
	"github.com/headgate/headgate/units"
)

const us = units.Microsecond

func params() swift.Params {
	p := param.For[swift.Params](law.Flow{Rate: 100 * units.Gbps, BaseRTT: 12 * us, MSS: 1000})
	p.Target, p.Increase, p.InitialWindow = 30*us, 500, 100000
	return p
}

func newLaw(t testing.TB, p swift.Params) *swift.Law {
	t.Helper()
	l, err := swift.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Abs(want)+1e-6 {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func ack(now, rtt units.Time) *law.Ack {
	return &law.Ack{Now: now, RTT: rtt, Acked: 1000, Inflight: 1 << 30}
}

func TestIncrease(t *testing.T) {
	l := newLaw(t, params())
	l.OnAck(ack(0, 29*us))
	near(t, "ai/cwnd per packet", l.Window(), 100000+500*1000.0/100000)
	l.SetWindow(500)
	l.OnAck(ack(0, 29*us))
	near(t, "ai per packet below one packet", l.Window(), 1000)
	l.SetWindow(100000)
	l.SetIncrease(0.5, 2000)
	l.OnAck(ack(0, 29*us))
	near(t, "half the step and 2000 B", l.Window(), 100000+2250*1000.0/100000)
	w := l.Window()
	l.OnAck(&law.Ack{RTT: us, Acked: 1000, Inflight: 1000})
	near(t, "a flow that leaves its window unused", l.Window(), w)
	l.OnAck(&law.Ack{RTT: us, Inflight: 1 << 30})
	near(t, "a duplicate", l.Window(), w)
}

func TestDecreaseOncePerRoundTrip(t *testing.T) {
	l := newLaw(t, params())
	l.OnAck(ack(0, 40*us))
	w := 100000 * (1 - 0.8*10/40)
	near(t, "β·(delay − target)/delay", l.Window(), w)
	l.OnAck(ack(39*us, 40*us))
	near(t, "within a round trip", l.Window(), w)
	l.OnAck(ack(40*us, 30*us))
	near(t, "at the target", l.Window(), w)
	l.OnAck(ack(4000*us, 3000*us))
	near(t, "at most max_mdf", l.Window(), w/2)
}

func TestLosses(t *testing.T) {
	l := newLaw(t, params())
	l.OnEvent(law.Loss, 0)
	l.OnEvent(law.Loss, us)
	near(t, "one cut per round trip", l.Window(), 50000)
	for i := range 3 {
		l.OnEvent(law.Loss, units.Time(i)*us)
	}
	near(t, "after five in a row", l.Window(), 10)
}

// §3.5: the whole range at fs_min_cwnd and below, none at fs_max_cwnd and above, plus the topology's part.
func TestTargetScaling(t *testing.T) {
	p := params()
	p.ScalingRange, p.Hops, p.PerHop = 100*us, 5, us
	l := newLaw(t, p)
	for _, tt := range []struct {
		packets float64
		want    units.Time
	}{
		{0.05, 135 * us}, {0.1, 135 * us}, {100, 35 * us}, {1000, 35 * us},
		{1, 35*us + units.Time(float64(100*us)*(1-0.1)/(1/math.Sqrt(0.1)-0.1))},
	} {
		l.SetWindow(tt.packets * 1000)
		if got := l.TargetDelay(); math.Abs(float64(got-tt.want)) > 10 {
			t.Errorf("target at %v packets = %v, want %v", tt.packets, got, tt.want)
		}
	}
}

func TestSmallWindowsArePaced(t *testing.T) {
	l := newLaw(t, params())
	if a := l.Allowance(); a.Rate != 100*units.Gbps || a.Window != 100000 {
		t.Errorf("%+v", a)
	}
	l.SetWindow(250)
	l.OnAck(&law.Ack{Now: 0, RTT: 30 * us})
	if got := l.Allowance().Rate.TxTime(1000); math.Abs(float64(got-120*us)) > 1e3 {
		t.Errorf("a packet every %v at a quarter of a packet per 30 µs, want 120 µs", got)
	}
	l.SetWindow(0)
	near(t, "floor", l.Window(), 10)
}

func TestParams(t *testing.T) {
	for name, bad := range map[string]func(*swift.Params){
		"line_rate":      func(p *swift.Params) { p.LineRate = 0 },
		"base_rtt":       func(p *swift.Params) { p.BaseRTT = 0 },
		"mss":            func(p *swift.Params) { p.MSS = 0 },
		"target":         func(p *swift.Params) { p.Target = us },
		"hops":           func(p *swift.Params) { p.Hops = -1 },
		"per_hop":        func(p *swift.Params) { p.PerHop = -1 },
		"scaling_range":  func(p *swift.Params) { p.ScalingRange = -1 },
		"scaling_min":    func(p *swift.Params) { p.ScalingMin = math.NaN() },
		"scaling_max":    func(p *swift.Params) { p.ScalingMax = 0.05 },
		"increase":       func(p *swift.Params) { p.Increase = -1 },
		"beta":           func(p *swift.Params) { p.Beta = 2 },
		"max_mdf":        func(p *swift.Params) { p.MaxMDF = 1 },
		"min_window":     func(p *swift.Params) { p.MinWindow = 0.5 },
		"max_window":     func(p *swift.Params) { p.MaxWindow = 5 },
		"initial_window": func(p *swift.Params) { p.InitialWindow = -1 },
		"retx_reset":     func(p *swift.Params) { p.RetxReset = -1 },
	} {
		p := params()
		bad(&p)
		if _, err := swift.New(p); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: error %v, want one that names it", name, err)
		}
	}
}

func BenchmarkOnAck(b *testing.B) {
	p := params()
	p.ScalingRange = 100 * us
	l := newLaw(b, p)
	a := ack(0, 0)
	b.ReportAllocs()
	for b.Loop() {
		a.Now += 80 * units.Nanosecond
		a.RTT = 25*us + a.Now%(10*us)
		l.OnAck(a)
	}
}

// TestTargetAbove: a target can be given relative to the path's round trip.
func TestTargetAbove(t *testing.T) {
	f := law.Flow{Rate: 100 * units.Gbps, BaseRTT: 12 * units.Microsecond, MSS: 1000, Weight: 1}
	for given, want := range map[string]units.Time{"": 37 * units.Microsecond, "4us": 16 * units.Microsecond} {
		var p swift.Params
		visit := func(s *param.Set) { p.Visit(s, &f) }
		values := map[string]string{}
		if given != "" {
			values["target_above"] = given
		}
		set, err := param.Parse(visit, values)
		if err == nil {
			err = set.Fill(visit)
		}
		if err != nil || p.Target != want {
			t.Errorf("%q above: target %v, error %v, want %v", given, p.Target, err, want)
		}
	}
	var p swift.Params
	visit := func(s *param.Set) { p.Visit(s, &f) }
	set, err := param.Parse(visit, map[string]string{"target_above": "4us", "target": "20us"})
	if err == nil {
		err = set.Fill(visit)
	}
	if err == nil || !strings.Contains(err.Error(), "want it or target, not both") {
		t.Errorf("both taken: %v", err)
	}
}
