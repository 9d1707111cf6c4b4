package emulation

import (
	"math"
	"testing"

	"github.com/headgate/headgate/units"
)

const us = units.Microsecond

// series has samples every 10 µs until end, of one flow's rate and a queue; both are functions of
// time.
func series(end units.Time, gbps func(units.Time) float64, queue func(units.Time) units.Bytes) Series {
	var s Series
	sent := 0.0
	for t := units.Time(0); t <= end; t += 10 * us {
		s = append(s, Point{At: t, Flows: []FlowPoint{{Delivered: units.Bytes(math.Round(sent))}}, Queue: queue(t)})
		sent += gbps(t) * 1e9 / 8 * (10 * us).Seconds()
	}
	return s
}

func empty(units.Time) units.Bytes { return 0 }

func TestRates(t *testing.T) {
	// 50 Gb/s, but 10 Gb/s from 200 to 300 µs.
	s := series(400*us, func(t units.Time) float64 {
		if t >= 200*us && t < 300*us {
			return 10
		}
		return 50
	}, empty)
	tests := []struct {
		w          Window
		mean, low  float64
		lowestOver units.Time
	}{
		{Window{0, 200 * us}, 50, 50, 50 * us},
		{Window{200 * us, 300 * us}, 10, 10, 50 * us},
		{Window{100 * us, 300 * us}, 30, 10, 50 * us},
		{Window{0, 400 * us}, 40, 30, 200 * us},
		{Window{0, 30 * us}, 50, 50, 50 * us}, // shorter than the interval of the lowest rate
		{Window{500 * us, 600 * us}, 0, 0, 50 * us},
	}
	for _, tt := range tests {
		part := s.between(tt.w)
		if got := part.rate(0) / 1e9; math.Abs(got-tt.mean) > 0.01 {
			t.Errorf("%v: %.2f Gb/s, want %g", tt.w, got, tt.mean)
		}
		if got := part.lowest(0, tt.lowestOver) / 1e9; math.Abs(got-tt.low) > 0.01 {
			t.Errorf("%v: lowest %.2f Gb/s over %v, want %g", tt.w, got, tt.lowestOver, tt.low)
		}
	}
	if got := s.rates(0, 20*us); len(got) != len(s) || got[10] != 50e9 || got[25] != 10e9 || got[20] != 30e9 {
		t.Errorf("rates over 20 µs are %v at 100 µs, %v at 200 and %v at 250, want 50, 30 and 10 Gb/s", got[10], got[20], got[25])
	}
}

// TestVictim: a flow without anything to lose has no percentage of loss.
func TestVictim(t *testing.T) {
	phase := func(bps float64) PhaseResult { return PhaseResult{Flows: []FlowPhase{{Name: "F0", Measured: bps}}} }
	if v := victim("F0", phase(50e9), phase(10e9)); v == nil || v.Lost != 80 || v.Before != 50e9 {
		t.Errorf("from 50 to 10 Gb/s is %+v, want a loss of 80 %%", v)
	}
	for _, v := range []*Victim{victim("F0", phase(0), phase(10e9)), victim("F7", phase(50e9), phase(10e9))} {
		if v != nil {
			t.Errorf("a flow that did not run lost %+v", v)
		}
	}
}

func TestSettle(t *testing.T) {
	still := func(units.Time) float64 { return 0 }
	tests := []struct {
		name  string
		queue func(units.Time) units.Bytes
		at    units.Time
		ok    bool
	}{
		{"at once", func(units.Time) units.Bytes { return 120 * units.KB }, 0, true},
		{"never", func(units.Time) units.Bytes { return 200 * units.KB }, 0, false},
		{"from 300 µs on", func(t units.Time) units.Bytes {
			if t < 300*us {
				return 600 * units.KB
			}
			return 125 * units.KB
		}, 300 * us, true},
		{"leaves again", func(t units.Time) units.Bytes {
			if t < 900*us {
				return 125 * units.KB
			}
			return 0
		}, 0, false},
		{"swings about the target", func(t units.Time) units.Bytes {
			if t/(20*us)%2 == 0 {
				return 0
			}
			return 250 * units.KB
		}, 0, true},
	}
	for _, tt := range tests {
		s := series(1000*us, still, tt.queue)
		at := s.settle(Series.queueMean, 125e3, settleBand, settleOver)
		if (at != nil) != tt.ok || at != nil && (*at < (tt.at-settleOver).Micros() || *at > tt.at.Micros()) {
			t.Errorf("%s: settles at %v, want %v after %v", tt.name, orNever(at), tt.ok, tt.at)
		}
	}
}

// TestSettleOfARate: one flow reaches its share after 300 µs, another never does.
func TestSettleOfARate(t *testing.T) {
	s := series(1000*us, func(t units.Time) float64 {
		if t < 300*us {
			return 5
		}
		return 10
	}, empty)
	rate := func(s Series) float64 { return s.rate(0) }
	if at := s.settle(rate, 10e9, 0.02, 50*us); at == nil || *at != 300 {
		t.Errorf("the rate settles %v, want after 300 µs", orNever(at))
	}
	for _, level := range []float64{11e9, 0} {
		if at := s.settle(rate, level, 0.02, 50*us); at != nil {
			t.Errorf("the rate settles at %g b/s %v, want never", level, orNever(at))
		}
	}
	if at := s[:3].settle(rate, 5e9, 0.02, 50*us); at != nil {
		t.Errorf("less than a window settles %v", orNever(at))
	}
}

func TestQueueQuantiles(t *testing.T) {
	s := series(1000*us, func(units.Time) float64 { return 0 }, func(t units.Time) units.Bytes { return units.Bytes(t / us) })
	if m := s.queueMean(); m != 500 {
		t.Errorf("mean %g B, want 500", m)
	}
	for q, want := range map[float64]float64{0: 0, 0.05: 50, 0.5: 500, 0.95: 950, 1: 1000} {
		if got := s.queueQuantile(q); got != want {
			t.Errorf("quantile %g is %g B, want %g", q, got, want)
		}
	}
	if got := Series(nil).queueQuantile(0.5); got != 0 {
		t.Errorf("quantile of nothing is %g, want 0", got)
	}
}
