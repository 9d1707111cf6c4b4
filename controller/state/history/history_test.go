package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/controller/state/outcome"
)

// list is a Keeper in memory.
type list struct {
	mu      sync.Mutex
	entries []Entry
	err     error // the history after every change
	refuse  error // the error that applying returns
}

func (l *list) History() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

func (l *list) fail(change, apply error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err, l.refuse = change, apply
}

func (l *list) SaveConfig(e Entry, _ *outcome.Done) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.entries = append(l.entries, e)
	}
	return l.err
}

func (l *list) ConfirmConfig(*outcome.Done) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.entries[len(l.entries)-1].Confirm = 0
	}
	return l.err
}

func (l *list) String() string {
	var text []string
	for _, e := range l.History() {
		text = append(text, fmt.Sprintf("%d:%s", e.Generation, e.YAML))
	}
	return strings.Join(text, " ")
}

// desk is a book that applies its configurations at once.
type desk struct {
	*Store
	*list
}

func newDesk(entries ...Entry) *desk {
	l := &list{entries: entries}
	return &desk{Store: New(l, slog.New(slog.DiscardHandler)), list: l}
}

func (d *desk) apply(ctx context.Context, yaml string) error {
	d.list.mu.Lock()
	refuse := d.refuse
	d.list.mu.Unlock()
	if refuse != nil {
		return refuse
	}
	var now uint64
	if list := d.History(); len(list) > 0 {
		now = list[len(list)-1].Generation
	}
	if err := NoteFromContext(ctx).Check(now); err != nil {
		return err
	}
	return d.Save(ctx, Entry{YAML: yaml, Generation: now + 1, Applied: time.Now()})
}

func (d *desk) run(ctx context.Context) {
	d.Run(ctx, func(ctx context.Context, to Entry) error { return d.apply(ctx, to.YAML) })
}

// play runs a book in virtual time.
func play(t *testing.T, entries []Entry, during func(t *testing.T, d *desk)) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(entries...)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); d.run(ctx) }()
		during(t, d)
		cancel()
		<-done
	})
}

func within(d time.Duration) context.Context {
	return WithNote(context.Background(), Note{By: "cn:alice", Why: "a try", Confirm: d})
}

func (d *desk) expect(t *testing.T, when, want string) {
	t.Helper()
	synctest.Wait()
	if got := d.list.String(); got != want {
		t.Errorf("%s: %s, want %s", when, got, want)
	}
}

func TestUnconfirmedIsRolledBack(t *testing.T) {
	play(t, nil, func(t *testing.T, d *desk) {
		for _, step := range []error{d.apply(context.Background(), "a"), d.apply(within(time.Minute), "b")} {
			if step != nil {
				t.Fatal(step)
			}
		}
		time.Sleep(time.Minute - time.Nanosecond)
		d.expect(t, "before the time is over", "1:a 2:b")
		time.Sleep(time.Nanosecond)
		d.expect(t, "after it", "1:a 2:b 3:a")
		if e := d.History()[2]; e.By != "controller" || e.Why != "generation 2 was not confirmed within 1m0s" || e.Confirm != 0 {
			t.Errorf("the rollback is %+v", e)
		}
		time.Sleep(time.Hour)
		d.expect(t, "much later", "1:a 2:b 3:a")
	})
}

func TestConfirmed(t *testing.T) {
	play(t, nil, func(t *testing.T, d *desk) {
		_, err := d.Confirm(t.Context(), 0)
		if !errors.Is(err, ErrConfirmed) {
			t.Errorf("nothing was applied: %v", err)
		}
		_, _ = d.apply(context.Background(), "a"), d.apply(within(time.Minute), "b")
		var other *GenerationError
		if _, err := d.Confirm(t.Context(), 1); !errors.As(err, &other) || other.Is != 2 {
			t.Errorf("another generation: %v", err)
		}
		full := errors.New("disk full")
		d.fail(full, nil)
		if _, err := d.Confirm(t.Context(), 2); !errors.Is(err, full) {
			t.Errorf("the store failed: %v", err)
		}
		d.fail(nil, nil)
		if e, err := d.Confirm(t.Context(), 2); err != nil || e.Generation != 2 || e.By != "cn:alice" || e.Why != "a try" {
			t.Errorf("Confirm = %+v, %v", e, err)
		}
		if _, err := d.Confirm(t.Context(), 2); !errors.Is(err, ErrConfirmed) {
			t.Errorf("twice: %v", err)
		}
		time.Sleep(time.Hour)
		d.expect(t, "confirmed", "1:a 2:b")
	})
}

