package sim

import (
	"syscall"
	"testing"

	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// permutation builds the run of bench-permutation with flows of the given size.
func permutation(tb testing.TB, size units.Bytes) *Sim {
	tb.Helper()
	line := topo.Line{Rate: 100 * units.Gbps, Delay: units.Microsecond}
	g, err := topo.FatTree(8, line, line, line)
	if err != nil {
		tb.Fatal(err)
	}
	s, err := New(Config{Graph: g, Seed: 1, NewBuffer: func(i SwitchInfo) (Buffer, error) {
		return NewStatic(len(i.Rates), 0x7F, 500*units.KB, 480*units.KB, 700*units.KB)
	}})
	if err != nil {
		tb.Fatal(err)
	}
	var flows []FlowSpec
	for i := range g.Hosts {
		flows = append(flows, FlowSpec{Src: i, Dst: (i + 64) % 128, Size: size, Law: lineRate{}})
	}
	if err := s.AddFlows(flows); err != nil {
		tb.Fatal(err)
	}
	return s
}

func BenchmarkPermutation(b *testing.B) {
	b.ReportAllocs()
	var hops uint64
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s := permutation(b, 4*units.MB)
		if err := s.RunFlows(units.Second); err != nil {
			b.Fatal(err)
		}
		if err := s.Check(); err != nil {
			b.Fatal(err)
		}
		st := s.Stats()
		hops += st.PacketHops
		if st.FlowsDone != 128 || st.Dropped != 0 {
			b.Fatalf("%+v", st)
		}
	}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
		b.Fatal(err)
	}
	cpu := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	b.ReportMetric(float64(hops)/float64(cpu)*1e3, "Mhops/CPUs")
}

func TestPermutation(t *testing.T) {
	s := permutation(t, 400*units.KB)
	if err := s.RunFlows(units.Second); err != nil {
		t.Fatal(err)
	}
	var lo, hi, sum units.Time = units.MaxTime, 0, 0
	for _, r := range s.Results() {
		lo, hi, sum = min(lo, r.FCT), max(hi, r.FCT), sum+r.FCT
	}
	t.Logf("%+v", s.Stats())
	t.Log(lo, hi, sum/128, s.Results()[0].Ideal, s.PeakPackets())
}
