package entity

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/softswitch/engine"
)

// Inverse returns the updates that undo u after u has succeeded. The caller must call it before it
// applies u. If u fails the result has no meaning.
func (s *State) Inverse(u *p4v1.Update) []*p4v1.Update {
	key, back := u.GetEntity(), p4v1.Update_MODIFY
	switch u.GetType() {
	case p4v1.Update_INSERT:
		return []*p4v1.Update{p4rtmsg.Delete(key)}
	case p4v1.Update_DELETE:
		back = p4v1.Update_INSERT
	}
	switch e := key.GetEntity().(type) {
	case *p4v1.Entity_TableEntry:
		return s.inverseOfTable(back, e.TableEntry)
	case *p4v1.Entity_MeterEntry:
		key = p4rtmsg.Entity(&p4v1.MeterEntry{MeterId: e.MeterEntry.GetMeterId(), Index: e.MeterEntry.GetIndex()})
	case *p4v1.Entity_ValueSetEntry:
		key = p4rtmsg.Entity(&p4v1.ValueSetEntry{ValueSetId: e.ValueSetEntry.GetValueSetId()})
	}
	var out []*p4v1.Update
	// An entity that cannot be read cannot be written either.
	_ = s.Read(key, func(f Found) { out = append(out, &p4v1.Update{Type: back, Entity: f.Message()}) })
	return out
}

func (s *State) inverseOfTable(back p4v1.Update_Type, in *p4v1.TableEntry) []*p4v1.Update {
	t := s.tables[in.GetTableId()]
	if t == nil {
		return nil
	}
	if in.IsDefaultAction {
		old := t.deflt
		if old == nil {
			old = &p4v1.TableEntry{TableId: in.TableId, IsDefaultAction: true}
		}
		return append([]*p4v1.Update{p4rtmsg.Modify(old)}, s.defaultResources(t, true)...)
	}
	e, err := s.mustLocate(t, &s.key, in)
	if err != nil {
		return nil
	}
	full, err := s.full(t, e)
	if err != nil {
		return nil
	}
	return []*p4v1.Update{{Type: back, Entity: p4rtmsg.Entity(full)}}
}

// full returns an entry with its counter and meter, in the form of an update.
func (s *State) full(t *table, e *entry) (*p4v1.TableEntry, error) {
	m, err := s.withResources(t, e, &p4v1.TableEntry{CounterData: &p4v1.CounterData{}, MeterConfig: &p4v1.MeterConfig{}})
	if err != nil {
		return nil, err
	}
	w := m.decode()
	if !e.fixed {
		return w, nil
	}
	key, _ := t.identify(e) // a const entry's action cannot be written
	key.CounterData, key.MeterConfig = w.CounterData, w.MeterConfig
	return key, nil
}

// defaultResources returns the updates that write the present direct counter and meter of a
// table's default entry. Without all it leaves out those that are zero.
func (s *State) defaultResources(t *table, all bool) (out []*p4v1.Update) {
	key, h := t.identify(nil)
	// EntryCounter and EntryMeter fail only if the table has no such resource.
	if c, err := s.inst.EntryCounter(t.spec.Name, h); err == nil && (all || c != engine.Counter{}) {
		out = append(out, p4rtmsg.Modify(&p4v1.DirectCounterEntry{TableEntry: key, Data: counterData(c)}))
	}
	if r, err := s.inst.EntryMeter(t.spec.Name, h); err == nil && (all || r.Configured) {
		out = append(out, p4rtmsg.Modify(&p4v1.DirectMeterEntry{TableEntry: key, Config: meterConfig(r)}))
	}
	return out
}

// Dump returns the updates that give a fresh pipeline this state. Entities come before those that
// refer to them, so the updates can be applied in order.
func (s *State) Dump() ([]*p4v1.Update, error) {
	var out []*p4v1.Update
	var failed error
	read := func(op p4v1.Update_Type, req any, keep func(*p4v1.Entity) bool) {
		err := s.Read(p4rtmsg.Entity(req), func(f Found) {
			if e := f.Message(); keep == nil || keep(e) {
				out = append(out, &p4v1.Update{Type: op, Entity: e})
			}
		})
		if failed == nil {
			failed = err
		}
	}
	read(p4v1.Update_INSERT, &p4v1.PacketReplicationEngineEntry{}, nil)
	read(p4v1.Update_INSERT, &p4v1.ActionProfileMember{}, nil)
	read(p4v1.Update_INSERT, &p4v1.ActionProfileGroup{}, nil)
	for _, spec := range s.schema.Tables.List {
		t := s.tables[spec.ID]
		for e := range t.all {
			op := p4v1.Update_INSERT
			if e.fixed {
				if spec.CounterID == 0 && spec.MeterID == 0 {
					continue
				}
				op = p4v1.Update_MODIFY
			}
			w, err := s.full(t, e)
			if err != nil {
				return nil, err
			}
			out = append(out, &p4v1.Update{Type: op, Entity: p4rtmsg.Entity(w)})
		}
		if t.deflt != nil {
			out = append(out, p4rtmsg.Modify(t.deflt))
		}
		out = append(out, s.defaultResources(t, false)...)
	}
	read(p4v1.Update_MODIFY, &p4v1.CounterEntry{}, func(e *p4v1.Entity) bool {
		d := e.GetCounterEntry().GetData()
		return d.GetPacketCount() != 0 || d.GetByteCount() != 0
	})
	read(p4v1.Update_MODIFY, &p4v1.MeterEntry{}, func(e *p4v1.Entity) bool { return e.GetMeterEntry().GetConfig() != nil })
	read(p4v1.Update_MODIFY, &p4v1.RegisterEntry{}, func(e *p4v1.Entity) bool {
		r, _ := s.schema.Registers.ID(e.GetRegisterEntry().GetRegisterId())
		return !r.Type.IsZero(e.GetRegisterEntry().GetData())
	})
	read(p4v1.Update_MODIFY, &p4v1.ValueSetEntry{}, func(e *p4v1.Entity) bool { return len(e.GetValueSetEntry().GetMembers()) > 0 })
	read(p4v1.Update_INSERT, &p4v1.DigestEntry{}, nil)
	return out, statusOf(failed)
}
