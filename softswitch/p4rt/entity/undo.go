package entity

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/softswitch/engine"
)

// Inverse returns the updates that undo u after u has succeeded. The caller must call it before it
// applies u. If u fails the result has no meaning.
func (s *State) Inverse(u *p4v1.Update) []*p4v1.Update {
	if u.GetType() == p4v1.Update_INSERT {
		return []*p4v1.Update{{Type: p4v1.Update_DELETE, Entity: u.Entity}}
	}
	if e, ok := u.GetEntity().GetEntity().(*p4v1.Entity_TableEntry); ok {
		return s.inverseOfTable(u.Type, e.TableEntry)
	}
	back := p4v1.Update_MODIFY
	if u.GetType() == p4v1.Update_DELETE {
		back = p4v1.Update_INSERT
	}
	var out []*p4v1.Update
	// An entity that cannot be read cannot be written either.
	_ = s.Read(query(u.GetEntity()), func(f Found) {
		out = append(out, &p4v1.Update{Type: back, Entity: f.Message()})
	})
	return out
}

// query reduces an entity to its key.
func query(e *p4v1.Entity) *p4v1.Entity {
	switch e := e.GetEntity().(type) {
	case *p4v1.Entity_MeterEntry:
		return p4msg.Of(&p4v1.MeterEntry{MeterId: e.MeterEntry.GetMeterId(), Index: e.MeterEntry.GetIndex()})
	case *p4v1.Entity_ValueSetEntry:
		return p4msg.Of(&p4v1.ValueSetEntry{ValueSetId: e.ValueSetEntry.GetValueSetId()})
	}
	return e
}

func (s *State) inverseOfTable(op p4v1.Update_Type, in *p4v1.TableEntry) []*p4v1.Update {
	t := s.tables[in.GetTableId()]
	if t == nil {
		return nil
	}
	modify := func(e *p4v1.TableEntry) []*p4v1.Update {
		return []*p4v1.Update{{Type: p4v1.Update_MODIFY, Entity: p4msg.Of(e)}}
	}
	if in.IsDefaultAction {
		old := t.deflt
		if old == nil {
			old = &p4v1.TableEntry{TableId: in.TableId, IsDefaultAction: true}
		}
		return append(modify(old), s.defaultResources(t, true)...)
	}
	e, err := s.mustLocate(t, &s.key, in)
	if err != nil {
		return nil
	}
	full, err := s.full(t, e)
	if err != nil {
		return nil
	}
	if op == p4v1.Update_MODIFY {
		return modify(full)
	}
	return []*p4v1.Update{{Type: p4v1.Update_INSERT, Entity: p4msg.Of(full)}}
}

// full returns an entry with its counter and meter, in the form of an update.
func (s *State) full(t *table, e *entry) (*p4v1.TableEntry, error) {
	out, err := s.withResources(t, e, &p4v1.TableEntry{CounterData: &p4v1.CounterData{}, MeterConfig: &p4v1.MeterConfig{}})
	if err != nil {
		return nil, err
	}
	w := out.entry.decode()
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
	keep := func(e *p4v1.Entity) { out = append(out, &p4v1.Update{Type: p4v1.Update_MODIFY, Entity: e}) }
	key, h := t.identify(nil)
	// EntryCounter and EntryMeter fail only if the table has no such resource.
	if c, err := s.inst.EntryCounter(t.spec.Name, h); err == nil && (all || c != engine.Counter{}) {
		keep(p4msg.Of(&p4v1.DirectCounterEntry{TableEntry: key, Data: counterData(c)}))
	}
	if r, err := s.inst.EntryMeter(t.spec.Name, h); err == nil && (all || r.Configured) {
		keep(p4msg.Of(&p4v1.DirectMeterEntry{TableEntry: key, Config: meterConfig(r)}))
	}
	return out
}

// Dump returns the updates that give a fresh pipeline this state. Entities come before those that
// refer to them, so the updates can be applied in order.
func (s *State) Dump() ([]*p4v1.Update, error) {
	var out []*p4v1.Update
	var failed error
	read := func(op p4v1.Update_Type, req *p4v1.Entity, keep func(*p4v1.Entity) bool) {
		err := s.Read(req, func(f Found) {
			if e := f.Message(); keep == nil || keep(e) {
				out = append(out, &p4v1.Update{Type: op, Entity: e})
			}
		})
		if failed == nil {
			failed = err
		}
	}
	read(p4v1.Update_INSERT, &p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{}}, nil)
	read(p4v1.Update_INSERT, &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileMember{}}, nil)
	read(p4v1.Update_INSERT, &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileGroup{}}, nil)
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
			out = append(out, &p4v1.Update{Type: op, Entity: p4msg.Of(w)})
		}
		if t.deflt != nil {
			out = append(out, p4msg.Modify(t.deflt))
		}
		out = append(out, s.defaultResources(t, false)...)
	}
	read(p4v1.Update_MODIFY, &p4v1.Entity{Entity: &p4v1.Entity_CounterEntry{}}, func(e *p4v1.Entity) bool {
		d := e.GetCounterEntry().GetData()
		return d.GetPacketCount() != 0 || d.GetByteCount() != 0
	})
	read(p4v1.Update_MODIFY, &p4v1.Entity{Entity: &p4v1.Entity_MeterEntry{}}, func(e *p4v1.Entity) bool {
		return e.GetMeterEntry().GetConfig() != nil
	})
	read(p4v1.Update_MODIFY, &p4v1.Entity{Entity: &p4v1.Entity_RegisterEntry{}}, func(e *p4v1.Entity) bool {
		r, _ := s.schema.Registers.ID(e.GetRegisterEntry().GetRegisterId())
		return !r.Type.IsZero(e.GetRegisterEntry().GetData())
	})
	read(p4v1.Update_MODIFY, &p4v1.Entity{Entity: &p4v1.Entity_ValueSetEntry{}}, func(e *p4v1.Entity) bool {
		return len(e.GetValueSetEntry().GetMembers()) > 0
	})
	read(p4v1.Update_INSERT, &p4v1.Entity{Entity: &p4v1.Entity_DigestEntry{}}, nil)
	return out, failed
}

// ObjectOf returns the id of the P4Info object that an entity belongs to; 0 for entities
// of the packet replication engine and for reads of all objects.
func ObjectOf(e *p4v1.Entity) uint32 {
	switch e := e.GetEntity().(type) {
	case *p4v1.Entity_TableEntry:
		return e.TableEntry.GetTableId()
	case *p4v1.Entity_ActionProfileMember:
		return e.ActionProfileMember.GetActionProfileId()
	case *p4v1.Entity_ActionProfileGroup:
		return e.ActionProfileGroup.GetActionProfileId()
	case *p4v1.Entity_MeterEntry:
		return e.MeterEntry.GetMeterId()
	case *p4v1.Entity_DirectMeterEntry:
		return e.DirectMeterEntry.GetTableEntry().GetTableId()
	case *p4v1.Entity_CounterEntry:
		return e.CounterEntry.GetCounterId()
	case *p4v1.Entity_DirectCounterEntry:
		return e.DirectCounterEntry.GetTableEntry().GetTableId()
	case *p4v1.Entity_ValueSetEntry:
		return e.ValueSetEntry.GetValueSetId()
	case *p4v1.Entity_RegisterEntry:
		return e.RegisterEntry.GetRegisterId()
	case *p4v1.Entity_DigestEntry:
		return e.DigestEntry.GetDigestId()
	case *p4v1.Entity_ExternEntry:
		return e.ExternEntry.GetExternId()
	}
	return 0
}
