// Package history records which configurations were applied, by whom and why. It rolls back a configuration that
// must be confirmed and was not. Start at Store.
package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/headgate/headgate/controller/state/outcome"
)

// Entry is a configuration that was applied.
type Entry struct {
	File       string    `json:"file"` // name of the file, for messages
	YAML       string    `json:"yaml"`
	Generation uint64    `json:"generation"` // counts applied configurations
	Applied    time.Time `json:"applied"`
	// ByAPI is set if it came through the API, not from the file that the controller was started with.
	ByAPI bool   `json:"by_api,omitempty"`
	By    string `json:"by,omitempty"`  // the identity of who applied it, or "controller"
	Why   string `json:"why,omitempty"` // the reason that By gave
	// Confirm is the time after Applied in which somebody must confirm it, or it is rolled back; 0 if it needs no
	// confirmation.
	Confirm time.Duration `json:"confirm_ns,omitempty"`
}

// The bounds of Note.Confirm, and of Note.Why in bytes.
const (
	MinConfirm = 100 * time.Millisecond
	MaxConfirm = 24 * time.Hour
	MaxWhy     = 1000
)

// Note has the identity that applies a configuration, and the reason. The zero Note is empty.
type Note struct {
	By, Why string
	// Confirm becomes Entry.Confirm: 0, or MinConfirm to MaxConfirm.
	Confirm time.Duration
	// Expect is the generation that must be in force; nil accepts any.
	Expect *uint64

	unconfirmed bool // the generation Expect must also be unconfirmed
}

// Check returns a *GenerationError if the note expects another generation than this one to be in force.
func (n Note) Check(generation uint64) error {
	if n.Expect != nil && *n.Expect != generation {
		return &GenerationError{Is: generation, Want: *n.Expect}
	}
	return nil
}

type noteKey struct{}

// WithNote returns a context that carries n to Apply.
func WithNote(ctx context.Context, n Note) context.Context {
	return context.WithValue(ctx, noteKey{}, n)
}

// NoteFromContext returns the note of a context.
func NoteFromContext(ctx context.Context) Note {
	n, _ := ctx.Value(noteKey{}).(Note)
	return n
}

// GenerationError is returned if another generation is in force than the caller expects.
type GenerationError struct{ Is, Want uint64 }

// Error names the generation in force and the remedy.
func (e *GenerationError) Error() string {
	return fmt.Sprintf("generation %d is in force, not %d: somebody applied a configuration meanwhile; look at it with `headgate history`", e.Is, e.Want)
}

// ErrConfirmed says that nothing waits to be confirmed.
var ErrConfirmed = errors.New("the configuration in force needs no confirmation")

// Keeper stores entries durably.
type Keeper interface {
	// History returns the entries that are kept, the one in force last. They always include the last entry that
	// needed no confirmation.
	History() []Entry
	// SaveConfig adds an entry, with the outcome of the request that asked for it; nil for none.
	SaveConfig(Entry, *outcome.Done) error
	// ConfirmConfig marks the entry in force as confirmed.
	ConfirmConfig(*outcome.Done) error
}

// retry is the wait after a failed rollback.
const retry = 10 * time.Second

// Store is safe for concurrent use. mu orders confirmations and new entries.
type Store struct {
	keeper Keeper
	log    *slog.Logger

	mu      sync.Mutex
	changed chan struct{} // closed, and replaced, with every change
}

// New returns a history of the keeper's entries; a nil keeper has none.
func New(k Keeper, log *slog.Logger) *Store {
	return &Store{keeper: k, log: log, changed: make(chan struct{})}
}

// List returns the entries that are kept, the one in force last.
func (s *Store) List() []Entry {
	if s.keeper == nil {
		return nil
	}
	return s.keeper.History()
}

// Save adds an entry with the context's note.
func (s *Store) Save(ctx context.Context, e Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := NoteFromContext(ctx)
	if _, _, waits := s.pending(); n.unconfirmed && !waits {
		return ErrConfirmed
	}
	e.By, e.Why, e.Confirm = n.By, n.Why, n.Confirm
	if err := s.keeper.SaveConfig(e, outcome.RequestFromContext(ctx).DoneWith(e.Generation)); err != nil {
		return outcome.FromStore(err)
	}
	s.notify()
	return nil
}

// Confirm marks the generation in force as confirmed. It must be the given generation; 0 accepts any. The context
// may carry a request.
func (s *Store) Confirm(ctx context.Context, generation uint64) (Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	by := outcome.RequestFromContext(ctx)
	if by.Again(&generation) {
		return Entry{Generation: generation}, nil
	}
	last, _, waits := s.pending()
	switch {
	case generation != 0 && generation != last.Generation:
		return last, &GenerationError{Is: last.Generation, Want: generation}
	case !waits:
		return last, ErrConfirmed
	}
	if err := s.keeper.ConfirmConfig(by.DoneWith(last.Generation)); err != nil {
		return last, outcome.FromStore(err)
	}
	s.notify()
	return last, nil
}

func (s *Store) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// pending returns the entry in force, whether it waits for a confirmation, and the entry that a rollback would
// return to.
func (s *Store) pending() (last, before Entry, waits bool) {
	list := s.List()
	if len(list) == 0 {
		return last, before, false
	}
	last = list[len(list)-1]
	for _, e := range list {
		if e.Confirm == 0 {
			before = e
		}
	}
	return last, before, last.Confirm != 0 && before.Generation != 0
}

// Run waits, until ctx ends, for entries that are not confirmed in time. It then calls rollback with the last entry
// that needs no confirmation, and calls again after retry if rollback fails. The note in the context makes Save fail
// with ErrConfirmed if somebody confirms at the last moment. Run measures the wait by the monotonic clock. Only the
// time from the apply of an entry until Run sees it is taken from the wall clock, and it can only shorten the wait.
func (s *Store) Run(ctx context.Context, rollback func(ctx context.Context, to Entry) error) {
	var known uint64
	var due time.Time
	for {
		s.mu.Lock()
		changed := s.changed
		last, before, waits := s.pending()
		s.mu.Unlock()
		var over <-chan time.Time
		if waits {
			if last.Generation != known {
				known = last.Generation
				now := time.Now()
				due = now.Add(min(last.Applied.Add(last.Confirm).Sub(now), last.Confirm))
			}
			over = time.After(time.Until(due))
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
			continue
		case <-over:
		}
		n := Note{By: "controller", Why: fmt.Sprintf("generation %d was not confirmed within %v", last.Generation, last.Confirm), Expect: &last.Generation, unconfirmed: true}
		if err := rollback(WithNote(ctx, n), before); err != nil && ctx.Err() == nil && !errors.Is(err, ErrConfirmed) {
			s.log.Error("a configuration that nobody confirmed stays in force, because the previous one could not be applied", "generation", last.Generation, "before", before.Generation, "retry", retry, "err", err)
			due = time.Now().Add(retry)
		}
	}
}
