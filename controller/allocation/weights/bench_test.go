package weights

import (
	"fmt"
	"testing"
)

func BenchmarkSet(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("%d flows", n), func(b *testing.B) {
			r := open(b, nil)
			flow := func(i int) Key {
				k, err := NewKey("10.0.0.1", "10.0.0.2", uint32(1+i%50000), uint32(1+i/50000))
				if err != nil {
					b.Fatal(err)
				}
				return k
			}
			for i := range n {
				if _, err := r.Set(Caller{Peer: "bench"}, Change{flow(i), 1, "a"}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				if _, err := r.Set(Caller{Peer: "bench"}, Change{flow(i % n), float64(1 + i%3), ""}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
