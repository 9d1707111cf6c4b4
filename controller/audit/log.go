package audit

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate/internal/ring"
)

// Keeper makes entries durable. It is safe for concurrent use.
type Keeper interface {
	// LoadAudit returns the entries that were kept, oldest first.
	LoadAudit() []Entry
	// CommitAudit stores all entries or none.
	CommitAudit(entries []Entry) error
}

// Options of a Log. The zero value keeps everything in memory.
type Options struct {
	Keeper Keeper           // nil: nothing outlives the process
	Now    func() time.Time // nil: time.Now
	Limit  int              // entries kept; 0 means DefaultLimit
	Log    *slog.Logger     // nil: slog.Default
}

// NewRing returns room for the newest entries; 0 means DefaultLimit.
func NewRing(limit int) *ring.Last[Entry] { return ring.NewLast[Entry](cmp.Or(limit, DefaultLimit)) }

// Log is safe for concurrent use.
type Log struct {
	keeper Keeper
	now    func() time.Time
	slog   *slog.Logger

	mu     sync.RWMutex
	newest *ring.Last[Entry]
}

// New returns a log with what the keeper holds.
func New(o Options) *Log {
	l := &Log{keeper: o.Keeper, now: o.Now, slog: o.Log, newest: NewRing(o.Limit)}
	if l.now == nil {
		l.now = time.Now
	}
	if l.slog == nil {
		l.slog = slog.Default()
	}
	if l.keeper != nil {
		l.Append(l.keeper.LoadAudit()...)
	}
	return l
}

// Stamp writes the time into entries and, with a refusal that is not nil, why they were
// refused.
func (l *Log) Stamp(entries []Entry, refusal error) {
	now := l.now()
	for i := range entries {
		entries[i].Time = now
		if refusal != nil {
			entries[i].Refused = refusal.Error()
		}
	}
}

// Append adds entries that Stamp has completed, and that are durable already together with
// the change that they are about.
func (l *Log) Append(entries ...Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range entries {
		l.newest.Push(e)
	}
}

// Record stamps an entry, makes it durable and adds it. It stays in memory where the keeper
// fails: what it is about has happened.
func (l *Log) Record(e Entry, refusal error) {
	entries := []Entry{e}
	l.Stamp(entries, refusal)
	if l.keeper != nil {
		if err := l.keeper.CommitAudit(entries); err != nil {
			l.slog.Error("a line is missing from the stored audit log", "what", e.What, "subject", e.Subject, "error", err)
		}
	}
	l.Append(entries...)
}

// List returns the newest n entries of an application ("" for all), oldest first.
func (l *Log) List(application string, n int) []Entry {
	l.mu.RLock()
	defer l.mu.RUnlock()
	list := l.newest.All()
	if application != "" {
		list = slices.DeleteFunc(list, func(e Entry) bool { return e.Application != application })
	}
	return list[max(0, len(list)-n):]
}
