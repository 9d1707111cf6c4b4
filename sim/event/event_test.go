package event

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/units"
)

func TestOrderIsTimeThenKindThenArgument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := &Queue{}
		var want []Event
		for i, at := range rapid.SliceOf(rapid.Int64Range(0, 20)).Draw(t, "times") {
			e := Event{units.Time(at), New(rapid.Uint32Range(0, MaxKind-1).Draw(t, "kind"), int32(i^5))}
			q.Schedule(e.At, e.Kind(), e.Arg())
			want = append(want, e)
		}
		slices.SortFunc(want, byOrder)
		for i, w := range want {
			if e := q.First(); e != w {
				t.Fatalf("event %d is seen as %+v, want %+v", i, e, w)
			}
			e, ok := q.Next(units.MaxTime)
			if !ok || e != w {
				t.Fatalf("event %d = %+v, %v; want %+v", i, e, ok, w)
			}
		}
		if _, ok := q.Next(units.MaxTime); ok {
			t.Fatal("an event more than was scheduled")
		}
	})
}

func byOrder(a, b Event) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Kind(), b.Kind()), cmp.Compare(a.Arg(), b.Arg()))
}

func TestNextHonoursUntil(t *testing.T) {
	q := &Queue{}
	q.Schedule(10, 1, 0)
	if _, ok := q.Next(9); ok {
		t.Error("an event after until was taken")
	}
	if e, ok := q.Next(10); !ok || e.Kind() != 1 {
		t.Errorf("Next(10) = %+v, %v", e, ok)
	}
}

func TestThePastIsNow(t *testing.T) {
	q := &Queue{}
	q.Schedule(10, 0, 0)
	q.Next(10)
	q.Schedule(3, 0, 0)
	if e, _ := q.Next(units.MaxTime); e.At != 10 {
		t.Errorf("an event for the past ran at %v, want 10", int64(e.At))
	}
}

// TestAgainstSortedList compares the queue with a plain list, for near and far times, with events scheduled while
// others are taken.
func TestAgainstSortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := &Queue{}
		var list []Event
		next := int32(0)
		now := units.Time(0)
		spans := []int64{1, 1 << 9, 1 << 15, 1 << 22, 1 << 23, 1 << 30, 1 << 45}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if rapid.IntRange(0, 2).Draw(t, "take") > 0 {
				span := rapid.SampledFrom(spans).Draw(t, "span")
				at := now + units.Time(rapid.Int64Range(0, span).Draw(t, "at"))
				e := Event{at, New(uint32(next*7)%MaxKind, next)}
				q.Schedule(e.At, e.Kind(), e.Arg())
				i, _ := slices.BinarySearchFunc(list, e, byOrder)
				list = slices.Insert(list, i, e)
				next++
				continue
			}
			until := now + units.Time(rapid.SampledFrom(spans).Draw(t, "until"))
			if e := q.First(); (e.What != Never) != (len(list) > 0) || len(list) > 0 && e != list[0] {
				t.Fatalf("First = %+v, want the first of %v", e, list)
			}
			e, ok := q.Next(until)
			if want := len(list) > 0 && list[0].At <= until; ok != want {
				t.Fatalf("Next(%d) = %v, want %v", int64(until), ok, want)
			}
			if !ok {
				continue
			}
			if e != list[0] {
				t.Fatalf("Next = %+v, want %+v", e, list[0])
			}
			list, now = list[1:], e.At
			if q.Len() != len(list) {
				t.Fatalf("Len = %d, want %d", q.Len(), len(list))
			}
		}
	})
}

// BenchmarkHold takes one event and schedules another, the classic hold model.
func BenchmarkHold(b *testing.B) {
	for _, n := range []int{16, 256, 4096, 65536} {
		b.Run(fmt.Sprintf("pending=%d", n), func(b *testing.B) {
			q := &Queue{}
			r := rand.New(rand.NewPCG(1, 2))
			for i := range n {
				q.Schedule(units.Time(r.Int64N(1000000)), 0, int32(i))
			}
			b.ReportAllocs()
			for b.Loop() {
				e, _ := q.Next(units.MaxTime)
				q.Schedule(e.At+units.Time(e.Arg()&1023)*977+1, 0, e.Arg())
			}
		})
	}
}
