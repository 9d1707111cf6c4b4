package weights

import (
	"context"
	"errors"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/controller/serving/events"
)

// replay applies a batch to a watcher's copy.
func replay(state map[Key]Flow, b Batch) {
	if b.Reset {
		clear(state)
	}
	for _, u := range b.Updates {
		switch {
		case u.Budget != nil:
		case u.Deleted:
			delete(state, u.Flow.Key)
		default:
			state[u.Flow.Key] = u.Flow
		}
	}
}

func TestWatchGetsStateThenEveryChange(t *testing.T) {
	r := open(t, nil)
	mustSet(t, r, 1, "a", 1)
	mustSet(t, r, 2, "b", 2)
	w := r.Watch(func(f Flow) bool { return f.Application == "a" }, 0)
	defer w.Close()
	next := func() Batch {
		t.Helper()
		b, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	mustSet(t, r, 3, "a", 3) // part of the first state, so not counted as missed
	b := next()
	if !b.Reset || b.Missed != 0 || len(b.Updates) != 4 || b.Updates[0].Flow.Key != key(1) || b.Updates[2].Budget.Application != "a" {
		t.Fatalf("first batch = %+v", b)
	}
	mustSet(t, r, 2, "b", 4) // not watched
	mustSet(t, r, 1, "a", 1.5)
	mustSet(t, r, 2, "a", 4) // joins
	mustSet(t, r, 3, "b", 3) // leaves
	if err := r.SetBudget(Caller{Peer: "test"}, "a", 50); err != nil {
		t.Fatal(err)
	}
	b = next()
	if b.Reset || len(b.Updates) != 4 {
		t.Fatalf("second batch = %+v", b)
	}
	u := b.Updates
	if u[0].Flow.Weight != 1500000 || u[1].Flow.Key != key(2) || u[1].Deleted || u[2].Flow.Key != key(3) || !u[2].Deleted || u[3].Budget.Limit != 50*One {
		t.Errorf("updates = %+v", u)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
	w.Close()
	if _, err := w.Next(t.Context()); !errors.Is(err, events.ErrClosed) {
		t.Errorf("error = %v", err)
	}
}

func TestSlowWatcherIsResynchronised(t *testing.T) {
	r := open(t, nil)
	w := r.Watch(nil, 3)
	defer w.Close()
	if _, err := w.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		mustSet(t, r, i%4, "a", float64(i+1))
	}
	b, err := w.Next(t.Context())
	if err != nil || !b.Reset || b.Missed != 10 {
		t.Fatalf("batch = %+v, %v", b, err)
	}
	state := map[Key]Flow{}
	replay(state, b)
	if len(state) != 4 || state[key(1)].Weight != 10*One {
		t.Errorf("state = %v", state)
	}
}

// However slowly a watcher reads, its replayed copy ends up equal to the registry.
func TestWatchersConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := New(Options{})
		match := func(f Flow) bool { return f.Application != "b" }
		w := r.Watch(match, rapid.IntRange(1, 4).Draw(t, "buffer"))
		defer w.Close()
		state := map[Key]Flow{}
		over, cancel := context.WithCancel(context.Background())
		cancel()
		// Next returns pending changes even if its context has ended.
		read := func() {
			if b, err := w.Next(over); err == nil {
				replay(state, b)
			}
		}
		read()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			n := rapid.IntRange(0, 3).Draw(t, "flow")
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				_ = r.Delete(Caller{Peer: "test"}, key(n))
			case 1:
				read()
			default:
				app := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "app")
				if _, err := r.Set(Caller{Peer: "test"}, Change{key(n), float64(rapid.IntRange(1, 9).Draw(t, "weight")), app}); err != nil {
					t.Fatal(err)
				}
			}
		}
		read()
		want := map[Key]Flow{}
		for _, f := range r.Flows("") {
			if match(f) {
				want[f.Key] = f
			}
		}
		if !maps.Equal(state, want) {
			t.Fatalf("the watcher knows %v, the registry holds %v", state, want)
		}
	})
}
