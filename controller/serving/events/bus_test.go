package events

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func next[T any](t *testing.T, s *Subscription[T]) ([]T, uint64) {
	t.Helper()
	values, dropped, err := s.Next(t.Context())
	if err != nil {
		t.Fatalf("Next: %v", err)
	}
	return values, dropped
}

func TestSubscribe(t *testing.T) {
	tests := []struct {
		name          string
		before, after []int
		history       int
		opts          Options[int]
		want          []int
		dropped       uint64
	}{
		{name: "only what comes after", before: []int{1, 2}, after: []int{3, 4}, history: 8, want: []int{3, 4}},
		{name: "with recent values", before: []int{1, 2, 3}, after: []int{4}, history: 8, opts: Options[int]{Recent: 2}, want: []int{2, 3, 4}},
		{name: "history is bounded", before: []int{1, 2, 3}, after: []int{4}, history: 1, opts: Options[int]{Recent: 9}, want: []int{3, 4}},
		{name: "a negative number of recent values is none", before: []int{1}, after: []int{2}, history: 4, opts: Options[int]{Recent: -1}, want: []int{2}},
		{name: "after a number", before: []int{1, 2, 3}, after: []int{4}, history: 8, opts: Options[int]{Recent: 9, After: 2}, want: []int{3, 4}},
		{name: "after a number that is forgotten", before: []int{1, 2, 3, 4}, after: []int{5}, history: 2, opts: Options[int]{Recent: 9, After: 1}, want: []int{3, 4, 5}, dropped: 1},
		{name: "after the last number", before: []int{1, 2}, after: []int{3}, history: 8, opts: Options[int]{Recent: 9, After: 2}, want: []int{3}},
		{name: "oldest dropped", after: []int{1, 2, 3, 4, 5}, opts: Options[int]{Buffer: 2}, want: []int{4, 5}, dropped: 3},
		{name: "filtered", before: []int{1, 2}, after: []int{3, 4}, history: 4,
			opts: Options[int]{Recent: 2, Match: func(v int) bool { return v%2 == 0 }}, want: []int{2, 4}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := NewBus[int](tt.history)
			for _, v := range tt.before {
				b.Publish(v)
			}
			s := b.Subscribe(tt.opts)
			defer s.Close()
			for _, v := range tt.after {
				b.Publish(v)
			}
			got, dropped := next(t, s)
			if !slices.Equal(got, tt.want) || dropped != tt.dropped {
				t.Errorf("got %v with %d dropped, want %v with %d", got, dropped, tt.want, tt.dropped)
			}
			st := b.Stats()
			if st.Published != uint64(len(tt.before)+len(tt.after)) || st.Dropped != tt.dropped || st.Subscribers != 1 {
				t.Errorf("stats = %+v", st)
			}
		})
	}
}

func TestCloseEndsAfterWhatIsBuffered(t *testing.T) {
	b := NewBus[int](0)
	s := b.Subscribe(Options[int]{})
	b.Publish(1)
	b.Close()
	b.Publish(2)
	if got, _ := next(t, s); !slices.Equal(got, []int{1}) {
		t.Errorf("got %v", got)
	}
	if _, _, err := s.Next(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("error = %v, want ErrClosed", err)
	}
	late := b.Subscribe(Options[int]{})
	if _, _, err := late.Next(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("late subscriber: error = %v, want ErrClosed", err)
	}
	s.Close()
	s.Close()
}

func TestNextEndsWithItsContext(t *testing.T) {
	s := NewBus[int](0).Subscribe(Options[int]{})
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
}

// The events that a subscriber reads, plus the number that it is told it missed, give all published
// events in order.
func TestNothingIsLostSilently(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := NewBus[int](rapid.IntRange(0, 4).Draw(t, "history"))
		s := b.Subscribe(Options[int]{Buffer: rapid.IntRange(1, 5).Draw(t, "buffer")})
		defer s.Close()
		published, accounted := 0, 0
		for _, publish := range rapid.SliceOfN(rapid.Bool(), 1, 60).Draw(t, "steps") {
			if publish {
				b.Publish(published)
				published++
				continue
			}
			if accounted == published {
				continue
			}
			values, dropped, err := s.Next(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			accounted += int(dropped)
			for _, v := range values {
				if v != accounted {
					t.Fatalf("read %d, want %d", v, accounted)
				}
				accounted++
			}
			if accounted != published {
				t.Fatalf("accounted for %d of %d", accounted, published)
			}
		}
	})
}

// TestUnreadSubscribers: the events that wait for slow subscribers are bounded in total, and each subscriber learns
// how many it missed.
func TestUnreadSubscribers(t *testing.T) {
	const subscribers, values = 1000, 2000
	b := NewBus[int](0)
	var list []*Subscription[int]
	for range subscribers {
		s := b.Subscribe(Options[int]{})
		defer s.Close()
		list = append(list, s)
	}
	for i := range values {
		b.Publish(i)
	}
	held := 0
	for _, s := range list {
		got, dropped := next(t, s)
		if held += len(got); uint64(len(got))+dropped != values || got[len(got)-1] != values-1 {
			t.Fatalf("%d values, the last %d, and %d missed", len(got), got[len(got)-1], dropped)
		}
	}
	if held > heldValues || b.Stats().Dropped != uint64(subscribers*values-held) {
		t.Errorf("%d values were held, %+v", held, b.Stats())
	}
}

// TestLargeValues: the waiting bytes are bounded as well, for one subscriber and for many.
func TestLargeValues(t *testing.T) {
	const size = 1 << 20
	for _, subscribers := range []int{1, 2, 100} {
		b := NewSizedBus(func([]byte) int { return size })
		var list []*Subscription[[]byte]
		for range subscribers {
			s := b.Subscribe(Options[[]byte]{})
			defer s.Close()
			list = append(list, s)
		}
		const values = 50
		for i := range values {
			b.Publish([]byte{byte(i)})
		}
		for _, s := range list {
			got, dropped := next(t, s)
			if want := max(1, heldBytes/size/subscribers); len(got) != want || int(dropped) != values-want || got[want-1][0] != values-1 {
				t.Fatalf("%d subscribers: %d values wait for one, want %d, and it missed %d", subscribers, len(got), want, dropped)
			}
		}
		b.Publish(nil)
		if got, dropped := next(t, list[0]); len(got) != 1 || dropped != 0 {
			t.Errorf("after what waited was read %d values wait, %d were missed", len(got), dropped)
		}
	}
}

func TestConcurrentPublishers(t *testing.T) {
	const publishers, each = 4, 200
	b := NewBus[int](0)
	s := b.Subscribe(Options[int]{Buffer: 16})
	var wg sync.WaitGroup
	for range publishers {
		wg.Go(func() {
			for i := range each {
				b.Publish(i)
			}
		})
	}
	go func() { wg.Wait(); b.Close() }()
	total := uint64(0)
	for {
		values, dropped, err := s.Next(t.Context())
		if err != nil {
			break
		}
		total += uint64(len(values)) + dropped
	}
	if total != publishers*each {
		t.Errorf("accounted for %d of %d", total, publishers*each)
	}
}

func BenchmarkPublish(b *testing.B) {
	for _, n := range []int{0, 1, 8} {
		b.Run(string(rune('0'+n))+" subscribers", func(b *testing.B) {
			bus := NewBus[int](0)
			for range n {
				defer bus.Subscribe(Options[int]{Buffer: 64}).Close()
			}
			b.ReportAllocs()
			for i := range b.N {
				bus.Publish(i)
			}
		})
	}
}
