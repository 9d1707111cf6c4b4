package standin_test

import (
	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// served is an object of a P4Info: what is written to it, if anything, and how it is read.
type served struct {
	what  string
	write *p4v1.Update
	read  *p4v1.Entity
	least int // entities that the read returns
}

func insert(e *p4v1.Entity) *p4v1.Update { return &p4v1.Update{Type: p4v1.Update_INSERT, Entity: e} }

// sample returns all objects of a P4Info.
func sample(info *p4configv1.P4Info) []served {
	var list []served
	actions := map[uint32]*p4configv1.Action{}
	for _, a := range info.GetActions() {
		actions[a.GetPreamble().GetId()] = a
	}
	for _, p := range info.GetActionProfiles() {
		list = append(list, profile(info, actions, p)...)
	}
	for _, t := range info.GetTables() {
		e := &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: entry(t, actions)}}
		list = append(list, served{t.GetPreamble().GetName(), insert(e), &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{
			TableEntry: &p4v1.TableEntry{TableId: t.GetPreamble().GetId()},
		}}, 1})
		if len(t.GetMatchFields()) == 0 {
			e.GetTableEntry().IsDefaultAction = true
			list[len(list)-1].write.Type = p4v1.Update_MODIFY
			list[len(list)-1].read.GetTableEntry().IsDefaultAction = true
		}
	}
	for _, c := range info.GetCounters() {
		list = append(list, served{c.GetPreamble().GetName(), nil, &p4v1.Entity{Entity: &p4v1.Entity_CounterEntry{
			CounterEntry: &p4v1.CounterEntry{CounterId: c.GetPreamble().GetId()},
		}}, int(c.GetSize())})
	}
	for _, c := range info.GetDirectCounters() {
		list = append(list, served{c.GetPreamble().GetName(), nil, &p4v1.Entity{Entity: &p4v1.Entity_DirectCounterEntry{
			DirectCounterEntry: &p4v1.DirectCounterEntry{TableEntry: &p4v1.TableEntry{TableId: c.GetDirectTableId()}},
		}}, 1})
	}
	for _, r := range info.GetRegisters() {
		list = append(list, served{r.GetPreamble().GetName(), nil, &p4v1.Entity{Entity: &p4v1.Entity_RegisterEntry{
			RegisterEntry: &p4v1.RegisterEntry{RegisterId: r.GetPreamble().GetId()},
		}}, int(r.GetSize())})
	}
	for _, d := range info.GetDigests() {
		id := d.GetPreamble().GetId()
		list = append(list, served{d.GetPreamble().GetName(), insert(&p4v1.Entity{Entity: &p4v1.Entity_DigestEntry{DigestEntry: &p4v1.DigestEntry{
			DigestId: id, Config: &p4v1.DigestEntry_Config{MaxListSize: 1, MaxTimeoutNs: 1000, AckTimeoutNs: 1000},
		}}}), &p4v1.Entity{Entity: &p4v1.Entity_DigestEntry{DigestEntry: &p4v1.DigestEntry{DigestId: id}}}, 1})
	}
	clone := func(s *p4v1.CloneSessionEntry) *p4v1.Entity {
		return &p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: &p4v1.PacketReplicationEngineEntry{
			Type: &p4v1.PacketReplicationEngineEntry_CloneSessionEntry{CloneSessionEntry: s},
		}}}
	}
	return append(list, served{"clone session", insert(clone(&p4v1.CloneSessionEntry{
		SessionId: 254, Replicas: []*p4v1.Replica{{EgressPort: 320, Instance: 1}},
	})), clone(&p4v1.CloneSessionEntry{SessionId: 254}), 1})
}

// entry returns an entry that matches 1 in every field.
func entry(t *p4configv1.Table, actions map[uint32]*p4configv1.Action) *p4v1.TableEntry {
	e := &p4v1.TableEntry{TableId: t.GetPreamble().GetId()}
	one := []byte{1}
	for _, f := range t.GetMatchFields() {
		m := &p4v1.FieldMatch{FieldId: f.GetId()}
		switch f.GetMatchType() {
		case p4configv1.MatchField_EXACT:
			m.FieldMatchType = &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: one}}
		case p4configv1.MatchField_LPM:
			m.FieldMatchType = &p4v1.FieldMatch_Lpm{Lpm: &p4v1.FieldMatch_LPM{Value: one, PrefixLen: f.GetBitwidth()}}
		case p4configv1.MatchField_TERNARY:
			m.FieldMatchType = &p4v1.FieldMatch_Ternary_{Ternary: &p4v1.FieldMatch_Ternary{Value: one, Mask: one}}
			e.Priority = 1
		case p4configv1.MatchField_RANGE:
			m.FieldMatchType = &p4v1.FieldMatch_Range_{Range: &p4v1.FieldMatch_Range{Low: one, High: one}}
			e.Priority = 1
		}
		e.Match = append(e.Match, m)
	}
	if t.GetImplementationId() != 0 {
		e.Action = &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileGroupId{ActionProfileGroupId: 1}}
		return e
	}
	e.Action = &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: call(t, actions)}}
	return e
}

// call calls the first action that entries of a table may have, with 1 for every argument.
func call(t *p4configv1.Table, actions map[uint32]*p4configv1.Action) *p4v1.Action {
	for _, r := range t.GetActionRefs() {
		if r.GetScope() == p4configv1.ActionRef_DEFAULT_ONLY {
			continue
		}
		a := &p4v1.Action{ActionId: r.GetId()}
		for _, p := range actions[r.GetId()].GetParams() {
			a.Params = append(a.Params, &p4v1.Action_Param{ParamId: p.GetId(), Value: []byte{1}})
		}
		return a
	}
	return nil
}

// profile writes member 1 and group 1.
func profile(info *p4configv1.P4Info, actions map[uint32]*p4configv1.Action, p *p4configv1.ActionProfile) []served {
	id := p.GetPreamble().GetId()
	var action *p4v1.Action
	for _, t := range info.GetTables() {
		if t.GetImplementationId() == id {
			action = call(t, actions)
		}
	}
	member := func(m *p4v1.ActionProfileMember) *p4v1.Entity {
		return &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileMember{ActionProfileMember: m}}
	}
	group := func(g *p4v1.ActionProfileGroup) *p4v1.Entity {
		return &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileGroup{ActionProfileGroup: g}}
	}
	return []served{
		{
			p.GetPreamble().GetName() + " member", insert(member(&p4v1.ActionProfileMember{ActionProfileId: id, MemberId: 1, Action: action})),
			member(&p4v1.ActionProfileMember{ActionProfileId: id}), 1,
		},
		{
			p.GetPreamble().GetName() + " group", insert(group(&p4v1.ActionProfileGroup{
				ActionProfileId: id, GroupId: 1, MaxSize: p.GetMaxGroupSize(), Members: []*p4v1.ActionProfileGroup_Member{{MemberId: 1, Weight: 1}},
			})), group(&p4v1.ActionProfileGroup{ActionProfileId: id}), 1,
		},
	}
}
