package entity

import (
	"fmt"
	"math"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/slots"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/schema"
	"github.com/headgate/headgate/units"
)

type table struct {
	spec    *schema.Table
	profile *profile                // nil for direct tables
	entries slots.List[entry]       // by slot of their handles
	idle    map[engine.Handle]*idle // entries with an idle timeout
	deflt   *p4v1.TableEntry        // the default entry as a controller wrote it; nil for the program's default
}

// entry is one entry of a table. The message is kept encoded, because a switch may hold many
// entries and a decoded message takes ten times the memory. The engine finds the entry by its key.
type entry struct {
	message  encoded // "" in a free slot
	handle   engine.Handle
	shot     *oneShot // nil unless the action is a one-shot action set
	uses     *int     // entries of the profile's member or group that the entry points to; nil for none and for a one-shot
	priority int32
	fixed    bool // the program declares the entry
}

type idle struct {
	timeout  units.Time
	notified units.Time // time of the last notification, 0 for none
}

func (s *State) newTable(t *schema.Table) (*table, error) {
	tb := &table{spec: t, idle: map[engine.Handle]*idle{}}
	if t.Profile != nil {
		tb.profile = s.profiles[t.Profile.ID]
	}
	handles := s.inst.ConstEntries(t.Name)
	if len(handles) != len(t.Entries) {
		return nil, fmt.Errorf("table %q: the engine has %d entries of the program, the BMv2 JSON has %d", t.Name, len(handles), len(t.Entries))
	}
	for i, w := range t.Entries {
		if err := t.Key(&s.key, w.Match); err != nil {
			return nil, fmt.Errorf("entries[%d] of the BMv2 JSON: %w", i, err)
		}
		m, err := s.encode(s.key.Encoded, w, w.Action)
		if err != nil {
			return nil, err
		}
		tb.add(entry{message: m + isConstField, handle: handles[i], priority: w.Priority, fixed: true})
	}
	return tb, nil
}

func (t *table) add(in entry) *entry {
	if in.handle.Slot() == t.entries.Len() {
		t.entries.Add()
	}
	e := t.entries.At(in.handle.Slot())
	*e = in
	return e
}

// all yields the entries in the same order every time. The table must not change while all runs.
func (t *table) all(yield func(*entry) bool) {
	for e := range t.entries.All {
		if e.message != "" && !yield(e) {
			return
		}
	}
}

// watch restarts an entry's idle timeout.
func (t *table) watch(e *entry, ns int64) {
	if ns == 0 {
		delete(t.idle, e.handle)
		return
	}
	t.idle[e.handle] = &idle{timeout: units.FromDuration(ttl(ns))}
}

// tableByID finds a table for a write or a specific read.
func (s *State) tableByID(id uint32) (*table, error) {
	if t := s.tables[id]; t != nil {
		return t, nil
	}
	_, err := s.schema.Tables.Find(id)
	return nil, err
}

// locate validates the key fields of an entry, fills k and returns the table's entry with this
// key, or nil if there is none. It does not work for default entries.
func (s *State) locate(t *table, k *schema.Key, in *p4v1.TableEntry) (*entry, error) {
	if err := t.keyed(k, in); err != nil {
		return nil, err
	}
	if t.spec.Const { // const entries have the engine's own priorities
		for e := range t.all {
			if e.priority == in.Priority && e.message.matches(k.Encoded) {
				return e, nil
			}
		}
		return nil, nil
	}
	h, ok, err := s.inst.Find(t.spec.Name, k.Engine, int(in.Priority))
	if !ok {
		return nil, err
	}
	return t.entries.At(h.Slot()), nil
}

func (t *table) keyed(k *schema.Key, in *p4v1.TableEntry) error {
	if err := t.spec.Key(k, in.Match); err != nil {
		return err
	}
	switch p := in.Priority; {
	case t.spec.NeedsPriority && p <= 0:
		return invalid("table %q: priority is %d, it must be positive as the key has ternary, range or optional fields", t.spec.Name, p)
	case !t.spec.NeedsPriority && p != 0:
		return invalid("table %q: priority is %d, it must be 0 as the key has no ternary, range or optional field", t.spec.Name, p)
	}
	return nil
}

// mustLocate does what locate does, but fails if there is no such entry.
func (s *State) mustLocate(t *table, k *schema.Key, in *p4v1.TableEntry) (*entry, error) {
	e, err := s.locate(t, k, in)
	if err == nil && e == nil {
		err = t.noEntry(in)
	}
	return e, err
}

func (t *table) noEntry(in *p4v1.TableEntry) error {
	return notFound("table %q: there is no entry with this match and priority %d", t.spec.Name, in.Priority)
}

// ttl converts idle_timeout_ns. Entries with timeouts beyond 106 days never expire, because the
// engine's clock counts picoseconds.
func ttl(ns int64) time.Duration {
	return min(time.Duration(ns), time.Duration(math.MaxInt64/int64(units.Nanosecond)))
}

// idleMost bounds the entries of a table in one notification.
const idleMost = 1024

// Idle returns one notification per table for the entries whose idle timeout has passed since
// their last hit and their last notification. The caller sets the timestamps.
//
// A notification has at most idleMost entries, so that collecting them delays frames only for a
// bounded time. Later calls return the others.
func (s *State) Idle(now units.Time) []*p4v1.IdleTimeoutNotification {
	var out []*p4v1.IdleTimeoutNotification
	for _, spec := range s.schema.Tables.List {
		if !spec.IdleTimeout {
			continue
		}
		t := s.tables[spec.ID]
		var list []*p4v1.TableEntry
		for _, h := range s.inst.Expired(spec.Name, now) {
			e := t.idle[h]
			if e == nil || e.notified != 0 && now-e.notified < e.timeout {
				continue
			}
			if len(list) == idleMost {
				break
			}
			e.notified = now
			w := t.entries.At(h.Slot()).message.decode()
			w.Action = nil
			list = append(list, w)
		}
		if len(list) > 0 {
			out = append(out, &p4v1.IdleTimeoutNotification{TableEntry: list})
		}
	}
	return out
}

// Handle returns the engine's handle of the entry with e's key, or false when there is no such
// entry.
func (s *State) Handle(in *p4v1.TableEntry) (engine.Handle, bool) {
	if t := s.tables[in.GetTableId()]; t != nil {
		if e, err := s.mustLocate(t, new(schema.Key), in); err == nil {
			return e.handle, true
		}
	}
	return 0, false
}
