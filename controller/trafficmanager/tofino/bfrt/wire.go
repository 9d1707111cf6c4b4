package bfrt

import (
	"encoding/binary"
	"fmt"
	"slices"

	pb "github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt/bfrtpb"
	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/units"
)

// Encode converts a row to an entry for an operation. The error, a *units.FieldError, names the part that the
// schema does not allow.
func (s *Schema) Encode(device uint32, op Operation, r Row) (*pb.TableEntry, error) {
	t := s.byName[r.Table]
	if t == nil {
		return nil, bad(r, "table", fmt.Sprintf("%q", r.Table), "a table of the schema")
	}
	e := encoder{table: t, row: r, op: op, write: op != Read}
	return e.entry(device)
}

// bad returns the error for a wrong field of a row. field is a field of the schema, or table, action, pipe or
// operation.
func bad(r Row, field, value, allowed string) error {
	return fmt.Errorf("%s: %w", r.Name(), &units.FieldError{Field: field, Value: value, Allowed: allowed})
}

// encoder builds one entry.
type encoder struct {
	table *Table
	row   Row
	op    Operation
	write bool // op is not Read
}

func (e *encoder) bad(field, value, allowed string) error {
	return bad(e.row, field, value, allowed)
}

func (e *encoder) entry(device uint32) (*pb.TableEntry, error) {
	t, r := e.table, &e.row
	if e.write && !t.Can(e.op) {
		return nil, e.bad("operation", string(e.op), "what the table has")
	}
	out := &pb.TableEntry{TableId: t.ID, EntryTgt: &pb.TargetDevice{DeviceId: device, PipeId: AllPipes}}
	if t.Scope == Pipe && !r.Default {
		if r.Pipe == AllPipes {
			return nil, e.bad("pipe", "all", "one pipe")
		}
		out.EntryTgt.PipeId = r.Pipe
	}
	if r.Fresh {
		if e.write {
			return nil, e.bad("fresh", "true", "false in a write")
		}
		out.TableFlags = &pb.TableFlags{FromHw: true}
	}
	if err := e.key(out); err != nil {
		return nil, err
	}
	return out, e.data(out)
}

func (e *encoder) key(out *pb.TableEntry) error {
	t, r := e.table, &e.row
	if len(r.Key) == 0 {
		out.IsDefaultEntry = r.Default || len(t.Keys) == 0
		switch {
		case out.IsDefaultEntry && len(t.Keys) > 0 && (e.write || !t.Can(ReadDefault)):
			return e.bad("key", "that of the default entry", "one with "+names(t.Keys))
		case !out.IsDefaultEntry && e.write:
			return e.bad("key", "empty", "one with "+names(t.Keys))
		}
		return nil
	}
	key := &pb.TableKey{}
	for i := range t.Keys {
		f := &t.Keys[i]
		v := r.Key.Get(f.Name)
		if why := f.Check(v); why != "" {
			return e.bad(f.Name, show(v), why)
		}
		var b []byte
		switch x := v.(type) {
		case uint64:
			b = big(f, x)
		case string:
			b = []byte(x)
		}
		key.Fields = append(key.Fields, &pb.KeyField{FieldId: f.ID, MatchType: &pb.KeyField_Exact_{Exact: &pb.KeyField_Exact{Value: b}}})
	}
	for _, n := range r.Key {
		if t.Key(n.Name) == nil {
			return e.bad("key", n.Name, names(t.Keys))
		}
	}
	out.Value = &pb.TableEntry_Key{Key: key}
	return nil
}

func (e *encoder) data(out *pb.TableEntry) error {
	t, r := e.table, &e.row
	if e.op == Delete {
		return nil
	}
	var action *Action
	if r.Action != "" {
		if action = t.Action(r.Action); action == nil {
			return e.bad("action", r.Action, "an action of the table")
		}
	}
	known := t.Fields(action)
	data := &pb.TableData{}
	if action != nil {
		data.ActionId = action.ID
	}
	for i, n := range r.Data {
		f := named(known, n.Name)
		if f == nil {
			return e.bad(n.Name, show(n.Value), names(known))
		}
		if slices.ContainsFunc(r.Data[:i], func(o Named) bool { return o.Name == n.Name }) {
			return e.bad(n.Name, show(n.Value), "a field once, not twice")
		}
		field := &pb.DataField{FieldId: f.ID}
		if e.write {
			if f.ReadOnly {
				return e.bad(n.Name, show(n.Value), "reading it")
			}
			if why := f.Check(n.Value); why != "" {
				return e.bad(n.Name, show(n.Value), why)
			}
			f.Put(field, n.Value)
		}
		data.Fields = append(data.Fields, field)
	}
	for i := range known {
		f := &known[i]
		if needed := f.Mandatory && e.write || f.Insert && e.op == Insert; needed && r.Data.Get(f.Name) == nil {
			return e.bad(f.Name, "left out", f.Allowed())
		}
	}
	if len(data.Fields) > 0 || action != nil {
		out.Data = data
	}
	return nil
}

