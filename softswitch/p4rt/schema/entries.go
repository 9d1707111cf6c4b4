package schema

import (
	"encoding/json"
	"fmt"
	"sort"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/canon"
)

// readEntries takes over a table's default action and its own entries from the program.
func (s *Schema) readEntries(j *bmv2, jt *bmv2Table, t *Table) error {
	if d := jt.Default; d != nil {
		a, err := s.programAction(j, d.ActionID, d.Data)
		if err != nil {
			return fmt.Errorf("default_entry: %w", err)
		}
		t.Default = a
	} else if a, ok := s.Actions.Name("NoAction"); ok && t.Actions[a.ID] != nil {
		t.Default = &p4v1.Action{ActionId: a.ID} // what P4 runs where a program says nothing
	}
	for i := range jt.Entries {
		e, err := s.programEntry(j, &jt.Entries[i], t)
		if err != nil {
			return fmt.Errorf("entries[%d]: %w", i, err)
		}
		t.Entries = append(t.Entries, e)
	}
	if t.NeedsPriority {
		rank(t.Entries, jt.Entries)
	}
	return nil
}

// rank numbers entries from 1 for the one of lowest precedence upwards, as the
// specification wants them read. In BMv2's JSON the lowest number takes precedence.
func rank(entries []*p4v1.TableEntry, own []bmv2Entry) {
	order := make([]int, len(own))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return own[order[a]].Priority < own[order[b]].Priority })
	for i, at := range order {
		entries[at].Priority = int32(len(order) - i)
	}
}

// programAction builds an action call of the program; nil when P4Info lacks the action.
func (s *Schema) programAction(j *bmv2, id int, data []string) (*p4v1.Action, error) {
	a, ok := s.Actions.Name(j.actionName(id))
	if !ok {
		return nil, nil
	}
	if len(data) != len(a.Params) {
		return nil, fmt.Errorf("action %q gets %d values, it has %d parameters", a.Name, len(data), len(a.Params))
	}
	out := &p4v1.Action{ActionId: a.ID}
	for i, p := range a.Params {
		v, err := number16(data[i], p.DeviceBits)
		if err != nil {
			return nil, fmt.Errorf("action %q: parameter %q: %w", a.Name, p.Name, err)
		}
		out.Params = append(out.Params, &p4v1.Action_Param{ParamId: p.ID, Value: v})
	}
	return out, nil
}

func (s *Schema) programEntry(j *bmv2, je *bmv2Entry, t *Table) (*p4v1.TableEntry, error) {
	if len(je.Key) != len(t.Fields) {
		return nil, fmt.Errorf("match_key has %d fields, the table has %d", len(je.Key), len(t.Fields))
	}
	out := &p4v1.TableEntry{TableId: t.ID}
	for _, f := range t.Fields {
		k := &je.Key[f.position]
		value, mask, prefix := "", k.Mask, k.Prefix
		if k.Kind == "range" {
			value, mask = k.Start, k.End
		} else if err := json.Unmarshal(k.Key, &value); err != nil {
			return nil, fmt.Errorf("match_key of %q: %s is not a hexadecimal number", f.Name, k.Key)
		}
		m, err := f.programMatch(value, mask, prefix)
		if err != nil {
			return nil, fmt.Errorf("match_key of %q: %w", f.Name, err)
		}
		if m != nil {
			out.Match = append(out.Match, m)
		}
	}
	a, err := s.programAction(j, je.Action.ID, je.Action.Data)
	if err != nil {
		return nil, err
	}
	if a != nil {
		out.Action = &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: a}}
	}
	return out, nil
}

// programMatch builds a match in canonical form; nil for one that matches everything.
func (f *Field) programMatch(value, mask string, prefix int) (*p4v1.FieldMatch, error) {
	v, err := number16(value, f.DeviceBits)
	if err != nil {
		return nil, err
	}
	var m []byte
	if f.deviceKind == engine.Ternary || f.Kind == engine.Range {
		if m, err = number16(mask, f.DeviceBits); err != nil {
			return nil, err
		}
	}
	switch f.Kind {
	case engine.LPM:
		if prefix == 0 {
			return nil, nil
		}
		v = maskPrefix(v, f.Bits, prefix)
	case engine.Ternary:
		if canon.IsZero(m) {
			return nil, nil
		}
		v = and(v, m)
	case engine.Optional:
		if m != nil && canon.IsZero(m) {
			return nil, nil
		}
	case engine.Range:
		if canon.IsZero(v) && canon.IsMax(m, f.DeviceBits) {
			return nil, nil
		}
	}
	return f.proto(v, m, prefix), nil
}

// and returns value & mask, canonical.
func and(value, mask []byte) []byte {
	out := make([]byte, max(1, min(len(value), len(mask))))
	for i := 1; i <= len(out) && i <= len(value) && i <= len(mask); i++ {
		out[len(out)-i] = value[len(value)-i] & mask[len(mask)-i]
	}
	return canon.Of(out)
}

// maskPrefix zeroes all but the first prefix of bits bits.
func maskPrefix(v []byte, bits, prefix int) []byte {
	out := append([]byte(nil), v...)
	for i, n := len(out)-1, bits-prefix; i >= 0 && n > 0; i, n = i-1, n-8 {
		if n >= 8 {
			out[i] = 0
		} else {
			out[i] &= 0xff << n
		}
	}
	return canon.Of(out)
}
