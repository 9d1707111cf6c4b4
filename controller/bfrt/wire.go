package bfrt

import (
	"encoding/binary"
	"fmt"
	"slices"

	pb "github.com/headgate/headgate/controller/bfrt/bfrtpb"
)

// encode returns a row as an entry for an operation, or, with operation 0, for a Read. It
// returns a *FieldError for what the schema does not allow.
func (s *Schema) encode(device uint32, op Operation, r Row) (*pb.TableEntry, error) {
	t := s.byName[r.Table]
	if t == nil {
		return nil, &FieldError{r.Name(), "table", fmt.Sprintf("%q", r.Table), "a table of the schema"}
	}
	e := encoder{schema: s, table: t, row: r, op: op}
	return e.entry(device)
}

// encoder builds one entry.
type encoder struct {
	schema *Schema
	table  *Table
	row    Row
	op     Operation
}

func (e *encoder) bad(field, value, allowed string) error {
	return &FieldError{e.row.Name(), field, value, allowed}
}

func (e *encoder) entry(device uint32) (*pb.TableEntry, error) {
	t, r := e.table, &e.row
	if need := e.op.needs(); need&^t.Operations != 0 {
		return nil, e.bad("operation", e.op.String(), "what the table has")
	}
	out := &pb.TableEntry{TableId: t.ID, EntryTgt: &pb.TargetDevice{DeviceId: device, PipeId: AllPipes}}
	if t.Scope == Pipe && !r.Default {
		if r.Pipe == AllPipes {
			return nil, e.bad("pipe", "all", "one pipe")
		}
		out.EntryTgt.PipeId = r.Pipe
	}
	if r.Fresh {
		if e.op != 0 {
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
		case out.IsDefaultEntry && len(t.Keys) > 0 && (e.op != 0 || t.Operations&CanReadDefault == 0):
			return e.bad("key", "that of the default entry", "one with "+names(t.Keys))
		case !out.IsDefaultEntry && e.op != 0:
			return e.bad("key", "empty", "one with "+names(t.Keys))
		}
		return nil
	}
	key := &pb.TableKey{}
	for i := range t.Keys {
		f := &t.Keys[i]
		v := r.Key.Get(f.Name)
		if why := f.Check(v); why != "" {
			return e.bad(f.Name, v.String(), why)
		}
		b := []byte(v.Text())
		if f.Kind == Number {
			b = big(f, v.Uint())
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
	for _, n := range r.Data {
		f := named(known, n.Name)
		if f == nil {
			return e.bad(n.Name, n.Value.String(), names(known))
		}
		field := &pb.DataField{FieldId: f.ID}
		if e.op != 0 {
			if f.ReadOnly {
				return e.bad(n.Name, n.Value.String(), "reading it")
			}
			if why := f.Check(n.Value); why != "" {
				return e.bad(n.Name, n.Value.String(), why)
			}
			f.put(field, n.Value)
		}
		data.Fields = append(data.Fields, field)
	}
	for i := range known {
		f := &known[i]
		if needed := f.Mandatory && e.op != 0 || f.Insert && e.op == Insert; needed && r.Data.Get(f.Name).Kind() == 0 {
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

func (f *Field) put(out *pb.DataField, v Value) {
	switch v.Kind() {
	case Number:
		out.Value = &pb.DataField_Stream{Stream: big(f, v.Uint())}
	case Boolean:
		out.Value = &pb.DataField_BoolVal{BoolVal: v.Bool()}
	case Text:
		out.Value = &pb.DataField_StrVal{StrVal: v.Text()}
	case Float:
		out.Value = &pb.DataField_FloatVal{FloatVal: v.Real()}
	case Numbers:
		out.Value = &pb.DataField_IntArrVal{IntArrVal: &pb.DataField_IntArray{Val: v.Uints()}}
	}
}

// decode returns an entry as a row. What the schema does not have is an error, but for
// values out of range: a chip may be ahead of the schema there.
func (s *Schema) decode(e *pb.TableEntry) (Row, error) {
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
		v := String(string(k.GetExact().GetValue()))
		if f.Kind == Number {
			n, err := number(k.GetExact().GetValue())
			if err != nil {
				return r, fmt.Errorf("%s: key field %s: %w", t.Name, f.Name, err)
			}
			v = Uint(n)
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
			continue // of a newer driver
		}
		v, err := f.value(d)
		if err != nil {
			return r, fmt.Errorf("%s: field %s: %w", r.Name(), f.Name, err)
		}
		if v.Kind() != 0 {
			r.Data = append(r.Data, Named{f.Name, v})
		}
	}
	return r, nil
}

// value returns a field's value; none when it has none, as drivers send what is not set.
func (f *Field) value(d *pb.DataField) (Value, error) {
	var v Value
	switch x := d.GetValue().(type) {
	case nil:
		return v, nil
	case *pb.DataField_Stream:
		n, err := number(x.Stream)
		if err != nil {
			return v, err
		}
		v = Uint(n)
	case *pb.DataField_FloatVal:
		v = Real(x.FloatVal)
	case *pb.DataField_StrVal:
		v = String(x.StrVal)
	case *pb.DataField_IntArrVal:
		v = Uints(x.IntArrVal.GetVal()...)
	case *pb.DataField_BoolVal:
		v = Bool(x.BoolVal)
	}
	if want := f.Kind; v.Kind() != want && !(f.Repeated && v.Kind() == Numbers) {
		return v, fmt.Errorf("%v where %v belongs", v, f.Allowed())
	}
	return v, nil
}

// number reads a big-endian number.
func number(b []byte) (uint64, error) {
	if i := slices.IndexFunc(b, func(x byte) bool { return x != 0 }); i > 0 {
		b = b[i:]
	}
	if len(b) > 8 {
		return 0, fmt.Errorf("a number of %d bytes: allowed is up to 8", len(b))
	}
	var n uint64
	for _, x := range b {
		n = n<<8 | uint64(x)
	}
	return n, nil
}
