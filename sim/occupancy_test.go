package sim

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// TestOccupancyIsExact sends eight bursts of 20 packets at once to one host. The queue grows to 140 frames within
// the burst's time and falls as fast as the link drains it. Samples every 100 µs would miss this.
func TestOccupancyIsExact(t *testing.T) {
	const senders, packets, frame = 8, 20, 1054
	g := must[*topo.Graph](t)(topo.Star(senders+1, line100))
	s := must[*Sim](t)(New(Config{Graph: g}))
	var flows []FlowSpec
	for i := range senders {
		flows = append(flows, FlowSpec{Src: i, Dst: senders, Size: packets * 1000, Law: lineRate{}})
	}
	if err := s.AddFlows(flows); err != nil {
		t.Fatal(err)
	}
	port := must[int](t)(s.PortOf(senders+1, senders))
	all := s.Observe(port, 0, 0, 100*units.Microsecond)
	later := s.Observe(port, 0, 50*units.Microsecond, 100*units.Microsecond)
	if err := s.Run(100 * units.Microsecond); err != nil {
		t.Fatal(err)
	}
	all.Until(s.Now())
	later.Until(s.Now())
	// While the last of 20 rounds arrives, 8·20 frames have come and 20 have left or are leaving.
	if got := all.Quantile(1); got != (senders*packets-packets)*frame {
		t.Errorf("longest queue %v B, want %d", got, (senders*packets-packets)*frame)
	}
	// The queue is a triangle: up for 20 frame times, down for 140.
	tx := line100.Rate.TxTime(frame)
	want := float64((senders-1)*packets*frame) / 2 * float64(senders*packets*tx) / float64(100*units.Microsecond)
	if got := all.Mean(); math.Abs(got/want-1) > 0.02 {
		t.Errorf("mean queue %.0f B, want %.0f", got, want)
	}
	if got := all.Quantile(0.5); got != 0 {
		t.Errorf("median %v B of a queue that is empty most of the time", got)
	}
	if got := later.Quantile(1); got != 0 {
		t.Errorf("longest queue after the burst %v B", got)
	}
}

// TestPeaks: a level's local maxima count once each. Those outside the time range do not count, and a time
// without a value ends a rise.
func TestPeaks(t *testing.T) {
	o := newOccupancy(0, 10, 100, 0)
	o.peaks = true
	for i, v := range []int64{9, 0, 5, 5, 3, 7, 8, Unknown, 2, 1, 4, 3, 1} {
		o.set(units.Time(5*(i+1)), v)
	}
	o.Until(100)
	// 9 ends at 10, 5 at 25, 8 at 40, 2 at 50, 4 at 60.
	if d := cmp.Diff(map[int64]int64{9: 1, 5: 1, 8: 1, 2: 1, 4: 1}, o.spans); d != "" {
		t.Error(d)
	}
	if o.Mean() != 5.6 || o.Quantile(0.5) != 5 {
		t.Errorf("mean %v, median %v, want 5.6 and 5", o.Mean(), o.Quantile(0.5))
	}
}
