package headroom

import (
	"testing"

	"github.com/headgate/headgate/units"
)

// churn sends packets of all ports and classes through the switch of DSH's evaluation.
// Peers obey PFC at once.
type churn struct {
	m          *MMU
	now        units.Time
	fifo       [1 << 15]int32 // queues of the stored packets, in order of arrival
	head, tail uint32
	depth      uint32
	x          uint32
}

func newChurn(tb testing.TB, k Kind, depth uint32) *churn {
	c := tomahawk(k)
	c.Lossless = 0xFF
	c.Buffer = 18 * units.MB
	m, err := New(c)
	if err != nil {
		tb.Fatal(err)
	}
	w := &churn{m: m, depth: depth, x: 1}
	for range 200_000 {
		w.step()
	}
	return w
}

// step is one Arrive or, when memory is as full as it should be or all peers that were
// asked are paused, one Depart.
func (w *churn) step() {
	w.now += 3750 // half a packet at 32 · 100 Gb/s
	for try := 0; try < 4 && w.tail-w.head < w.depth; try++ {
		w.x ^= w.x << 13
		w.x ^= w.x >> 17
		w.x ^= w.x << 5
		q := int32(w.x >> 24)
		if w.m.Paused(int(q)/Classes)>>(q%Classes)&1 != 0 {
			continue
		}
		if ok, _ := w.m.Arrive(w.now, int(q)/Classes, uint8(q%Classes), 1500); ok {
			w.fifo[w.tail%uint32(len(w.fifo))] = q
			w.tail++
		}
		return
	}
	if w.head != w.tail {
		q := w.fifo[w.head%uint32(len(w.fifo))]
		w.head++
		w.m.Depart(w.now, int(q)/Classes, uint8(q%Classes), 1500)
	}
}

// BenchmarkCall measures one Arrive or Depart: "idle" far below all thresholds, "congested"
// with all peers sending whatever PFC lets them.
func BenchmarkCall(b *testing.B) {
	for _, load := range []struct {
		name  string
		depth uint32
	}{{"idle", 64}, {"congested", 1 << 15}} {
		for _, k := range Kinds() {
			b.Run(load.name+"/"+string(k), func(b *testing.B) {
				w := newChurn(b, k, load.depth)
				before := w.m.Stats()
				b.ReportAllocs()
				for b.Loop() {
					w.step()
				}
				s := w.m.Stats()
				frames := s.PauseFrames + s.ResumeFrames - before.PauseFrames - before.ResumeFrames
				b.ReportMetric(float64(frames)/float64(b.N), "frames/op")
			})
		}
	}
}

func TestNothingIsAllocated(t *testing.T) {
	for _, k := range Kinds() {
		w := newChurn(t, k, 1<<15)
		before := w.m.Stats().PauseFrames
		if n := testing.AllocsPerRun(10, func() {
			for range 2000 {
				w.step()
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations in 2000 steps", k, n)
		}
		if w.m.Stats().PauseFrames == before {
			t.Errorf("%s: nobody was paused, so this shows little", k)
		}
		if err := w.m.Audit(); err != nil {
			t.Errorf("%s: %v", k, err)
		}
	}
}
