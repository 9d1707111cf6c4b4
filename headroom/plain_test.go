package headroom

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/units"
)

// TestPlainWayIsTheLongOne compares the short path of most packets with the general one: two
// switches, one without the short path, do the same for the same packets.
func TestPlainWayIsTheLongOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := smallSwitch(t, Static, DT, SIH, Adaptive, Oversubscribed)
		c.AllowLoss = true
		short, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		long, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		if !short.simplePolicy {
			t.Fatalf("policy %s has no short way", c.Policy)
		}
		long.simplePolicy = false
		type held struct {
			port  int
			class uint8
			n     units.Bytes
		}
		var stored []held
		for range rapid.IntRange(50, 400).Draw(t, "steps") {
			if len(stored) == 0 || rapid.IntRange(0, 9).Draw(t, "step") < 6 {
				p := held{rapid.IntRange(0, len(c.Ports)-1).Draw(t, "port"), rapid.SampledFrom([]uint8{0, 3, 7}).Draw(t, "class"), c.MTU}
				ok, signals := short.Arrive(0, p.port, p.class, p.n)
				wantOK, want := long.Arrive(0, p.port, p.class, p.n)
				if ok != wantOK || !slices.Equal(signals, want) {
					t.Fatalf("arrival of %+v: %v with %v, the long way %v with %v", p, ok, signals, wantOK, want)
				}
				if ok {
					stored = append(stored, p)
				}
			} else {
				i := rapid.IntRange(0, len(stored)-1).Draw(t, "which")
				p := stored[i]
				stored = slices.Delete(stored, i, i+1)
				if signals, want := short.Depart(0, p.port, p.class, p.n), long.Depart(0, p.port, p.class, p.n); !slices.Equal(signals, want) {
					t.Fatalf("departure of %+v: %v, the long way %v", p, signals, want)
				}
			}
			if err := short.Audit(); err != nil {
				t.Fatal(err)
			}
			if short.Stats() != long.Stats() || short.Usage() != long.Usage() || !slices.Equal(short.queues, long.queues) {
				t.Fatalf("%+v and %+v, the long way %+v and %+v", short.Stats(), short.queues, long.Stats(), long.queues)
			}
		}
	})
}
