package scenario

import (
	"testing"

	"github.com/headgate/headgate/units"
)

// ramp is a flow that runs at low bits per second until turn, then at high.
func ramp(low, high float64, turn, end units.Time) Series {
	var s Series
	var acked float64
	for at := units.Time(0); at <= end; at += 100 * units.Millisecond {
		s = append(s, Point{At: at, Acked: units.Bytes(acked)})
		rate := low
		if at >= turn {
			rate = high
		}
		acked += rate / 8 * 0.1
	}
	return s
}

func TestSettle(t *testing.T) {
	tests := []struct {
		name   string
		series Series
		share  float64
		want   units.Time
		ok     bool
	}{
		{"from the start", ramp(1e6, 1e6, 0, 5*units.Second), 1e6, 0, true},
		{"after a second", ramp(5e5, 1e6, units.Second, 5*units.Second), 1e6, units.Second, true},
		{"never", ramp(5e5, 9e5, units.Second, 5*units.Second), 1e6, 0, false},
		{"leaves again", ramp(1e6, 5e5, 4*units.Second, 5*units.Second), 1e6, 0, false},
		{"no samples", nil, 1e6, 0, false},
		{"shorter than a window", ramp(1e6, 1e6, 0, 300*units.Millisecond), 1e6, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := tt.series.settle(tt.share, 0.02, 500*units.Millisecond)
			if ok != tt.ok || got != tt.want {
				t.Errorf("settle = %v, %v; want %v, %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}

func TestRateBetween(t *testing.T) {
	s := ramp(1e6, 3e6, 2*units.Second, 4*units.Second)
	if got := s.between(2*units.Second, 4*units.Second).rate(); got < 2.99e6 || got > 3.01e6 {
		t.Errorf("rate = %v, want 3e6", got)
	}
	if got := s.between(5*units.Second, 6*units.Second).rate(); got != 0 {
		t.Errorf("rate outside the series = %v, want 0", got)
	}
}
