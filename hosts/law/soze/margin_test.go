package soze

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/headgate/headgate/units"
)

// TestStableRange compares the margin with the packet-level model, with and without the law's bound. The
// linearised loop is stable below m·G = π/2. In packets a round trip's step is spread over its acknowledgements,
// so the model stays calm slightly above that. With the bound the same m settles. See the package's
// documentation.
func TestStableRange(t *testing.T) {
	const calm = 2 * units.Microsecond
	quietest, wildest := math.Inf(1), 0.0 // m·G of the first value that oscillates and of the last that is calm
	for _, tt := range []struct {
		near, far float64
		ratio     units.Rate
		m         []float64
	}{
		{6, 10, 1000, []float64{0.2, 0.45, 0.8}}, {48, 48, 20, []float64{0.2, 0.3}}, {48, 48, 1000, []float64{0.05, 0.2, 0.8}},
	} {
		for _, m := range tt.m {
			s := paper
			s.near, s.far, s.m, s.alphaToBeta = tt.near, tt.far, m, tt.ratio
			var swing [2]units.Time
			var rtt units.Time
			for i := range swing {
				s.unbounded = i == 0
				sc := newScene(s, 1)
				for range 4 {
					sc.join(1, 0)
				}
				swing[i] = sc.watch(40).swing
				rtt = sc.rtt
			}
			par := s.params()
			target := NewTarget(par)
			base := rtt - target.Delay(float64(s.rate)*float64(modelMSS)/float64(modelFrame)/4)
			got, err := par.Margin(s.rate*units.Rate(modelMSS)/units.Rate(modelFrame), base, 4)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("RTT %v, alpha/beta %d, m %.2f: m·G %.2f, %+.0f°, swings %v; bounded %.2f, %+.0f°, %v", got.RTT, tt.ratio, m, got.Asked, got.AskedPhase, swing[0], got.Applied, got.Phase, swing[1])
			if swing[0] > calm {
				quietest = min(quietest, got.Asked)
			} else {
				wildest = max(wildest, got.Asked)
			}
			if got.AskedPhase > 33 && swing[0] > calm || got.AskedPhase < -36 && swing[0] < calm {
				t.Errorf("RTT %v, alpha/beta %d, m %.2f: phase margin %+.1f°, and the echo swings by %v", got.RTT, tt.ratio, m, got.AskedPhase, swing[0])
			}
			if got.Phase < 32 || swing[1] > calm {
				t.Errorf("RTT %v, alpha/beta %d, m %.2f with the bound: phase margin %+.1f°, and the echo swings by %v", got.RTT, tt.ratio, m, got.Phase, swing[1])
			}
		}
	}
	t.Logf("the first to swing is at m·G %.2f, the last calm one at %.2f", quietest, wildest)
}

func TestMargin(t *testing.T) {
	p := paperParams()
	m, err := p.Margin(100*units.Gbps, 12*units.Microsecond, 4)
	if err != nil {
		t.Fatal(err)
	}
	// T(25 Gb/s) = 3 µs + 37 µs · ln 4/ln 100.
	if got := fmt.Sprintf("%v %.2f %.2f %.2f %+.1f %v %v", m.Share, m.Gain, m.Asked, m.Applied, m.Phase, m.Within, m.Lemma); m.Delay.Micros() < 14.13 || m.Delay.Micros() > 14.15 ||
		got != "25Gbps 3.25 0.65 0.65 +52.7 true true" {
		t.Errorf("%s, %v", got, m.Delay)
	}
	p.M = 0.8
	if m, _ = p.Margin(100*units.Gbps, 12*units.Microsecond, 4); m.AskedPhase > -50 || m.Applied != 1 || !strings.Contains(m.Verdict(), "without the law's bound it would be m·G 2.60, -59.1°") {
		t.Errorf("%+v: %s", m, m.Verdict())
	}
	// Half a packet per round trip: the gap between two packets counts.
	if m, _ = p.Margin(100*units.Mbps, 12*units.Microsecond, 4); m.Within || m.RTT < 300*units.Microsecond {
		t.Errorf("%+v", m)
	}
	for _, bad := range []struct {
		rate    units.Rate
		rtt     units.Time
		weights float64
		want    string
	}{{0, 1, 1, "rate"}, {1, 0, 1, "rtt"}, {1, 1, 0, "weight"}} {
		if _, err := p.Margin(bad.rate, bad.rtt, bad.weights); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
