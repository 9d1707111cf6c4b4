package schema

import (
	"fmt"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/headgate/headgate/softswitch/engine"
)

// parseDirect reads the direct counters and meters, which tables refer to.
func (s *Schema) parseDirect() error {
	for _, c := range s.Info.GetDirectCounters() {
		if err := s.claim("direct counter", p4configv1.P4Ids_DIRECT_COUNTER, c.Preamble); err != nil {
			return err
		}
		s.direct[c.Preamble.Id] = direct{table: c.DirectTableId}
	}
	for _, m := range s.Info.GetDirectMeters() {
		if err := s.claim("direct meter", p4configv1.P4Ids_DIRECT_METER, m.Preamble); err != nil {
			return err
		}
		s.direct[m.Preamble.Id] = direct{table: m.DirectTableId, meter: true}
	}
	return nil
}

func (s *Schema) parseTables() error {
	for _, t := range s.Info.GetTables() {
		if err := s.claim("table", p4configv1.P4Ids_TABLE, t.Preamble); err != nil {
			return err
		}
		out := &Table{
			ID: t.Preamble.Id, Name: t.Preamble.Name, Size: t.Size, Const: t.IsConstTable,
			ConstDefault: t.ConstDefaultActionId, Actions: map[uint32]*ActionRef{},
		}
		where := fmt.Sprintf("table %q", out.Name)
		if t.Size < 0 {
			return fmt.Errorf("%s: size is %d, it must not be negative", where, t.Size)
		}
		switch t.IdleTimeoutBehavior {
		case p4configv1.Table_NO_TIMEOUT:
		case p4configv1.Table_NOTIFY_CONTROL:
			out.IdleTimeout = true
		default:
			return fmt.Errorf("%s: idle_timeout_behavior is %d, allowed are NO_TIMEOUT and NOTIFY_CONTROL", where, t.IdleTimeoutBehavior)
		}
		var err error
		if out.Fields, out.fields, err = s.parseKey(where, t.MatchFields); err != nil {
			return err
		}
		for _, f := range out.Fields {
			out.NeedsPriority = out.NeedsPriority || f.Kind == engine.Ternary || f.Kind == engine.Range || f.Kind == engine.Optional
		}
		if err := s.parseRefs(where, t, out); err != nil {
			return err
		}
		if err := addNamed(&s.Tables, "table", t.Preamble, out); err != nil {
			return err
		}
	}
	for id, d := range s.direct {
		t, ok := s.Tables.ID(d.table)
		if !ok || t.CounterID != id && t.MeterID != id {
			return fmt.Errorf("%s: direct_table_id is %#x, which is no table with this direct resource", s.ids[id], d.table)
		}
	}
	return nil
}

// parseRefs reads what a table refers to: actions, implementation, direct resources.
func (s *Schema) parseRefs(where string, t *p4configv1.Table, out *Table) error {
	for i, r := range t.ActionRefs {
		a, ok := s.Actions.ID(r.Id)
		if !ok || out.Actions[r.Id] != nil {
			return fmt.Errorf("%s: action_refs[%d].id is %#x, which is no action or one named twice", where, i, r.Id)
		}
		if r.Scope < p4configv1.ActionRef_TABLE_AND_DEFAULT || r.Scope > p4configv1.ActionRef_DEFAULT_ONLY {
			return fmt.Errorf("%s: action_refs[%d].scope is %d, allowed are 0 to 2", where, i, r.Scope)
		}
		out.Actions[r.Id] = &ActionRef{Action: a, Scope: r.Scope}
	}
	if id := t.ConstDefaultActionId; id != 0 && out.Actions[id] == nil {
		return fmt.Errorf("%s: const_default_action_id is %#x, which is not among its action_refs", where, id)
	}
	if id := t.ImplementationId; id != 0 {
		p, ok := s.Profiles.ID(id)
		if !ok {
			return fmt.Errorf("%s: implementation_id is %#x, which is no action profile", where, id)
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
			return fmt.Errorf("%s: direct_resource_ids[%d] is %#x, which is no direct counter or meter of this table, or the second of its kind", where, i, id)
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

func (s *Schema) parseKey(where string, in []*p4configv1.MatchField) ([]*Field, map[uint32]*Field, error) {
	var list []*Field
	byID := map[uint32]*Field{}
	for i, m := range in {
		where := fmt.Sprintf("%s: match_fields[%d] %q", where, i, m.Name)
		if m.Id == 0 || byID[m.Id] != nil {
			return nil, nil, fmt.Errorf("%s: id is %d, it must be unique and not 0", where, m.Id)
		}
		kind, ok := kinds[m.GetMatchType()]
		if !ok {
			return nil, nil, fmt.Errorf("%s: match type is %v %q, allowed are EXACT, LPM, TERNARY, RANGE and OPTIONAL", where, m.GetMatchType(), m.GetOtherMatchType())
		}
		bits, translated, err := s.width(where, m.Bitwidth, m.TypeName)
		if err != nil {
			return nil, nil, err
		}
		f := &Field{ID: m.Id, Name: m.Name, Kind: kind, Bits: bits, DeviceBits: bits, position: i, deviceKind: kind}
		if translated {
			if kind != engine.Exact && kind != engine.Optional {
				return nil, nil, fmt.Errorf("%s: type %q is translated, which is supported for EXACT and OPTIONAL, not %v", where, m.TypeName.GetName(), m.GetMatchType())
			}
			f.DeviceBits = 0 // the JSON says
		}
		list, byID[m.Id] = append(list, f), f
	}
	return list, byID, nil
}