// big returns a number in the bytes of its field.
func big(f *Field, v uint64) []byte {
	return binary.BigEndian.AppendUint64(nil, v)[8-f.Bytes():]
}

// Put sets a field's value in an entry.
func (f *Field) Put(out *pb.DataField, v any) {
	switch x := v.(type) {
	case uint64:
		out.Value = &pb.DataField_Stream{Stream: big(f, x)}
	case bool:
		out.Value = &pb.DataField_BoolVal{BoolVal: x}
	case string:
		out.Value = &pb.DataField_StrVal{StrVal: x}
	case float32:
		out.Value = &pb.DataField_FloatVal{FloatVal: x}
	case []uint32:
		out.Value = &pb.DataField_IntArrVal{IntArrVal: &pb.DataField_IntArray{Val: x}}
	}
}

// Decode converts an entry to a row. A field that the schema lacks is an error. A value out of range is not,
// because a chip may allow more than the schema.
func (s *Schema) Decode(e *pb.TableEntry) (Row, error) {
	t := s.byID[e.GetTableId()]
	if t == nil {
		return Row{}, fmt.Errorf("an entry of table %d, which the schema does not have", e.GetTableId())
	}
	r := Row{Table: t.Name, Pipe: AllPipes, Default: e.GetIsDefaultEntry() && len(t.Keys) > 0}
	if t.Scope == Pipe && !r.Default {
		r.Pipe = e.GetEntryTgt().GetPipeId()
	}
	for _, k := range e.GetKey().GetFields() {
		f := numbered(t.Keys, k.GetFieldId())
		if f == nil || k.GetExact() == nil {
			return r, fmt.Errorf("%s: an entry with an unknown key field %d", t.Name, k.GetFieldId())
		}
		var v any = string(k.GetExact().GetValue())
		if f.Kind == Number {
			var err error
			if v, err = number(k.GetExact().GetValue()); err != nil {
				return r, fmt.Errorf("%s: key field %s: %w", t.Name, f.Name, err)
			}
		}
		r.Key = append(r.Key, Named{f.Name, v})
	}
	var action *Action
	if id := e.GetData().GetActionId(); id != 0 {
		if action = t.ActionOf(id); action == nil {
			return r, fmt.Errorf("%s: an entry with an unknown action %d", r.Name(), id)
		}
		r.Action = action.Name
	}
	known := t.Fields(action)
	for _, d := range e.GetData().GetFields() {
		f := numbered(known, d.GetFieldId())
		if f == nil {
			continue // a field of a newer driver
		}
		v, err := f.value(d)
		if err != nil {
			return r, fmt.Errorf("%s: field %s: %w", r.Name(), f.Name, err)
		}
		if v != nil {
			r.Data = append(r.Data, Named{f.Name, v})
		}
	}
	return r, nil
}

// value returns a field's value; nil when it has none, because drivers send unset fields too.
func (f *Field) value(d *pb.DataField) (v any, err error) {
	switch x := d.GetValue().(type) {
	case nil:
		return nil, nil
	case *pb.DataField_Stream:
		if v, err = number(x.Stream); err != nil {
			return nil, err
		}
	case *pb.DataField_FloatVal:
		v = x.FloatVal
	case *pb.DataField_StrVal:
		v = x.StrVal
	case *pb.DataField_IntArrVal:
		v = append([]uint32{}, x.IntArrVal.GetVal()...)
	case *pb.DataField_BoolVal:
		v = x.BoolVal
	}
	if !f.is(v) {
		return nil, fmt.Errorf("%v where %v belongs", v, f.Allowed())
	}
	return v, nil
}

// number reads a big-endian number.
func number(b []byte) (uint64, error) {
	n, ok := bytestring.Uint(b)
	if !ok {
		return 0, fmt.Errorf("a number of %d bits: allowed is up to 64", bytestring.Bits(b))
	}
	return n, nil
}