// A second unconfirmed configuration replaces the first; a rollback returns to the last one that
// needed no confirmation.
func TestTriesInARow(t *testing.T) {
	play(t, nil, func(t *testing.T, d *desk) {
		_, _ = d.apply(context.Background(), "a"), d.apply(within(time.Minute), "b")
		time.Sleep(50 * time.Second)
		_ = d.apply(within(time.Minute), "c")
		time.Sleep(50 * time.Second)
		d.expect(t, "while the second one waits", "1:a 2:b 3:c")
		time.Sleep(10 * time.Second)
		d.expect(t, "then", "1:a 2:b 3:c 4:a")
		_, _ = d.apply(within(time.Minute), "d"), d.apply(context.Background(), "e")
		time.Sleep(time.Hour)
		d.expect(t, "what stays ends the wait", "1:a 2:b 3:c 4:a 5:d 6:e")
	})
}

// Time that passed before a restart counts. A clock that was set back prolongs the wait by no more
// than the wait itself.
func TestRestart(t *testing.T) {
	for _, c := range []struct {
		applied, left time.Duration
	}{{-40 * time.Second, 20 * time.Second}, {-2 * time.Hour, 0}, {3 * time.Hour, time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			now := time.Now()
			d := newDesk(Entry{YAML: "a", Generation: 1}, Entry{YAML: "b", Generation: 2, Applied: now.Add(c.applied).Round(0), Confirm: time.Minute})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); d.run(ctx) }()
			time.Sleep(c.left - time.Nanosecond)
			if c.left > 0 {
				d.expect(t, "before", "1:a 2:b")
			}
			time.Sleep(time.Nanosecond)
			d.expect(t, "after", "1:a 2:b 3:a")
			cancel()
			<-done
		})
	}
}

// A failed rollback is tried again.
func TestRollbackFails(t *testing.T) {
	play(t, nil, func(t *testing.T, d *desk) {
		_, _ = d.apply(context.Background(), "a"), d.apply(within(time.Second), "b")
		d.fail(nil, errors.New("does not fit"))
		time.Sleep(time.Minute)
		d.expect(t, "while it does not fit", "1:a 2:b")
		d.fail(nil, nil)
		time.Sleep(retry)
		d.expect(t, "once it does", "1:a 2:b 3:a")
	})
}

// A confirmation during the rollback is either accepted, or refused as too late.
func TestConfirmedAtTheLastMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		_, _ = d.apply(context.Background(), "a"), d.apply(within(time.Second), "b")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			d.Run(ctx, func(ctx context.Context, to Entry) error {
				if _, err := d.Confirm(t.Context(), 2); err != nil {
					t.Errorf("Confirm: %v", err)
				}
				err := d.apply(ctx, to.YAML)
				if !errors.Is(err, ErrConfirmed) {
					t.Errorf("the rollback ends with %v", err)
				}
				return err
			})
		}()
		time.Sleep(time.Hour)
		d.expect(t, "confirmed", "1:a 2:b")
		cancel()
		<-done
	})
}

func TestExpectedGeneration(t *testing.T) {
	four := uint64(4)
	var e *GenerationError
	if err := (Note{Expect: &four}).Check(5); !errors.As(err, &e) || *e != (GenerationError{Is: 5, Want: 4}) {
		t.Errorf("Check(5) = %v", err)
	}
	if err := errors.Join((Note{Expect: &four}).Check(4), Note{}.Check(9)); err != nil {
		t.Error(err)
	}
}
