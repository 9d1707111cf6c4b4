package entity

import (
	"math"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/softswitch/engine"
)

var errDefaultResources = status.Error(codes.Unimplemented, "the direct counter and meter of a default entry cannot be written: the engine counts misses and meters hits")

func counterOf(d *p4v1.CounterData) (engine.Counter, error) {
	if d.GetPacketCount() < 0 || d.GetByteCount() < 0 {
		return engine.Counter{}, invalid("counter data is %d packets and %d bytes, neither may be negative", d.GetPacketCount(), d.GetByteCount())
	}
	return engine.Counter{Packets: uint64(d.GetPacketCount()), Bytes: uint64(d.GetByteCount())}, nil
}

func counterData(c engine.Counter) *p4v1.CounterData {
	return &p4v1.CounterData{
		PacketCount: int64(min(c.Packets, math.MaxInt64)),
		ByteCount:   int64(min(c.Bytes, math.MaxInt64)),
	}
}

// cells returns the range of cells that an index selects: all of them when it is unset.
func cells(kind, name string, size int64, index *p4v1.Index) (from, to int, err error) {
	switch {
	case index == nil:
		return 0, int(size), nil
	case index.Index < 0:
		return 0, 0, invalid("%s %q: index is %d, allowed are 0 to %d", kind, name, index.Index, size-1)
	case index.Index >= size:
		return 0, 0, status.Errorf(codes.OutOfRange, "%s %q: index is %d, allowed are 0 to %d", kind, name, index.Index, size-1)
	}
	return int(index.Index), int(index.Index) + 1, nil
}

// onlyModify refuses INSERT and DELETE of entities that are always there.
func onlyModify(op p4v1.Update_Type, kind string) error {
	if op != p4v1.Update_MODIFY {
		return invalid("update type is %v, a %s allows MODIFY", op, kind)
	}
	return nil
}

func (s *State) writeCounter(op p4v1.Update_Type, in *p4v1.CounterEntry) error {
	if err := onlyModify(op, "counter entry"); err != nil {
		return err
	}
	a, ok := s.schema.Counters.ID(in.GetCounterId())
	if !ok {
		return invalid("counter_id is %#x, which is no counter of the P4Info", in.GetCounterId())
	}
	from, to, err := cells("counter", a.Name, a.Size, in.Index)
	if err != nil || in.Data == nil {
		return err
	}
	c, err := counterOf(in.Data)
	if err != nil {
		return err
	}
	for i := from; i < to; i++ {
		if err := s.inst.WriteCounter(a.Name, i, c); err != nil {
			return fromEngine(err)
		}
	}
	return nil
}

func (s *State) readCounters(req *p4v1.CounterEntry, emit func(*p4v1.Entity)) error {
	list := s.schema.Counters.List
	if id := req.GetCounterId(); id != 0 {
		a, ok := s.schema.Counters.ID(id)
		if !ok {
			return invalid("counter_id is %#x, which is no counter of the P4Info", id)
		}
		list = list[:0:0]
		list = append(list, a)
	} else if req.GetIndex() != nil {
		return invalid("index is set with counter_id 0, which reads all counters")
	}
	for _, a := range list {
		from, to, err := cells("counter", a.Name, a.Size, req.GetIndex())
		if err != nil {
			return err
		}
		for i := from; i < to; i++ {
			c, err := s.inst.ReadCounter(a.Name, i)
			if err != nil {
				return fromEngine(err)
			}
			emit(&p4v1.Entity{Entity: &p4v1.Entity_CounterEntry{CounterEntry: &p4v1.CounterEntry{
				CounterId: a.ID, Index: &p4v1.Index{Index: int64(i)}, Data: counterData(c),
			}}})
		}
	}
	return nil
}

