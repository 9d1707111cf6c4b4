package entity

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/softswitch/engine"
)

// resource is a kind of direct resource. has reports whether a table has one.
type resource struct {
	name string
	has  func(*table) bool
}

var (
	directCounter = resource{"direct counter", func(t *table) bool { return t.spec.CounterID != 0 }}
	directMeter   = resource{"direct meter", func(t *table) bool { return t.spec.MeterID != 0 }}
)

func (r resource) check(t *table) error {
	if !r.has(t) {
		return invalid("table %q: it has no %s", t.spec.Name, r.name)
	}
	return nil
}

// directEntry finds the entry whose direct resource an update writes. The handle is
// engine.DefaultEntry for the default entry.
func (s *State) directEntry(op p4v1.Update_Type, r resource, in *p4v1.TableEntry) (*table, engine.Handle, error) {
	if err := onlyModify(op, r.name); err != nil {
		return nil, 0, err
	}
	if in == nil {
		return nil, 0, invalid("table_entry is unset")
	}
	t, err := s.tableByID(in.TableId)
	if err != nil {
		return nil, 0, err
	}
	if in.IsDefaultAction {
		if err := t.checkDefaultKey(in); err != nil {
			return nil, 0, err
		}
		return t, engine.DefaultEntry, r.check(t)
	}
	e, err := s.mustLocate(t, &s.key, in)
	if err != nil {
		return nil, 0, err
	}
	return t, e.handle, r.check(t)
}

func (s *State) writeDirectCounter(op p4v1.Update_Type, in *p4v1.DirectCounterEntry) error {
	t, h, err := s.directEntry(op, directCounter, in.GetTableEntry())
	if err != nil || in.Data == nil {
		return err
	}
	c, err := counterOf(in.Data)
	if err != nil {
		return err
	}
	return fromEngine(s.inst.SetEntryCounter(t.spec.Name, h, c))
}

func (s *State) writeDirectMeter(op p4v1.Update_Type, in *p4v1.DirectMeterEntry) error {
	if in.GetCounterData() != nil {
		return errMeterCounters
	}
	t, h, err := s.directEntry(op, directMeter, in.GetTableEntry())
	if err != nil {
		return err
	}
	r, err := rateOf(in.Config)
	if err != nil {
		return err
	}
	return fromEngine(s.inst.SetEntryMeter(t.spec.Name, h, r))
}

// readDirect calls f for the entries that a read of direct resources selects. table_id 0 selects
// all tables with such a resource. The entry is nil for a default entry. A read of a single entry
// that does not exist is NOT_FOUND.
func (s *State) readDirect(r resource, in *p4v1.TableEntry, f func(*table, *entry) error) error {
	var list []*table
	if in.GetTableId() == 0 {
		if len(in.GetMatch()) > 0 || in.GetPriority() != 0 {
			return invalid("table_entry.table_id is 0, which reads all tables: match and priority must be unset")
		}
		for _, spec := range s.schema.Tables.List {
			if t := s.tables[spec.ID]; r.has(t) {
				list = append(list, t)
			}
		}
	} else {
		t, err := s.tableByID(in.TableId)
		if err != nil {
			return err
		}
		if err := r.check(t); err != nil {
			return err
		}
		list = append(list, t)
	}
	key := &p4v1.TableEntry{TableId: in.GetTableId(), Match: in.GetMatch(), Priority: in.GetPriority()}
	for _, t := range list {
		if in.GetIsDefaultAction() {
			if err := f(t, nil); err != nil {
				return fromEngine(err)
			}
			continue
		}
		n := 0
		err := s.selected(t, key, func(e *entry) error { n++; return fromEngine(f(t, e)) })
		if err != nil {
			return err
		}
		if one := len(in.GetMatch()) > 0 && (!t.spec.NeedsPriority || in.Priority != 0); one && n == 0 {
			return t.noEntry(in)
		}
	}
	return nil
}

func (s *State) readDirectCounters(req *p4v1.DirectCounterEntry, emit func(*p4v1.Entity)) error {
	return s.readDirect(directCounter, req.GetTableEntry(), func(t *table, e *entry) error {
		key, h := t.identify(e)
		c, err := s.inst.EntryCounter(t.spec.Name, h)
		if err == nil {
			emit(p4msg.Of(&p4v1.DirectCounterEntry{TableEntry: key, Data: counterData(c)}))
		}
		return err
	})
}

func (s *State) readDirectMeters(req *p4v1.DirectMeterEntry, emit func(*p4v1.Entity)) error {
	if req.GetCounterData() != nil {
		return errMeterCounters
	}
	return s.readDirect(directMeter, req.GetTableEntry(), func(t *table, e *entry) error {
		key, h := t.identify(e)
		r, err := s.inst.EntryMeter(t.spec.Name, h)
		if err == nil {
			emit(p4msg.Of(&p4v1.DirectMeterEntry{TableEntry: key, Config: meterConfig(r)}))
		}
		return err
	})
}

// identify returns the fields that identify an entry, and its handle. A nil entry is the default
// entry.
func (t *table) identify(e *entry) (*p4v1.TableEntry, engine.Handle) {
	if e == nil {
		return &p4v1.TableEntry{TableId: t.spec.ID, IsDefaultAction: true}, engine.DefaultEntry
	}
	m := e.message.decode()
	return &p4v1.TableEntry{TableId: m.TableId, Match: m.Match, Priority: m.Priority}, e.handle
}
