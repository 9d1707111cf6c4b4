package dcqcn_test

import (
	"math"
	"strings"
	"testing"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/dcqcn"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/units"
)

const us = units.Microsecond

func newLaw(t testing.TB, p dcqcn.Params) *dcqcn.Law {
	t.Helper()
	l, err := dcqcn.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func params(line units.Rate, change ...func(*dcqcn.Params)) dcqcn.Params {
	p := param.For[dcqcn.Params](law.Flow{Rate: line})
	for _, c := range change {
		c(&p)
	}
	return p
}

func rate(l *dcqcn.Law) float64 { return float64(l.Allowance().Rate) }

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6*math.Abs(want)+1 {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// Equation 1 of the paper and of PACC: the cut uses the alpha of before the update.
func TestCut(t *testing.T) {
	l := newLaw(t, params(40*units.Gbps, func(p *dcqcn.Params) { p.Gain = 0.25 }))
	near(t, "rate at the start", rate(l), 40e9)
	l.OnEvent(law.CNP, 0)
	near(t, "rate after one cut, alpha 1", rate(l), 20e9)
	near(t, "target", float64(l.Target()), 40e9)
	l.OnEvent(law.CNP, 110*us) // two periods of 55 µs: alpha 1 → 0.75²
	near(t, "alpha", 1e9*l.Alpha(110*us), 1e9*(0.75*0.5625+0.25))
	near(t, "rate after the second cut", rate(l), 20e9*(1-0.5625/2))
	near(t, "target after the second cut", float64(l.Target()), 20e9)
}

// Figure 7's right side: fast recovery, then additive, then hyper increase.
func TestPhases(t *testing.T) {
	p := params(40*units.Gbps, func(p *dcqcn.Params) { p.FastRecovery, p.ByteCounter = 3, units.MB })
	l := newLaw(t, p)
	l.OnEvent(law.CNP, 0)
	l.OnEvent(law.CNP, 0) // 40 → 20 → 10, target 20
	current, target := 10e9, 20e9
	tick := func() {
		l.OnEvent(law.Tick, l.Timer())
	}
	for range 3 { // F events, whatever comes first (§3.1: "for F = 5 successive iterations")
		tick()
		current = (current + target) / 2
		near(t, "fast recovery", rate(l), current)
	}
	tick() // T = 3 = F: additive
	target += 40e6
	current = (current + target) / 2
	near(t, "additive increase", rate(l), current)
	tick() // T = 4 > F but BC = 0: still additive
	target += 40e6
	current = (current + target) / 2
	near(t, "additive increase with the byte counter behind", rate(l), current)
	for range 4 { // BC = 0, 1, 2, 3: min is at most F, additive
		l.OnAck(&law.Ack{Acked: units.MB})
		target += 40e6
		current = (current + target) / 2
	}
	near(t, "additive increase by bytes", rate(l), current)
	l.OnAck(&law.Ack{Acked: units.MB}) // BC = 4, T = 5: both beyond F
	target += 400e6
	current = (current + target) / 2
	near(t, "hyper increase", rate(l), current)
	l.OnEvent(law.CNP, units.Millisecond)
	if got := l.Timer(); got != units.Millisecond+55*us {
		t.Errorf("a cut restarts the timer at %v", got)
	}
	before := rate(l)
	tick()
	near(t, "fast recovery again", rate(l), (before+float64(l.Target()))/2)
}

// NICs as in HPCC's public simulator: one step of fast recovery, one of additive increase, then
// hyper increase.
func TestVendorPhases(t *testing.T) {
	p := dcqcn.Vendor(law.Flow{Rate: 100 * units.Gbps})
	l := newLaw(t, p)
	l.OnEvent(law.CNP, 0)
	target := 100e9
	near(t, "target", float64(l.Target()), target)
	l.OnEvent(law.CNP, 4*us)
	l.OnEvent(law.Tick, l.Timer())
	near(t, "rate after fast recovery", rate(l), (100e9+50e9*(1-math.Pow(1-1.0/256, 4)/2))/2)
	l2 := newLaw(t, params(40*units.Gbps, func(p *dcqcn.Params) { p.FastRecovery, p.ByteCounter = 1, 0 }))
	l2.OnEvent(law.CNP, 0)
	l2.OnEvent(law.CNP, 0) // 10, target 20
	for i, add := range []float64{0, 40e6, 400e6, 400e6} {
		l2.OnEvent(law.Tick, l2.Timer())
		if want := float64(l2.Target()); i == 0 {
			target = 20e9
			near(t, "target in fast recovery", want, target)
		} else {
			target += add
			near(t, "target", want, target)
		}
	}
}

func TestByteCounterAlone(t *testing.T) {
	l := newLaw(t, params(40*units.Gbps, func(p *dcqcn.Params) { p.ByteCounter = units.MB }))
	l.OnAck(&law.Ack{Acked: 5 * units.MB})
	near(t, "before any cut", rate(l), 40e9)
	l.OnEvent(law.CNP, 0)
	l.OnAck(&law.Ack{Acked: 999 * units.KB})
	near(t, "short of B", rate(l), 20e9)
	l.OnAck(&law.Ack{Acked: units.KB})
	near(t, "at B", rate(l), 30e9)
}

func TestCutInterval(t *testing.T) {
	p := dcqcn.Vendor(law.Flow{Rate: 100 * units.Gbps})
	l := newLaw(t, p)
	l.OnEvent(law.CNP, 0)
	l.OnEvent(law.CNP, us)
	l.OnEvent(law.CNP, 2*us)
	near(t, "rate within the interval", rate(l), 50e9)
	if l.Timer() != 4*us {
		t.Fatalf("timer %v, want 4 µs", l.Timer())
	}
	l.OnEvent(law.Tick, 4*us)
	a := math.Pow(1-1.0/256, 4) // alpha is still 1 at the first cut, then four periods of 1 µs
	near(t, "rate after the interval", rate(l), 50e9*(1-a/2))
	near(t, "target is kept by NICs", float64(l.Target()), 100e9)
	if l.Timer() != 304*us {
		t.Errorf("timer %v, want 304 µs", l.Timer())
	}
}

func TestBackAtLineRateNothingRuns(t *testing.T) {
	l := newLaw(t, params(40*units.Gbps))
	l.OnEvent(law.CNP, 0)
	for i := 0; l.Timer() != units.MaxTime; i++ {
		if i > 1000 {
			t.Fatal("the timer never stops")
		}
		l.OnEvent(law.Tick, l.Timer())
	}
	near(t, "rate", rate(l), 40e9)
	for range 200 {
		l.OnEvent(law.CNP, units.Second)
	}
	near(t, "floor", rate(l), 40e6)
}

func TestParams(t *testing.T) {
	ok := params(units.Gbps)
	for name, bad := range map[string]func(*dcqcn.Params){
		"line_rate":         func(p *dcqcn.Params) { p.LineRate = 0 },
		"min_rate":          func(p *dcqcn.Params) { p.MinRate = 2 * units.Gbps },
		"gain":              func(p *dcqcn.Params) { p.Gain = math.NaN() },
		"alpha_timer":       func(p *dcqcn.Params) { p.AlphaTimer = -1 },
		"increase_timer":    func(p *dcqcn.Params) { p.IncreaseTimer = -1 },
		"byte_counter":      func(p *dcqcn.Params) { p.ByteCounter = -2 },
		"fast_recovery":     func(p *dcqcn.Params) { p.FastRecovery = -1 },
		"additive_increase": func(p *dcqcn.Params) { p.AdditiveIncrease = -1 },
		"hyper_increase":    func(p *dcqcn.Params) { p.HyperIncrease = -1 },
		"cut_interval":      func(p *dcqcn.Params) { p.CutInterval = -1 },
	} {
		p := ok
		bad(&p)
		if _, err := dcqcn.New(p); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: error %v, want one that names it", name, err)
		}
	}
}

func BenchmarkOnAck(b *testing.B) {
	l := newLaw(b, params(100*units.Gbps))
	l.OnEvent(law.CNP, 0)
	ack := law.Ack{Acked: 1000}
	b.ReportAllocs()
	for b.Loop() {
		l.OnAck(&ack)
	}
}

// A window bounds the bytes in flight. A variable window follows the rate, as in HPCC's public simulator.
func TestWindow(t *testing.T) {
	flow := law.Flow{Rate: 100 * units.Gbps, BaseRTT: 8 * us}
	for _, c := range []struct {
		window            float64
		vary              bool
		full, half, least units.Bytes
	}{
		{0, false, law.Unbounded, law.Unbounded, law.Unbounded},
		{0, true, law.Unbounded, law.Unbounded, law.Unbounded},
		{1, false, 100_000, 100_000, 100_000},
		{1.5, true, 150_000, 75_000, 150},
	} {
		p := param.For[dcqcn.Params](flow)
		p.Window, p.VarWindow = c.window, c.vary
		l := newLaw(t, p)
		full := l.Allowance().Window
		l.OnEvent(law.CNP, 0)
		half := l.Allowance().Window
		for range 100 {
			l.OnEvent(law.CNP, 0)
		}
		if least := l.Allowance().Window; full != c.full || half != c.half || least != c.least {
			t.Errorf("window %g, varying %v: %v, %v and %v, want %v, %v and %v", c.window, c.vary, full, half, least, c.full, c.half, c.least)
		}
	}
	p := params(100*units.Gbps, func(p *dcqcn.Params) { p.Window = 1 })
	if _, err := dcqcn.New(p); err == nil || !strings.Contains(err.Error(), "window 1: want 0, since the base round trip") {
		t.Errorf("a window of an unknown round trip: %v", err)
	}
}
