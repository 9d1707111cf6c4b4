package schema

import (
	"cmp"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/canon"
	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/softswitch/engine"
)

// readEntries reads a table's default action and its entries from the program.
func (s *Schema) readEntries(t *Table, info *engine.TableInfo) error {
	if info.Default != nil {
		t.Default = s.programAction(info.Default)
	} else if a, ok := s.Actions.Name("NoAction"); ok && t.Actions[a.ID] != nil {
		t.Default = &p4v1.Action{ActionId: a.ID} // P4's default for tables without a default_action
	}
	for i := range info.Entries {
		own := &info.Entries[i]
		e := &p4v1.TableEntry{TableId: t.ID}
		for _, f := range t.Fields {
			if m := f.programMatch(&own.Key[f.position]); m != nil {
				e.Match = append(e.Match, m)
			}
		}
		if a := s.programAction(&own.Action); a != nil {
			e.Action = p4msg.Call(a)
		}
		t.Entries = append(t.Entries, e)
	}
	if t.NeedsPriority {
		rank(t.Entries, info.Entries)
	}
	return nil
}

// rank numbers entries in ascending order of precedence, from 1. The specification requires these
// priorities in reads.
func rank(entries []*p4v1.TableEntry, own []engine.ConstEntry) {
	order := make([]int, len(own))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(own[b].Priority, own[a].Priority) })
	for i, at := range order {
		entries[at].Priority = int32(len(order) - i)
	}
}

// programAction translates an action call of the program; nil if the P4Info lacks the action.
func (s *Schema) programAction(call *engine.ActionCall) *p4v1.Action {
	a, ok := s.Actions.Name(call.Name)
	if !ok {
		return nil
	}
	out := &p4v1.Action{ActionId: a.ID}
	for i, p := range a.Params {
		out.Params = append(out.Params, &p4v1.Action_Param{ParamId: p.ID, Value: programNumber(call.Args[i])})
	}
	return out
}

// programMatch translates a match of the program; nil if it matches everything.
func (f *Field) programMatch(m *engine.Match) *p4v1.FieldMatch {
	value, mask := programNumber(m.Value), programNumber(m.Mask)
	switch {
	case f.Kind == engine.LPM && m.Prefix == 0,
		f.deviceKind == engine.Ternary && canon.IsZero(mask),
		f.Kind == engine.Range && canon.IsZero(value) && canon.IsMax(mask, f.DeviceBits):
		return nil
	}
	switch f.Kind {
	case engine.Exact:
		return p4msg.Exact(f.ID, value)
	case engine.Optional:
		return p4msg.Optional(f.ID, value)
	case engine.LPM:
		return p4msg.LPM(f.ID, value, int32(m.Prefix))
	case engine.Ternary:
		return p4msg.Ternary(f.ID, value, mask)
	}
	return p4msg.Range(f.ID, value, mask)
}

// programNumber returns the canonical form of b, a number of the engine.
func programNumber(b []byte) []byte { return canon.Of(append([]byte{0}, b...)) }