// directEntry finds the one entry that a direct resource is of.
func (s *State) directEntry(in *p4v1.TableEntry) (*table, *entry, error) {
	if in == nil {
		return nil, nil, invalid("table_entry is unset")
	}
	t, err := s.tableByID(in.TableId)
	if err != nil {
		return nil, nil, err
	}
	e, _, err := t.locate(in)
	if err == nil && e == nil {
		err = notFound("table %q: there is no entry with this match and priority %d", t.spec.Name, in.Priority)
	}
	return t, e, err
}

func (s *State) writeDirectCounter(op p4v1.Update_Type, in *p4v1.DirectCounterEntry) error {
	if err := onlyModify(op, "direct counter"); err != nil {
		return err
	}
	if in.GetTableEntry().GetIsDefaultAction() {
		return errDefaultResources
	}
	t, e, err := s.directEntry(in.GetTableEntry())
	if err != nil {
		return err
	}
	if t.spec.CounterID == 0 {
		return invalid("table %q: it has no direct counter", t.spec.Name)
	}
	if in.Data == nil {
		return nil
	}
	c, err := counterOf(in.Data)
	if err != nil {
		return err
	}
	return fromEngine(s.inst.SetEntryCounter(t.spec.Name, e.handle, c))
}

// directTables returns the tables that a read of direct resources is about: all that have
// one for table_id 0.
func (s *State) directTables(in *p4v1.TableEntry, has func(*table) bool, what string) ([]*table, error) {
	if in.GetTableId() == 0 {
		if len(in.GetMatch()) > 0 || in.GetPriority() != 0 {
			return nil, invalid("table_entry.table_id is 0, which reads all tables: match and priority must be unset")
		}
		var out []*table
		for _, spec := range s.schema.Tables.List {
			if t := s.tables[spec.ID]; has(t) {
				out = append(out, t)
			}
		}
		return out, nil
	}
	t, err := s.tableByID(in.TableId)
	if err != nil {
		return nil, err
	}
	if !has(t) {
		return nil, invalid("table %q: it has no %s", t.spec.Name, what)
	}
	return []*table{t}, nil
}

// readDirect calls f for the entries that a read of direct resources selects. One entry
// that is asked for and is not there is NOT_FOUND.
func (s *State) readDirect(t *table, in *p4v1.TableEntry, f func(*entry) error) error {
	one := len(in.GetMatch()) > 0 && (!t.spec.NeedsPriority || in.Priority != 0)
	n := 0
	key := &p4v1.TableEntry{TableId: in.GetTableId(), Match: in.GetMatch(), Priority: in.GetPriority()}
	err := t.selected(key, func(e *entry) error { n++; return f(e) })
	if err == nil && one && n == 0 {
		return notFound("table %q: there is no entry with this match and priority %d", t.spec.Name, in.Priority)
	}
	return err
}

func (s *State) readDirectCounters(req *p4v1.DirectCounterEntry, emit func(*p4v1.Entity)) error {
	in := req.GetTableEntry()
	list, err := s.directTables(in, func(t *table) bool { return t.spec.CounterID != 0 }, "direct counter")
	if err != nil {
		return err
	}
	for _, t := range list {
		one := func(key *p4v1.TableEntry, c engine.Counter, err error) error {
			if err == nil {
				emit(&p4v1.Entity{Entity: &p4v1.Entity_DirectCounterEntry{DirectCounterEntry: &p4v1.DirectCounterEntry{
					TableEntry: key, Data: counterData(c),
				}}})
			}
			return fromEngine(err)
		}
		if in.GetIsDefaultAction() {
			c, err := s.inst.DefaultCounter(t.spec.Name)
			if err := one(&p4v1.TableEntry{TableId: t.spec.ID, IsDefaultAction: true}, c, err); err != nil {
				return err
			}
			continue
		}
		err := s.readDirect(t, in, func(e *entry) error {
			c, err := s.inst.EntryCounter(t.spec.Name, e.handle)
			return one(e.keyOnly(), c, err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// keyOnly is the part of an entry that identifies it.
func (e *entry) keyOnly() *p4v1.TableEntry {
	return &p4v1.TableEntry{TableId: e.wire.TableId, Match: e.wire.Match, Priority: e.wire.Priority}
}
