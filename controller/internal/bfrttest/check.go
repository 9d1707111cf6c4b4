package bfrttest

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/headgate/headgate/controller/bfrt"
	pb "github.com/headgate/headgate/controller/bfrt/bfrtpb"
)

// checker reads what is on the wire. Its methods return why that is not allowed, or "".
type checker struct {
	schema *bfrt.Schema
	table  *bfrt.Table
}

// unknown returns the name of a message, at any depth, with fields that the schema of the
// messages does not have, or "".
func unknown(m proto.Message) string { return unknownIn(m.ProtoReflect()) }

func unknownIn(m protoreflect.Message) (name string) {
	if len(m.GetUnknown()) > 0 {
		return string(m.Descriptor().Name())
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Kind() != protoreflect.MessageKind:
		case f.IsList():
			for i := range v.List().Len() {
				if name == "" {
					name = unknownIn(v.List().Get(i).Message())
				}
			}
		default:
			name = unknownIn(v.Message())
		}
		return name == ""
	})
	return name
}

// update reads an update.
func (c *checker) update(u *pb.Update) (bfrt.Change, string) {
	var ch bfrt.Change
	need := bfrt.Operations(0)
	switch u.GetType() {
	case pb.Update_INSERT:
		ch.Operation, need = bfrt.Insert, bfrt.CanInsert
	case pb.Update_MODIFY:
		ch.Operation, need = bfrt.Modify, bfrt.CanModify
	case pb.Update_DELETE:
		ch.Operation, need = bfrt.Delete, bfrt.CanDelete
	default:
		return ch, fmt.Sprintf("update of type %v", u.GetType())
	}
	e, why := c.begin(u.GetEntity())
	if why != "" {
		return ch, why
	}
	if c.table.Operations&need == 0 {
		return ch, fmt.Sprintf("%s: %v is not an operation of the table", c.table.Name, u.GetType())
	}
	if e.GetIsDefaultEntry() != (len(c.table.Keys) == 0) {
		return ch, fmt.Sprintf("%s: is_default_entry is %v for a table with %d key fields", c.table.Name, e.GetIsDefaultEntry(), len(c.table.Keys))
	}
	if e.GetTableFlags() != nil {
		return ch, fmt.Sprintf("%s: flags %v in a write", c.table.Name, e.GetTableFlags())
	}
	if ch.Row, why = c.place(e, false); why != "" {
		return ch, why
	}
	if len(c.table.Keys) > 0 && len(ch.Row.Key) == 0 {
		return ch, fmt.Sprintf("%s: %v without a key", c.table.Name, u.GetType())
	}
	if u.GetType() == pb.Update_DELETE {
		if e.GetData() != nil {
			return ch, fmt.Sprintf("%s: DELETE with data", c.table.Name)
		}
		return ch, ""
	}
	return ch, c.data(e.GetData(), ch.Operation, &ch.Row)
}

// query reads what a Read asks for.
func (c *checker) query(entity *pb.Entity) (bfrt.Row, string) {
	e, why := c.begin(entity)
	if why != "" {
		return bfrt.Row{}, why
	}
	if e.GetIsDefaultEntry() && len(c.table.Keys) > 0 && c.table.Operations&bfrt.CanReadDefault == 0 {
		return bfrt.Row{}, fmt.Sprintf("%s: the default entry of the table cannot be read", c.table.Name)
	}
	if !e.GetIsDefaultEntry() && len(c.table.Keys) == 0 {
		return bfrt.Row{}, fmt.Sprintf("%s: the table has nothing but a default entry", c.table.Name)
	}
	if f := e.GetTableFlags(); f.GetKeyOnly() || f.GetModDel() || f.GetResetTtl() || f.GetResetStats() {
		return bfrt.Row{}, fmt.Sprintf("%s: flags %v in a read: allowed is from_hw", c.table.Name, f)
	}
	r, why := c.place(e, true)
	r.Fresh = e.GetTableFlags().GetFromHw()
	if why == "" && e.GetIsDefaultEntry() && len(r.Key) > 0 {
		why = fmt.Sprintf("%s: a key for the default entry", c.table.Name)
	}
	if why == "" {
		why = c.some(e.GetData(), &r)
	}
	return r, why
}

// some reads which fields a Read asks for.
func (c *checker) some(d *pb.TableData, r *bfrt.Row) string {
	known := c.table.Data
	if id := d.GetActionId(); id != 0 {
		a := c.table.ActionOf(id)
		if a == nil {
			return fmt.Sprintf("%s: there is no action %d", c.table.Name, id)
		}
		known = append(slices.Clone(known), a.Data...)
	}
	for _, f := range d.GetFields() {
		at := slices.IndexFunc(known, func(k bfrt.Field) bool { return k.ID == f.GetFieldId() })
		if at < 0 || f.GetValue() != nil {
			return fmt.Sprintf("%s: field %d is not one of the table and action, or has a value in a read", c.table.Name, f.GetFieldId())
		}
		r.Data = append(r.Data, bfrt.Named{Name: known[at].Name})
	}
	return ""
}

