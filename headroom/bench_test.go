package headroom

import (
	"testing"

	"github.com/headgate/headgate/units"
)

// churn sends packets of all ports and classes through the switch of DSH's evaluation. Peers obey
// PFC at once. It records its calls.
type churn struct {
	m          *MMU
	now        units.Time
	fifo       [1 << 15]int16 // queues of the stored packets, in order of arrival
	head, tail uint32
	depth      uint32
	x          uint32
	calls      []int16
}

// A call is a queue, port · 8 + class, that a packet arrives at, or ^queue for one that
// departs. Calls are callTime apart: half a packet at 32 · 100 Gb/s.
const callTime units.Time = 3750

func newChurn(tb testing.TB, k Kind, depth uint32) *churn {
	return &churn{m: newTomahawk(tb, k), depth: depth, x: 1}
}

func newTomahawk(tb testing.TB, k Kind) *MMU {
	c := tomahawk(k)
	c.Lossless = 0xFF
	c.Buffer = 18 * units.MB
	m, err := New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// step is one Arrive or one Depart. It is a Depart if memory is at its target or all asked peers
// are paused.
func (w *churn) step() {
	for try := 0; try < 4 && w.tail-w.head < w.depth; try++ {
		w.x ^= w.x << 13
		w.x ^= w.x >> 17
		w.x ^= w.x << 5
		q := int16(w.x >> 24)
		if w.m.Paused(int(q)/Classes)>>(q%Classes)&1 != 0 {
			continue
		}
		w.calls = append(w.calls, q)
		if w.call(q) {
			w.fifo[w.tail%uint32(len(w.fifo))] = q
			w.tail++
		}
		return
	}
	if w.head != w.tail {
		q := w.fifo[w.head%uint32(len(w.fifo))]
		w.head++
		w.calls = append(w.calls, ^q)
		w.call(^q)
	}
}

// call makes one call of the MMU. For an arrival it reports whether the packet was admitted.
func (w *churn) call(q int16) (ok bool) {
	w.now += callTime
	if q < 0 {
		w.m.Depart(w.now, int(^q)/Classes, uint8(^q%Classes), 1500)
		return true
	}
	ok, _ = w.m.Arrive(w.now, int(q)/Classes, uint8(q%Classes), 1500)
	return ok
}

// BenchmarkCall measures one Arrive or Depart: "idle" far below all thresholds, "congested" while
// all peers send as much as PFC allows. It replays recorded calls on a new MMU that has been filled
// first, so that choosing the calls is not measured.
func BenchmarkCall(b *testing.B) {
	const fill, calls = 200_000, 1_000_000
	for _, load := range []struct {
		name  string
		depth uint32
	}{{"idle", 64}, {"congested", 1 << 15}} {
		for _, k := range Kinds() {
			b.Run(load.name+"/"+string(k), func(b *testing.B) {
				trace := newChurn(b, k, load.depth)
				for len(trace.calls) < fill+calls {
					trace.step()
				}
				var frames uint64
				w, at := &churn{}, len(trace.calls)
				b.ReportAllocs()
				for b.Loop() {
					if at == len(trace.calls) {
						b.StopTimer()
						w = &churn{m: newTomahawk(b, k)}
						for _, q := range trace.calls[:fill] {
							w.call(q)
						}
						at, frames = fill, frames-w.frames()
						b.StartTimer()
					}
					w.call(trace.calls[at])
					if at++; at == len(trace.calls) {
						frames += w.frames()
					}
				}
				if at < len(trace.calls) {
					frames += w.frames()
				}
				b.ReportMetric(float64(frames)/float64(b.N), "frames/op")
			})
		}
	}
}

func (w *churn) frames() uint64 {
	s := w.m.Stats()
	return s.PauseFrames + s.ResumeFrames
}

func TestNothingIsAllocated(t *testing.T) {
	for _, k := range Kinds() {
		w := newChurn(t, k, 1<<15)
		w.calls = make([]int16, 0, 300_000)
		for range 200_000 {
			w.step()
		}
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
