package standin

import (
	"fmt"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
)

// matchTypes are BMv2's names, in the order of what a table of several kinds is.
var matchTypes = []struct {
	kind        p4configv1.MatchField_MatchType
	key, lookup string
}{
	{p4configv1.MatchField_RANGE, "range", "range"},
	{p4configv1.MatchField_TERNARY, "ternary", "ternary"},
	{p4configv1.MatchField_OPTIONAL, "optional", "ternary"},
	{p4configv1.MatchField_LPM, "lpm", "lpm"},
	{p4configv1.MatchField_EXACT, "exact", "exact"},
}

func (b *builder) tables() (list, error) {
	out := list{}
	for i, t := range b.info.GetTables() {
		o, err := b.table(i, t)
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", t.GetPreamble().GetName(), err)
		}
		out = append(out, o)
	}
	return out, nil
}

func (b *builder) table(id int, t *p4configv1.Table) (object, error) {
	keys, lookup := list{}, "exact"
	rank := len(matchTypes)
	for _, f := range t.GetMatchFields() {
		found := false
		for i, m := range matchTypes {
			if m.kind != f.GetMatchType() {
				continue
			}
			found = true
			if i < rank {
				rank, lookup = i, m.lookup
			}
			keys = append(keys, object{"match_type": m.key, "name": f.GetName(), "target": b.field(f.GetBitwidth()), "mask": nil})
		}
		if !found {
			return nil, fmt.Errorf("key %s matches by %v, which BMv2 does not", f.GetName(), f.GetMatchType())
		}
	}
	actionIDs, actions, next := list{}, list{}, object{}
	for _, r := range t.GetActionRefs() {
		at, ok := b.actions[r.GetId()]
		if !ok {
			return nil, fmt.Errorf("there is no action with id %#x", r.GetId())
		}
		name := b.info.GetActions()[at].GetPreamble().GetName()
		actionIDs, actions = append(actionIDs, at), append(actions, name)
		next[name] = nil
	}
	o := object{
		"name": t.GetPreamble().GetName(), "id": id, "key": keys, "match_type": lookup, "type": "simple",
		"max_size": t.GetSize(), "with_counters": b.counted(t), "support_timeout": t.GetIdleTimeoutBehavior() == p4configv1.Table_NOTIFY_CONTROL,
		"direct_meters": nil, "action_ids": actionIDs, "actions": actions, "base_default_next": nil, "next_tables": next,
	}
	if t.GetIsConstTable() {
		o["entries"] = list{}
	}
	if def := t.GetConstDefaultActionId(); def != 0 {
		at, ok := b.actions[def]
		if !ok {
			return nil, fmt.Errorf("there is no action with id %#x", def)
		}
		// Its arguments are not in the P4Info.
		data := list{}
		for range b.info.GetActions()[at].GetParams() {
			data = append(data, "0x0")
		}
		o["default_entry"] = object{"action_id": at, "action_const": true, "action_data": data, "action_entry_const": true}
	}
	for _, p := range b.info.GetActionProfiles() {
		if p.GetPreamble().GetId() == t.GetImplementationId() {
			o["type"], o["action_profile"] = "indirect", p.GetPreamble().GetName()
			if p.GetWithSelector() {
				o["type"] = "indirect_ws"
			}
			delete(o, "default_entry")
		}
	}
	return o, nil
}

// counted reports whether a table has a direct counter.
func (b *builder) counted(t *p4configv1.Table) bool {
	for _, c := range b.info.GetDirectCounters() {
		if c.GetDirectTableId() == t.GetPreamble().GetId() {
			return true
		}
	}
	return false
}

// digests takes those of bit strings and of structs of them.
func (b *builder) digests() (list, error) {
	out := list{}
	for i, d := range b.info.GetDigests() {
		elements := list{}
		add := func(spec *p4configv1.P4DataTypeSpec) error {
			bits, err := width(spec)
			elements = append(elements, object{"type": "field", "value": b.field(bits)})
			return err
		}
		var err error
		if s := d.GetTypeSpec().GetStruct(); s != nil {
			for _, m := range b.info.GetTypeInfo().GetStructs()[s.GetName()].GetMembers() {
				if err == nil {
					err = add(m.GetTypeSpec())
				}
			}
		} else {
			err = add(d.GetTypeSpec())
		}
		if err != nil {
			return nil, fmt.Errorf("digest %s: %w", d.GetPreamble().GetName(), err)
		}
		out = append(out, object{"id": i + 1, "name": d.GetPreamble().GetName(), "elements": elements})
	}
	return out, nil
}

func width(spec *p4configv1.P4DataTypeSpec) (int32, error) {
	s := spec.GetBitstring()
	switch {
	case s.GetBit() != nil:
		return s.GetBit().GetBitwidth(), nil
	case s.GetInt() != nil:
		return s.GetInt().GetBitwidth(), nil
	}
	return 0, fmt.Errorf("its type is %T, want bit<W> or int<W>", spec.GetTypeSpec())
}
