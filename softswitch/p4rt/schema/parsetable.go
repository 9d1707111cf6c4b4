package schema

import (
	"fmt"
	"slices"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/headgate/headgate/softswitch/engine"
)

// parseDirect reads the direct counters and meters. Tables refer to them.
func (s *Schema) parseDirect() error {
	err := eachObject(s, "direct counter", p4configv1.P4Ids_DIRECT_COUNTER, s.Info.GetDirectCounters(), func(c *p4configv1.DirectCounter) error {
		s.direct[c.Preamble.Id] = direct{table: c.DirectTableId}
		return nil
	})
	if err != nil {
		return err
	}
	return eachObject(s, "direct meter", p4configv1.P4Ids_DIRECT_METER, s.Info.GetDirectMeters(), func(m *p4configv1.DirectMeter) error {
		s.direct[m.Preamble.Id] = direct{table: m.DirectTableId, meter: true}
		return nil
	})
}

func (s *Schema) parseTables() error {
	err := parseObjects(s, &s.Tables, "table", p4configv1.P4Ids_TABLE, s.Info.GetTables(), s.parseTable)
	if err != nil {
		return err
	}
	for id, d := range s.direct {
		t, ok := s.Tables.ID(d.table)
		if !ok || t.CounterID != id && t.MeterID != id {
			return fmt.Errorf("%s: direct_table_id is %#x, which is no table with this direct resource", s.ids[id], d.table)
		}
	}
	return nil
}

func (s *Schema) parseTable(t *p4configv1.Table) (*Table, error) {
	out := &Table{
		Object: objectOf(t.Preamble), Size: t.Size, Const: t.IsConstTable,
		ConstDefault: t.ConstDefaultActionId, Actions: map[uint32]*ActionRef{},
	}
	if t.Size < 0 {
		return nil, errSize(t.Size)
	}
	switch t.IdleTimeoutBehavior {
	case p4configv1.Table_NO_TIMEOUT:
	case p4configv1.Table_NOTIFY_CONTROL:
		out.IdleTimeout = true
	default:
		return nil, fmt.Errorf("idle_timeout_behavior is %d, allowed are NO_TIMEOUT and NOTIFY_CONTROL", t.IdleTimeoutBehavior)
	}
	var err error
	if out.Fields, err = s.parseFields(t.MatchFields); err != nil {
		return nil, err
	}
	for _, f := range out.Fields {
		out.NeedsPriority = out.NeedsPriority || f.Kind == engine.Ternary || f.Kind == engine.Range || f.Kind == engine.Optional
	}
	return out, s.parseRefs(t, out)
}

// parseRefs reads what a table refers to: actions, implementation, direct resources.
func (s *Schema) parseRefs(t *p4configv1.Table, out *Table) error {
	for i, r := range t.ActionRefs {
		a, ok := s.Actions.ID(r.Id)
		if !ok || out.Actions[r.Id] != nil {
			return fmt.Errorf("action_refs[%d].id is %#x, which is no action or one named twice", i, r.Id)
		}
		if r.Scope < p4configv1.ActionRef_TABLE_AND_DEFAULT || r.Scope > p4configv1.ActionRef_DEFAULT_ONLY {
			return fmt.Errorf("action_refs[%d].scope is %d, allowed are 0 to 2", i, r.Scope)
		}
		out.Actions[r.Id] = &ActionRef{Action: a, Scope: r.Scope}
	}
	if id := t.ConstDefaultActionId; id != 0 && out.Actions[id] == nil {
		return fmt.Errorf("const_default_action_id is %#x, which is not among its action_refs", id)
	}
	if id := t.ImplementationId; id != 0 {
		p, ok := s.Profiles.ID(id)
		if !ok {
			return fmt.Errorf("implementation_id is %#x, which is no action profile", id)
		}
		out.Profile = p
	}
	for i, id := range t.DirectResourceIds {
		d, ok := s.direct[id]
		slot := &out.CounterID
		if d.meter {
			slot = &out.MeterID
		}
		if !ok || d.table != out.ID || *slot != 0 {
			return fmt.Errorf("direct_resource_ids[%d] is %#x, which is no direct counter or meter of this table, or the second of its kind", i, id)
		}
		*slot = id
	}
	return nil
}

var kinds = map[p4configv1.MatchField_MatchType]engine.MatchKind{
	p4configv1.MatchField_EXACT:    engine.Exact,
	p4configv1.MatchField_LPM:      engine.LPM,
	p4configv1.MatchField_TERNARY:  engine.Ternary,
	p4configv1.MatchField_RANGE:    engine.Range,
	p4configv1.MatchField_OPTIONAL: engine.Optional,
}

// parseFields reads the fields of a key.
func (s *Schema) parseFields(in []*p4configv1.MatchField) ([]*Field, error) {
	var list []*Field
	for i, m := range in {
		where := fmt.Sprintf("match_fields[%d] %q", i, m.Name)
		if m.Id == 0 || slices.ContainsFunc(list, func(f *Field) bool { return f.ID == m.Id }) {
			return nil, fmt.Errorf("%s: id is %d, it must be unique and not 0", where, m.Id)
		}
		kind, ok := kinds[m.GetMatchType()]
		if !ok {
			return nil, fmt.Errorf("%s: match type is %v %q, allowed are EXACT, LPM, TERNARY, RANGE and OPTIONAL", where, m.GetMatchType(), m.GetOtherMatchType())
		}
		var w Width // stays zero if the field's type is error
		if m.Bitwidth != 0 || m.TypeName != nil {
			var err error
			if w, err = s.width(where, m.Bitwidth, m.TypeName); err != nil {
				return nil, err
			}
			if w.DeviceBits == 0 && kind != engine.Exact && kind != engine.Optional {
				return nil, fmt.Errorf("%s: type %q is translated, which is supported for EXACT and OPTIONAL, not %v", where, m.TypeName.GetName(), m.GetMatchType())
			}
		}
		list = append(list, &Field{ID: m.Id, Name: m.Name, Kind: kind, Width: w, position: i, deviceKind: kind})
	}
	return list, nil
}
