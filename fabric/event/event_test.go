package event

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/units"
)

func TestOrderIsTimeThenSequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue
		type entry struct {
			at  units.Time
			arg int32
		}
		var want []entry
		for i, at := range rapid.SliceOf(rapid.Int64Range(0, 20)).Draw(t, "times") {
			q.Schedule(units.Time(at), 0, int32(i))
			want = append(want, entry{units.Time(at), int32(i)})
		}
		slices.SortStableFunc(want, func(a, b entry) int { return int(a.at - b.at) })
		for i, w := range want {
			e, ok := q.Next(units.MaxTime)
			if !ok || e.At != w.at || e.Arg != w.arg {
				t.Fatalf("event %d = %+v, %v; want %+v", i, e, ok, w)
			}
		}
		if _, ok := q.Next(units.MaxTime); ok {
			t.Fatal("an event more than was scheduled")
		}
	})
}

func TestNextHonoursUntil(t *testing.T) {
	var q Queue
	q.Schedule(10, 1, 0)
	if _, ok := q.Next(9); ok {
		t.Error("an event after until was taken")
	}
	if e, ok := q.Next(10); !ok || e.Kind != 1 {
		t.Errorf("Next(10) = %+v, %v", e, ok)
	}
}

func TestThePastIsNow(t *testing.T) {
	var q Queue
	q.Schedule(10, 0, 0)
	q.Next(10)
	q.Schedule(3, 0, 0)
	if e, _ := q.Next(units.MaxTime); e.At != 10 {
		t.Errorf("an event for the past ran at %v, want 10", int64(e.At))
	}
}

// TestAgainstSortedList holds the wheel and its heap against a plain list, with times on
// both sides of the horizon and events scheduled while others are taken.
func TestAgainstSortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := NewQueue(units.Time(rapid.Int64Range(0, 1<<30).Draw(t, "horizon")))
		type entry struct {
			at  units.Time
			arg int32
		}
		var list []entry
		next := int32(0)
		now := units.Time(0)
		spans := []int64{1, 1 << 9, 1 << 15, 1 << 22, 1 << 23, 1 << 30, 1 << 45}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if rapid.IntRange(0, 2).Draw(t, "take") > 0 {
				span := rapid.SampledFrom(spans).Draw(t, "span")
				at := now + units.Time(rapid.Int64Range(0, span).Draw(t, "at"))
				q.Schedule(at, uint32(next)%MaxKind, next)
				i := len(list)
				for i > 0 && list[i-1].at > at {
					i--
				}
				list = slices.Insert(list, i, entry{at, next})
				next++
				continue
			}
			until := now + units.Time(rapid.SampledFrom(spans).Draw(t, "until"))
			e, ok := q.Next(until)
			if want := len(list) > 0 && list[0].at <= until; ok != want {
				t.Fatalf("Next(%d) = %v, want %v", int64(until), ok, want)
			}
			if !ok {
				continue
			}
			if e.At != list[0].at || e.Arg != list[0].arg || e.Kind != uint32(e.Arg)%MaxKind {
				t.Fatalf("Next = %+v, want %+v", e, list[0])
			}
			list, now = list[1:], e.At
			if q.Len() != len(list) || q.Now() != now {
				t.Fatalf("Len, Now = %d, %v, want %d, %v", q.Len(), q.Now(), len(list), now)
			}
		}
	})
}

// BenchmarkHold takes one event and schedules another, the classic hold model.
func BenchmarkHold(b *testing.B) {
	for _, n := range []int{16, 256, 4096, 65536} {
		b.Run(fmt.Sprintf("pending=%d", n), func(b *testing.B) {
			var q Queue
			r := rand.New(rand.NewPCG(1, 2))
			for i := range n {
				q.Schedule(units.Time(r.Int64N(1000000)), 0, int32(i))
			}
			b.ReportAllocs()
			for b.Loop() {
				e, _ := q.Next(units.MaxTime)
				q.Schedule(e.At+units.Time(e.Arg&1023)*977+1, 0, e.Arg)
			}
		})
	}
}
