package experiment

import (
	"runtime"
	"testing"
	gotime "time"

	"github.com/headgate/headgate/units"
)

// BenchmarkLoad90 is the first part of load-90.
func BenchmarkLoad90(b *testing.B) { benchmark(b, "load-90", 1500*units.Microsecond) }

// BenchmarkPermutation is bench-permutation's first variant, with a real buffer policy.
func BenchmarkPermutation(b *testing.B) { benchmark(b, "bench-permutation", 10*units.Millisecond) }

// BenchmarkFatTree is the first part of bench-fat-tree, 1024 hosts.
func BenchmarkFatTree(b *testing.B) { benchmark(b, "bench-fat-tree", 200*units.Microsecond) }

// benchmark runs an experiment on one processor and on all, in turn. It reports the work per second on one
// processor, the speed-up on all, and the largest speed-up that the fabric's partitions allow, which does not
// depend on other load of the machine.
func benchmark(b *testing.B, name string, until units.Time) {
	f, err := Open(name)
	if err != nil {
		b.Fatal(err)
	}
	p := f.Plans[0]
	p.Until = until
	b.ReportAllocs()
	var hops, events, critical uint64
	var cpu, wall [2]float64 // on one and on all
	for b.Loop() {
		for i, cores := range []int{1, runtime.GOMAXPROCS(0)} {
			p.Config.Cores = cores
			used, _ := usage()
			start := gotime.Now()
			o, err := p.Run(b.Context(), "x", 1, nil)
			if err != nil {
				b.Fatal(err)
			}
			now, _ := usage()
			cpu[i], wall[i] = cpu[i]+now-used, wall[i]+gotime.Since(start).Seconds()
			if cores == 1 {
				hops += o.Stats.PacketHops
			}
			events, critical = events+o.work.Events, critical+o.work.Critical
		}
	}
	b.ReportMetric(float64(hops)/1e6/cpu[0], "Mhops/CPUs")
	if runtime.GOMAXPROCS(0) > 1 {
		b.ReportMetric(wall[0]/wall[1], "times-on-all-cores")
		b.ReportMetric(cpu[1]/cpu[0], "CPU-of-all/CPU-of-one")
		b.ReportMetric(float64(events)/float64(max(critical, 1)), "times-at-most")
	}
}
