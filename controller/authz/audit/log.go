package audit

import (
	"cmp"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate/internal/ring"
)

// Keeper makes entries durable and has the newest. It is safe for concurrent use.
type Keeper interface {
	// ListAudit returns the newest n entries of an application ("" for all) that are kept, oldest first.
	ListAudit(application string, n int) []Entry
	// CommitAudit stores all entries or none.
	CommitAudit(entries []Entry) error
}

// Options of a Log. The zero value keeps everything in memory.
type Options struct {
	Keeper Keeper           // nil: nothing outlives the process
	File   *File            // nil: none has all lines
	Now    func() time.Time // nil: time.Now
	Limit  int              // entries kept; 0 means DefaultLimit
	Log    *slog.Logger     // nil: slog.Default
}

// NewRing returns room for the newest entries; 0 means DefaultLimit.
func NewRing(limit int) *ring.Last[Entry] { return ring.NewLast[Entry](cmp.Or(limit, DefaultLimit)) }

// Newest returns the newest n entries of an application ("" for all) in a ring, oldest first.
func Newest(r *ring.Last[Entry], application string, n int) []Entry {
	var list []Entry
	for e := range r.Backward() {
		if len(list) >= n {
			break
		}
		if application == "" || e.Application == application {
			list = append(list, e)
		}
	}
	slices.Reverse(list)
	return list
}

// Log is safe for concurrent use.
type Log struct {
	keeper   Keeper
	file     *File
	now      func() time.Time
	slog     *slog.Logger
	refusals refusals

	mu     sync.RWMutex
	unkept *ring.Last[Entry] // what the keeper does not have: all entries where there is none
}

// New returns a log with the keeper's entries. Entries that a crash kept from the file are added to
// it.
func New(o Options) *Log {
	l := &Log{keeper: o.Keeper, file: o.File, now: o.Now, slog: o.Log, unkept: NewRing(o.Limit)}
	if l.now == nil {
		l.now = time.Now
	}
	if l.slog == nil {
		l.slog = slog.Default()
	}
	l.refusals = refusals{counts: map[kind]*count{}, record: func(e Entry) {
		e.Time = l.now()
		l.keep([]Entry{e})
	}}
	if l.keeper != nil && l.file != nil {
		if err := l.file.catchUp(l.keeper.ListAudit("", math.MaxInt)); err != nil {
			l.slog.Error("lines are missing from the audit log's file", "err", err)
		}
	}
	return l
}

// Close records the refusals that were counted last.
func (l *Log) Close() { l.refusals.close() }

// First returns the entries to record. Consecutive refusals of one kind are counted, and their number
// is recorded later.
func (l *Log) First(entries []Entry) []Entry { return l.refusals.first(entries) }

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

// Append adds entries that Stamp has completed, and that the keeper has already together with
// the change that they are about.
func (l *Log) Append(entries ...Entry) {
	if l.keeper == nil {
		l.show(entries)
	}
	if l.file == nil || len(entries) == 0 {
		return
	}
	if err := l.file.Append(entries...); err != nil {
		l.slog.Error("lines are missing from the audit log's file until it can be written", "err", err)
	}
}

func (l *Log) show(entries []Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range entries {
		l.unkept.Push(e)
	}
}

// Record stamps an entry, makes it durable and adds it. It stays in memory where the keeper
// fails: what it is about has happened.
func (l *Log) Record(e Entry, refusal error) {
	entries := []Entry{e}
	l.Stamp(entries, refusal)
	if entries = l.First(entries); len(entries) > 0 {
		l.keep(entries)
	}
}

func (l *Log) keep(entries []Entry) {
	if l.keeper != nil {
		if err := l.keeper.CommitAudit(entries); err != nil {
			l.slog.Error("a line is missing from the stored audit log", "what", entries[0].What, "subject", entries[0].Subject, "error", err)
			l.show(entries)
		}
	}
	l.Append(entries...)
}

// ErrNoFile says that no file has all lines.
var ErrNoFile = errors.New("the controller keeps no audit log in a file: want controller.audit, or controller.state")

// Export passes each line of the file to line, and returns the content of the head's file.
func (l *Log) Export(line func(text []byte) error) (head string, err error) {
	if l.file == nil {
		return "", ErrNoFile
	}
	return l.file.Export(line)
}

// List returns the newest n entries of an application ("" for all), oldest first.
func (l *Log) List(application string, n int) []Entry {
	l.mu.RLock()
	list := Newest(l.unkept, application, n)
	l.mu.RUnlock()
	if l.keeper == nil {
		return list
	}
	kept := l.keeper.ListAudit(application, n)
	if len(list) == 0 {
		return kept
	}
	list = append(kept, list...)
	slices.SortStableFunc(list, func(a, b Entry) int { return a.Time.Compare(b.Time) })
	return list[max(0, len(list)-n):]
}
