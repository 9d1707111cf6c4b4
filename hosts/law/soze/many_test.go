package soze

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/tests/race"
	"github.com/headgate/headgate/units"
)

// TestManyFlows: 10 to 1 000 000 flows of one link reach their weighted shares within ten round trips after half of
// them got four times the weight (Söze, §5.3.4 and Figure 19b). A packet simulator is too slow for a million flows, so
// the law runs over a model: all flows have the same round trip, and windows clock the link, so its queue is the sum of
// windows minus the path's own bytes. The link has 1 Gb/s per flow.
func TestManyFlows(t *testing.T) {
	sizes := []int{10, 10_000, 100_000}
	if !race.Enabled {
		sizes = append(sizes, 1_000_000)
	}
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			l := newManyFlows(t, n)
			for range 25 {
				l.round()
			}
			if off := l.off(); off > 0.02 {
				t.Fatalf("before the change a flow is %.1f %% off its share", 100*off)
			}
			l.weigh(t, 4)
			rounds := 0
			for ; l.off() > 0.1 && rounds < 100; rounds++ {
				l.round()
			}
			for range 5 {
				l.round()
				if off := l.off(); off > 0.1 {
					t.Errorf("a flow leaves its share again: %.1f %%", 100*off)
				}
			}
			if t.Logf("all flows within 10 %% after %d round trips", rounds); rounds > 10 {
				t.Errorf("all flows are within 10 %% after %d round trips, want at most 10", rounds)
			}
		})
	}
}

// manyFlows are flows of one link.
type manyFlows struct {
	rate  float64    // of the link, bytes per picosecond
	base  units.Time // round trip without the queue
	queue units.Time
	sent  uint64 // by each flow
	laws  []*Law
	rng   *rand.Rand
}

func newManyFlows(t *testing.T, n int) *manyFlows {
	const base = 12500 * units.Nanosecond // the longest round trip of a fat-tree with k = 16
	l := &manyFlows{rate: float64(n) * 1e9 * picobits, base: base, rng: rand.New(rand.NewPCG(1, uint64(n)))}
	par := paperParams()
	par.Beta = 100 * units.Mbps
	for range n {
		law, err := New(par, 1)
		if err != nil {
			t.Fatal(err)
		}
		l.laws = append(l.laws, law)
	}
	l.weigh(t, 1)
	return l
}

// weigh gives each flow a new weight from 1 to 4; every second flow's is multiplied by a factor.
func (l *manyFlows) weigh(t *testing.T, factor float64) {
	for i, law := range l.laws {
		w := 1 + 3*l.rng.Float64()
		if i%2 == 1 {
			w *= factor
		}
		if err := law.SetWeight(w); err != nil {
			t.Fatal(err)
		}
	}
}

// round is one round trip, in which each flow gets one acknowledgement of its whole window.
func (l *manyFlows) round() {
	windows := 0.0
	for _, law := range l.laws {
		windows += float64(law.Allowance().Window)
	}
	l.queue = max(0, units.Time(windows/l.rate)-l.base)
	l.sent += 1 << 30
	for _, f := range l.laws {
		w := f.Allowance().Window
		f.OnAck(&law.Ack{RTT: l.base + l.queue, Acked: w, Inflight: w, AckedSeq: l.sent, SentSeq: l.sent + 1<<30, MaxQD: l.queue})
	}
}

// off returns the largest distance of a flow's rate from its weighted share, as a fraction of the share.
func (l *manyFlows) off() (most float64) {
	weights := 0.0
	for _, law := range l.laws {
		weights += law.Weight()
	}
	for _, law := range l.laws {
		share := float64(len(l.laws)) * 1e9 * law.Weight() / weights
		most = max(most, math.Abs(float64(law.Rate())/share-1))
	}
	return most
}
