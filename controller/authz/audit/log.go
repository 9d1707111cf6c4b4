// Package audit is the log of changes and refusals: weights and budgets, configurations, links and virtual
// priorities. An Entry is one line. A Log holds the newest entries in memory, a Keeper makes them durable, and a File
// keeps all of them. Start at Log.Append.
package audit

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/headgate/headgate/internal/ring"
)

// Keeper makes entries durable and returns the newest. It is safe for concurrent use.
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
	unkept *ring.Last[Entry] // entries that the keeper does not have: all of them without a keeper
}

// New returns a log with the keeper's entries. Entries that the file lost in a crash are added to it.
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

// First returns the entries to record now. Further refusals of the same kind are only counted, and their number is
// recorded later.
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

// Append adds entries that Stamp has completed. The keeper already stored them together with their change.
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

// Record stamps an entry, makes it durable and adds it. If the keeper fails, the entry stays in memory, because its
// event has happened.
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

// ErrNoFile is returned when the log has no File.
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

// DefaultLimit is how many entries are kept unless told otherwise.
const DefaultLimit = 65536

// Subjects of entries.
const (
	Weight   = "weight"
	Budget   = "budget"
	Delete   = "delete"
	Apply    = "apply"   // Subject is the file, Value the generation
	Confirm  = "confirm" // Value is the generation
	LinkUp   = "link up"
	LinkDown = "link down" // Subject are the link's ends
	Priority = "priority"  // Value is the virtual priority
	Release  = "release"
	Policy   = "policy" // who may do what
	Denied   = "denied" // Subject is the method that was called
	Backup   = "backup"
	Replace  = "replace member" // Subject is its name
	// AcceptLoss is a start with a state file that contradicts the audit log. Subject is the file, Value its
	// generation.
	AcceptLoss = "accept loss"
)

// Entry is one line of the log: a change or a refusal, and who asked for it.
type Entry struct {
	Time        time.Time `json:"time"`
	Identity    string    `json:"identity,omitempty"` // the caller; "" if the controller itself made the change
	Peer        string    `json:"peer"`               // the caller's address, or the component that made the change
	Application string    `json:"application,omitempty"`
	Flow        string    `json:"flow,omitempty"`    // text of a weights.Key; "" if the entry is not about a flow
	Subject     string    `json:"subject,omitempty"` // the subject, if it is not a flow
	Previous    float64   `json:"previous"`
	Value       float64   `json:"value"` // the requested value, so it may be NaN in a refusal
	What        string    `json:"what"`
	Refused     string    `json:"refused,omitempty"` // empty when granted
	Before      string    `json:"before,omitempty"`  // the earlier value, if it is not a number
	After       string    `json:"after,omitempty"`
	Count       int       `json:"count,omitempty"` // number of refusals that this line sums up; 0 for one
}

// Digest shortens a text that is too long for a line to its hash; "" for none.
func Digest(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text)))
}

// plain is an Entry without its methods; record replaces its Value by text.
type plain Entry

// record is an Entry in JSON, whose numbers cannot be NaN or infinite.
type record struct {
	plain
	Value string `json:"value"`
}

// MarshalJSON writes the value as a text.
func (e Entry) MarshalJSON() ([]byte, error) {
	return json.Marshal(record{plain(e), strconv.FormatFloat(e.Value, 'g', -1, 64)})
}

// UnmarshalJSON parses the JSON of MarshalJSON.
func (e *Entry) UnmarshalJSON(text []byte) error {
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	*e = Entry(r.plain)
	var err error
	e.Value, err = strconv.ParseFloat(r.Value, 64)
	return err
}

// Window is how long refusals of one kind are counted after the first.
const Window = time.Minute

// maxKinds bounds the kinds that are counted apart.
const maxKinds = 1000

// kind is the key by which refusals are counted together.
type kind struct{ who, what, subject string }

// kindOf returns the kind of a refusal: the identity, or the address without one, and the method.
func kindOf(e Entry) kind {
	who := e.Identity
	if who == "" {
		who = e.Peer
		if host, _, err := net.SplitHostPort(who); err == nil {
			who = host
		}
	}
	k := kind{who: who, what: e.What}
	if e.What == Denied {
		k.subject = e.Subject
	}
	return k
}

// refusals counts refusals. The first of a kind is logged as it is. Those within the Window after it
// become one line with their number, so that nobody can push others' lines out of the log.
type refusals struct {
	record func(Entry) // receives the count of a Window

	mu     sync.Mutex
	counts map[kind]*count
}

type count struct {
	more  int
	last  Entry
	timer *time.Timer
}

// first returns the entries to record: all changes, and the first refusal of each kind.
func (r *refusals) first(entries []Entry) []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Entry
	for _, e := range entries {
		if e.Refused == "" {
			out = append(out, e)
			continue
		}
		k := kindOf(e)
		c := r.counts[k]
		if c == nil && len(r.counts) >= maxKinds {
			k = kind{who: "others"}
			c = r.counts[k]
		}
		if c == nil {
			r.counts[k] = &count{timer: time.AfterFunc(Window, func() { r.flush(k) })}
			out = append(out, e)
			continue
		}
		c.more++
		c.last = e
	}
	return out
}

// flush writes one summary entry for the counted refusals of a kind.
func (r *refusals) flush(k kind) {
	r.mu.Lock()
	c := r.counts[k]
	delete(r.counts, k)
	r.mu.Unlock()
	if c == nil || c.more == 0 {
		return
	}
	e := c.last
	e.Count = c.more
	e.Refused = fmt.Sprintf("%d more within %v, the last: %s", c.more, Window, e.Refused)
	r.record(e)
}

// close records all that was counted.
func (r *refusals) close() {
	r.mu.Lock()
	var list []kind
	for k, c := range r.counts {
		c.timer.Stop()
		list = append(list, k)
	}
	r.mu.Unlock()
	for _, k := range list {
		r.flush(k)
	}
}