// begin finds the table.
func (c *checker) begin(entity *pb.Entity) (*pb.TableEntry, string) {
	e := entity.GetTableEntry()
	if e == nil {
		return nil, "an entity that is no table entry"
	}
	if name := unknown(e); name != "" {
		return nil, fmt.Sprintf("table %#x: unknown fields in %s", e.GetTableId(), name)
	}
	if c.table = c.schema.TableOf(e.GetTableId()); c.table == nil {
		return nil, fmt.Sprintf("there is no table %#x", e.GetTableId())
	}
	return e, ""
}

// place reads the target and the key.
func (c *checker) place(e *pb.TableEntry, read bool) (bfrt.Row, string) {
	t := c.table
	r := bfrt.Row{Table: t.Name, Pipe: bfrt.AllPipes, Default: e.GetIsDefaultEntry() && len(t.Keys) > 0}
	target := e.GetEntryTgt()
	if target == nil || target.GetDeviceId() != 0 || target.GetDirection() != 0 || target.GetPrsrId() != 0 {
		return r, fmt.Sprintf("%s: target is %v: allowed is device 0", t.Name, target)
	}
	switch pipe := target.GetPipeId(); {
	case t.Scope == bfrt.Device || r.Default:
		if pipe != bfrt.AllPipes {
			return r, fmt.Sprintf("%s: pipe of the target is %d: allowed is %#x", t.Name, pipe, bfrt.AllPipes)
		}
	case pipe >= pipes:
		return r, fmt.Sprintf("%s: pipe of the target is %#x: allowed is 0 to %d", t.Name, pipe, pipes-1)
	default:
		r.Pipe = pipe
	}
	fields := e.GetKey().GetFields()
	if len(fields) == 0 && (read || len(t.Keys) == 0) {
		return r, ""
	}
	for i := range t.Keys {
		f := &t.Keys[i]
		at := slices.IndexFunc(fields, func(k *pb.KeyField) bool { return k.GetFieldId() == f.ID })
		if at < 0 || fields[at].GetExact() == nil {
			return r, fmt.Sprintf("%s: key field %s is missing or not exact", t.Name, f.Name)
		}
		b := fields[at].GetExact().GetValue()
		v := bfrt.String(string(b))
		if f.Kind == bfrt.Number {
			n, why := wide(f, b)
			if why != "" {
				return r, fmt.Sprintf("%s: key field %s: %s", t.Name, f.Name, why)
			}
			v = bfrt.Uint(n)
		}
		if why := allowed(f, v); why != "" {
			return r, fmt.Sprintf("%s: key field %s: %s", t.Name, f.Name, why)
		}
		r.Key = append(r.Key, bfrt.Named{Name: f.Name, Value: v})
	}
	if len(fields) != len(t.Keys) {
		return r, fmt.Sprintf("%s: a key of %d fields: allowed are %d", t.Name, len(fields), len(t.Keys))
	}
	return r, ""
}

// wide reads a number of the width of a field.
func wide(f *bfrt.Field, b []byte) (uint64, string) {
	if len(b) != (f.Bits+7)/8 {
		return 0, fmt.Sprintf("a value of %d bytes for %d bits", len(b), f.Bits)
	}
	var n uint64
	for _, x := range b {
		n = n<<8 | uint64(x)
	}
	if f.Bits < 64 && n>>uint(f.Bits) != 0 {
		return n, fmt.Sprintf("%d does not fit into %d bits", n, f.Bits)
	}
	return n, ""
}

// allowed looks at ranges and choices.
func allowed(f *bfrt.Field, v bfrt.Value) string {
	in := func(n uint64) bool { return n >= f.Min && n <= f.Max }
	switch {
	case v.Kind() == bfrt.Number && !in(v.Uint()):
		return fmt.Sprintf("%v: allowed is %d to %d", v, f.Min, f.Max)
	case v.Kind() == bfrt.Numbers && slices.ContainsFunc(v.Uints(), func(n uint32) bool { return !in(uint64(n)) }):
		return fmt.Sprintf("%v: allowed is a list of %d to %d", v, f.Min, f.Max)
	case v.Kind() == bfrt.Text && len(f.Choices) > 0 && !slices.Contains(f.Choices, v.Text()):
		return fmt.Sprintf("%q: allowed is one of %q", v, f.Choices)
	}
	return ""
}

