package experiment

import (
	"context"
	"testing"

	"github.com/headgate/headgate/units"
)

// BenchmarkLoad90 is the first part of load-90.
func BenchmarkLoad90(b *testing.B) { benchmark(b, "load-90", 1500*units.Microsecond) }

// BenchmarkPermutation is bench-permutation's first variant, with a real buffer policy.
func BenchmarkPermutation(b *testing.B) { benchmark(b, "bench-permutation", 10*units.Millisecond) }

func benchmark(b *testing.B, name string, until units.Time) {
	f, err := Open(name)
	if err != nil {
		b.Fatal(err)
	}
	p := f.Plans[0]
	p.Until = until
	b.ReportAllocs()
	var hops uint64
	before, _ := usage()
	for b.Loop() {
		o, err := p.Run(context.Background(), "x", 1, nil)
		if err != nil {
			b.Fatal(err)
		}
		hops += o.Stats.PacketHops
	}
	after, _ := usage()
	b.ReportMetric(float64(hops)/1e6/(after-before), "Mhops/CPUs")
}
