package sim

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

func must[T any](tb testing.TB) func(T, error) T {
	return func(v T, err error) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

// TestLoneFlow compares the completion time of a single flow with a sum computed by hand: 10 full packets of 1054
// B and one of 554 B over three 100 Gb/s links of 1 µs, and the acknowledgement of 64 B back.
func TestLoneFlow(t *testing.T) {
	line := topo.Line{Rate: 100 * units.Gbps, Delay: units.Microsecond}
	s := must[*Sim](t)(New(Config{Graph: must[*topo.Graph](t)(topo.Dumbbell(1, 1, line, line))}))
	if err := s.AddFlows([]FlowSpec{{Src: 0, Dst: 1, Size: 10500, Start: 3 * units.Microsecond, Law: lineRate{}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.RunFlows(units.Second); err != nil {
		t.Fatal(err)
	}
	const perByte = 80 * units.Picosecond
	arrived := 10*1054*perByte + 2*1054*perByte + 554*perByte + 3*units.Microsecond
	want := arrived + 3*(64*perByte+units.Microsecond)
	r := s.Results()[0]
	if r.FCT != want || r.Ideal != want {
		t.Errorf("FCT = %d ps, ideal %d ps, want %d ps", int64(r.FCT), int64(r.Ideal), int64(want))
	}
	if r.Delivered != 3*units.Microsecond+arrived {
		t.Errorf("delivered at %d ps, want %d ps", int64(r.Delivered), int64(3*units.Microsecond+arrived))
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestLoneFlowIsIdeal: random single flows over random lines take exactly their closed form.
func TestLoneFlowIsIdeal(t *testing.T) {
	rates := []units.Rate{10 * units.Gbps, 25 * units.Gbps, 40 * units.Gbps, 100 * units.Gbps, 400 * units.Gbps, 7 * units.Gbps}
	rapid.Check(t, func(t *rapid.T) {
		line := func(name string) topo.Line {
			return topo.Line{
				Rate:  rapid.SampledFrom(rates).Draw(t, name+" rate"),
				Delay: units.Time(rapid.Int64Range(0, int64(3*units.Microsecond)).Draw(t, name+" delay")),
			}
		}
		g, err := topo.Dumbbell(1, 1, line("host"), line("trunk"))
		if err != nil {
			t.Fatal(err)
		}
		g.Links[1].Rate = rapid.SampledFrom(rates).Draw(t, "right rate")
		s, err := New(Config{Graph: g, RTO: units.Second})
		if err != nil {
			t.Fatal(err)
		}
		size := units.Bytes(rapid.Int64Range(1, 200_000).Draw(t, "size"))
		if err := s.AddFlows([]FlowSpec{{Src: 0, Dst: 1, Size: size, Law: lineRate{}}}); err != nil {
			t.Fatal(err)
		}
		if err := s.RunFlows(10 * units.Second); err != nil {
			t.Fatal(err)
		}
		if r := s.Results()[0]; r.FCT != r.Ideal {
			t.Fatalf("FCT %d ps, ideal %d ps", int64(r.FCT), int64(r.Ideal))
		}
	})
}

// TestMD1 sends Poisson arrivals of single packets from many hosts to one link and compares the mean wait with
// Pollaczek and Khinchine's formula for constant service: ρ/(2(1−ρ)) service times.
func TestMD1(t *testing.T) {
	const senders, packets = 64, 60_000
	line := topo.Line{Rate: 100 * units.Gbps, Delay: units.Microsecond}
	for _, load := range []float64{0.3, 0.6, 0.8} {
		g := must[*topo.Graph](t)(topo.Star(senders+1, line))
		s := must[*Sim](t)(New(Config{Graph: g, RTO: units.Second}))
		out := must[int](t)(s.PortOf(senders+1, senders))
		queue := s.Observe(out, 0, 0, units.Second)
		rng := Stream(7, "arrivals")
		service := (100 * units.Gbps).TxTime(1054)
		var flows []FlowSpec
		at := 0.0
		for range packets {
			at += rng.ExpFloat64() * float64(service) / load
			flows = append(flows, FlowSpec{Src: rng.IntN(senders), Dst: senders, Size: 1000, Start: units.Time(at), Law: lineRate{}})
		}
		if err := s.AddFlows(flows); err != nil {
			t.Fatal(err)
		}
		if err := s.RunFlows(units.Second); err != nil {
			t.Fatal(err)
		}
		queue.Until(s.Now())
		// Little's law: the mean queue is the mean wait multiplied by the arrival rate.
		got := queue.Mean() / 1054 * float64(s.Now()) / packets
		want := load / (2 * (1 - load)) * float64(service)
		if sent := s.Port(out).TxBytes; sent != packets*1054 || math.Abs(got-want)/want > 0.05 {
			t.Errorf("load %.1f: packets of %d B waited %v on average, want %v", load, sent, units.Time(got), units.Time(want))
		}
	}
}