// data reads the data of a write.
func (c *checker) data(d *pb.TableData, op bfrt.Operation, r *bfrt.Row) string {
	t := c.table
	var known []bfrt.Field
	known = append(known, t.Data...)
	if id := d.GetActionId(); id != 0 {
		a := t.ActionOf(id)
		if a == nil {
			return fmt.Sprintf("%s: there is no action %d", t.Name, id)
		}
		r.Action = a.Name
		known = append(known, a.Data...)
	}
	given := map[uint32]bool{}
	for _, f := range d.GetFields() {
		at := slices.IndexFunc(known, func(k bfrt.Field) bool { return k.ID == f.GetFieldId() })
		if at < 0 || given[f.GetFieldId()] {
			return fmt.Sprintf("%s: field %d is not one of the table and action, or there twice", t.Name, f.GetFieldId())
		}
		k := &known[at]
		given[k.ID] = true
		v, why := value(k, f)
		switch {
		case k.ReadOnly:
			why = "can only be read"
		case why == "":
			why = allowed(k, v)
		}
		if why != "" {
			return fmt.Sprintf("%s: field %s: %s", t.Name, k.Name, why)
		}
		r.Data = append(r.Data, bfrt.Named{Name: k.Name, Value: v})
	}
	for _, k := range known {
		if (k.Mandatory || k.Insert && op == bfrt.Insert) && !given[k.ID] {
			return fmt.Sprintf("%s: field %s is mandatory", t.Name, k.Name)
		}
	}
	return ""
}

// value reads a field's value in the form that its type has.
func value(k *bfrt.Field, f *pb.DataField) (bfrt.Value, string) {
	switch x := f.GetValue().(type) {
	case *pb.DataField_Stream:
		if k.Kind == bfrt.Number && !k.Repeated {
			n, why := wide(k, x.Stream)
			return bfrt.Uint(n), why
		}
	case *pb.DataField_BoolVal:
		if k.Kind == bfrt.Boolean {
			return bfrt.Bool(x.BoolVal), ""
		}
	case *pb.DataField_StrVal:
		if k.Kind == bfrt.Text {
			return bfrt.String(x.StrVal), ""
		}
	case *pb.DataField_FloatVal:
		if k.Kind == bfrt.Float {
			return bfrt.Real(x.FloatVal), ""
		}
	case *pb.DataField_IntArrVal:
		if k.Repeated {
			return bfrt.Uints(x.IntArrVal.GetVal()...), ""
		}
	}
	return bfrt.Value{}, fmt.Sprintf("a value of type %T", f.GetValue())
}

// entry returns a row as an entry of an answer.
func entry(t *bfrt.Table, r bfrt.Row) *pb.TableEntry {
	e := &pb.TableEntry{TableId: t.ID, IsDefaultEntry: r.Default || len(t.Keys) == 0, EntryTgt: &pb.TargetDevice{PipeId: r.Pipe}, Data: &pb.TableData{}}
	bytes := func(f *bfrt.Field, v bfrt.Value) []byte {
		if f.Kind == bfrt.Text {
			return []byte(v.Text())
		}
		b := make([]byte, (f.Bits+7)/8)
		for i := range b {
			b[len(b)-1-i] = byte(v.Uint() >> (8 * i))
		}
		return b
	}
	if len(r.Key) > 0 {
		k := &pb.TableKey{}
		for i := range t.Keys {
			f := &t.Keys[i]
			k.Fields = append(k.Fields, &pb.KeyField{FieldId: f.ID, MatchType: &pb.KeyField_Exact_{Exact: &pb.KeyField_Exact{Value: bytes(f, r.Key.Get(f.Name))}}})
		}
		e.Value = &pb.TableEntry_Key{Key: k}
	}
	known := t.Data
	if a := t.Action(r.Action); a != nil {
		e.Data.ActionId = a.ID
		known = append(slices.Clone(known), a.Data...)
	}
	for i := range known {
		f := &known[i]
		v := r.Data.Get(f.Name)
		if v.Kind() == 0 {
			continue // not asked for
		}
		d := &pb.DataField{FieldId: f.ID}
		switch v.Kind() {
		case bfrt.Number:
			d.Value = &pb.DataField_Stream{Stream: bytes(f, v)}
		case bfrt.Boolean:
			d.Value = &pb.DataField_BoolVal{BoolVal: v.Bool()}
		case bfrt.Text:
			d.Value = &pb.DataField_StrVal{StrVal: v.Text()}
		case bfrt.Float:
			d.Value = &pb.DataField_FloatVal{FloatVal: v.Real()}
		case bfrt.Numbers:
			d.Value = &pb.DataField_IntArrVal{IntArrVal: &pb.DataField_IntArray{Val: v.Uints()}}
		}
		e.Data.Fields = append(e.Data.Fields, d)
	}
	return e
}
