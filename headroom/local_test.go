package headroom

import (
	"testing"

	"github.com/headgate/headgate/tables/log2"
	"github.com/headgate/headgate/units"
)

// With LocalResume only a departure resumes a queue or a port. So an empty one must not be paused
// when its packet is dropped.
func TestLocalDropLeavesTheEmptyAlone(t *testing.T) {
	for _, local := range []bool{false, true} {
		c := Config{
			Policy: DSH, Lossless: 1, Buffer: 30_000, Headroom: 3000, Alpha: 2, LocalResume: local, AllowLoss: true,
			Ports: []Port{{Rate: units.Gbps}, {Rate: units.Gbps}}, DSH: DSHConfig{NoInsurance: true, NoSharedHeadroom: true},
		}
		m, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 { // port 0 holds the whole pool
			if ok, _ := m.Arrive(0, 0, 0, 1500); !ok {
				break
			}
		}
		for m.Usage().Shared < 30_000-1500 {
			m.Arrive(0, 0, 0, 60)
			if m.Stats().LosslessDrops > 10 {
				break
			}
		}
		before := m.Stats()
		ok, signals := m.Arrive(0, 1, 0, 30_000)
		if ok || m.Stats().LosslessDrops != before.LosslessDrops+1 {
			t.Fatalf("local %v: a packet as large as the buffer was stored", local)
		}
		if paused := m.Paused(1) != 0; paused == local || paused != (len(signals) == 1) || paused != m.PortPaused(1) {
			t.Errorf("local %v: port 1, which holds nothing, has paused %08b and sends %v", local, m.Paused(1), signals)
		}
	}
}

// A clock of ticks gives gradients in whole ticks, and Δt saturates.
func TestGradientsOfTicks(t *testing.T) {
	logs, err := log2.New(log2.Default())
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewGradients(units.Gbps, units.Microsecond, 60_000, logs, 64)
	if err != nil {
		t.Fatal(err)
	}
	if line := g.Limit / saturation; line < 1<<15 || line >= 1<<16 || units.Bytes(line) != units.Gbps.BytesIn(units.Microsecond<<g.Unit) {
		t.Errorf("1 Gb/s pass %d B in 2^%d µs", line, g.Unit)
	}
	for _, tc := range []struct{ from, to, want units.Time }{
		{0, 999_999, 0}, {999_999, 1_000_000, 1}, {5_500_000, 7_400_000, 2}, {0, units.Time(1<<33) * units.Microsecond, 1<<32 - 1},
	} {
		if got := g.elapsed(tc.from, tc.to); got != tc.want {
			t.Errorf("from %d to %d ps are %d ticks, want %d", tc.from, tc.to, got, tc.want)
		}
	}
	// A queue that grows at line rate needs Φ, with any clock.
	var e Estimator
	var phi units.Bytes
	for i := range units.Time(100) {
		phi = e.Arrived(g, i*12*units.Microsecond, units.Bytes(i)*1500)
	}
	if phi < 58_000 {
		t.Errorf("φ̂ = %d B at line rate, want about Φ = 60 000 B", phi)
	}
}
