package schema

import (
	"fmt"
	"slices"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/softswitch/engine"
)

// Key is a validated match key in two forms. The next call that fills it reuses its memory.
type Key struct {
	// Encoded is the key in canonical form, in the P4Info's order of fields: a p4v1.TableEntry in
	// protobuf's encoding that has only its match. It identifies the key among all keys of its
	// table.
	Encoded []byte
	// Engine is the key in the engine's order of fields.
	Engine []engine.Match
}

// Key validates the match of an entry and fills k. Errors are INVALID_ARGUMENT and name the table, the
// field, the value and what is allowed.
func (t *Table) Key(k *Key, match []*p4v1.FieldMatch) error {
	return k.parse("table", t.Name, t.Fields, match)
}

// Member validates one member of the value set, as Key does an entry's match.
func (v *ValueSet) Member(k *Key, match []*p4v1.FieldMatch) error {
	return k.parse("value set", v.Name, v.Fields, match)
}

func (k *Key) parse(kind, name string, fields []*Field, match []*p4v1.FieldMatch) error {
	bad := func(format string, args ...any) error {
		return status.Errorf(codes.InvalidArgument, "%s %q: %v", kind, name, fmt.Errorf(format, args...))
	}
	k.Encoded = k.Encoded[:0]
	k.Engine = slices.Grow(k.Engine[:0], len(fields))[:len(fields)]
	for i, m := range match {
		if !slices.ContainsFunc(fields, func(f *Field) bool { return f.ID == m.GetFieldId() }) {
			return bad("match[%d].field_id is %d, which is no field of its key", i, m.GetFieldId())
		}
	}
	for _, f := range fields {
		var given *p4v1.FieldMatch
		for _, m := range match {
			if m.FieldId != f.ID {
				continue
			}
			if given != nil {
				return bad("field %q is matched twice", f.Name)
			}
			given = m
		}
		if given == nil {
			if f.Kind == engine.Exact {
				return bad("field %q is missing; an exact match cannot be left out", f.Name)
			}
			k.Engine[f.position] = engine.Match{Any: true}
			continue
		}
		value, mask, prefix, err := f.check(given)
		if err != nil {
			return bad("field %q: %w", f.Name, err)
		}
		k.Engine[f.position] = f.engine(value, mask, prefix)
		k.Encoded = f.append(k.Encoded, value, mask, prefix)
	}
	return nil
}

func (f *Field) check(m *p4v1.FieldMatch) (value, mask []byte, prefix int, err error) {
	kind, masked := engine.MatchKind(0), false
	first, second := "value", "mask"
	switch x := m.FieldMatchType.(type) {
	case *p4v1.FieldMatch_Exact_:
		kind, value = engine.Exact, x.Exact.GetValue()
	case *p4v1.FieldMatch_Optional_:
		kind, value = engine.Optional, x.Optional.GetValue()
	case *p4v1.FieldMatch_Lpm:
		kind, value, prefix = engine.LPM, x.Lpm.GetValue(), int(x.Lpm.GetPrefixLen())
	case *p4v1.FieldMatch_Ternary_:
		kind, value, mask, masked = engine.Ternary, x.Ternary.GetValue(), x.Ternary.GetMask(), true
	case *p4v1.FieldMatch_Range_:
		kind, value, mask, masked = engine.Range, x.Range.GetLow(), x.Range.GetHigh(), true
		first, second = "low", "high"
	default:
		kind = ^kind
	}
	if kind != f.Kind {
		return nil, nil, 0, fmt.Errorf("match type is %T, wanted is %s", m.FieldMatchType, kindName(f.Kind))
	}
	if value, err = f.number(first, value); err == nil && masked {
		mask, err = f.number(second, mask)
	}
	switch {
	case err != nil:
	case kind == engine.LPM && (prefix < 1 || prefix > f.Bits):
		err = fmt.Errorf("prefix_len is %d, allowed are 1 to %d; leave the field out to match everything", prefix, f.Bits)
	case kind == engine.LPM && !bytestring.LowBitsZero(value, f.Bits-prefix):
		err = fmt.Errorf("value 0x%x has bits set beyond its prefix of %d", value, prefix)
	case kind == engine.Ternary && bytestring.IsZero(mask):
		err = fmt.Errorf("mask is 0; leave the field out to match everything")
	case kind == engine.Ternary && !bytestring.Within(value, mask):
		err = fmt.Errorf("value 0x%x has bits set outside of mask 0x%x", value, mask)
	case kind == engine.Range && bytestring.Compare(value, mask) > 0:
		err = fmt.Errorf("low 0x%x is above high 0x%x", value, mask)
	case kind == engine.Range && bytestring.IsZero(value) && bytestring.IsMax(mask, f.Bits):
		err = fmt.Errorf("range is all of %d bits; leave the field out to match everything", f.Bits)
	}
	return value, mask, prefix, err
}

// Field numbers of TableEntry and, by kind of match, of FieldMatch.
const matchField = 2

var kindField = [...]protowire.Number{engine.Exact: 2, engine.Ternary: 3, engine.LPM: 4, engine.Range: 6, engine.Optional: 7}

// append appends TableEntry.match with canonical values, in protobuf's encoding.
func (f *Field) append(b, value, mask []byte, prefix int) []byte {
	n := 1 + protowire.SizeBytes(len(value))
	if mask != nil {
		n += 1 + protowire.SizeBytes(len(mask))
	}
	if prefix != 0 {
		n += 1 + protowire.SizeVarint(uint64(prefix))
	}
	b = protowire.AppendTag(b, matchField, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(1+protowire.SizeVarint(uint64(f.ID))+1+protowire.SizeBytes(n)))
	b = protowire.AppendTag(b, 1, protowire.VarintType)
	b = protowire.AppendVarint(b, uint64(f.ID))
	b = protowire.AppendTag(b, kindField[f.Kind], protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(n))
	b = protowire.AppendTag(b, 1, protowire.BytesType)
	b = protowire.AppendBytes(b, value)
	if mask != nil {
		b = protowire.AppendTag(b, 2, protowire.BytesType)
		b = protowire.AppendBytes(b, mask)
	}
	if prefix != 0 {
		b = protowire.AppendTag(b, 2, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(prefix))
	}
	return b
}

// engine builds the engine's form from canonical values.
func (f *Field) engine(value, mask []byte, prefix int) engine.Match {
	if f.Kind == engine.Optional && f.deviceKind == engine.Ternary {
		ones := make([]byte, (f.DeviceBits+7)/8)
		for i := range ones {
			ones[i] = 0xff
		}
		ones[0] >>= 8*len(ones) - f.DeviceBits
		return engine.Match{Value: value, Mask: ones}
	}
	return engine.Match{Value: value, Mask: mask, Prefix: prefix, Range: f.inValueSet && f.Kind == engine.Range}
}

// Action validates an action of the table: an entry's action or, with asDefault, the table's
// default. It returns the action in canonical form and fills call, whose memory it reuses. Errors
// are INVALID_ARGUMENT, or PERMISSION_DENIED if the action's scope forbids the use.
func (t *Table) Action(call *engine.ActionCall, in *p4v1.Action, asDefault bool) (*p4v1.Action, error) {
	r := t.Actions[in.GetActionId()]
	if r == nil {
		return nil, status.Errorf(codes.InvalidArgument, "table %q: action_id is 0x%x, which is none of its actions", t.Name, in.GetActionId())
	}
	if asDefault && r.Scope == p4configv1.ActionRef_TABLE_ONLY {
		return nil, status.Errorf(codes.PermissionDenied, "table %q: action %q is @tableonly and cannot be its default", t.Name, r.Name)
	}
	if !asDefault && r.Scope == p4configv1.ActionRef_DEFAULT_ONLY {
		return nil, status.Errorf(codes.PermissionDenied, "table %q: action %q is @defaultonly and cannot be an entry's", t.Name, r.Name)
	}
	return r.call(call, in)
}

func (a *Action) call(call *engine.ActionCall, in *p4v1.Action) (*p4v1.Action, error) {
	bad := func(format string, args ...any) (*p4v1.Action, error) {
		return nil, status.Errorf(codes.InvalidArgument, "action %q: "+format, append([]any{a.Name}, args...)...)
	}
	call.Name = a.Name
	call.Args = slices.Grow(call.Args[:0], len(a.Params))[:len(a.Params)]
	clear(call.Args)
	out := in // copied only if a parameter is not in canonical form, which is rare
	for i, p := range in.Params {
		at := slices.IndexFunc(a.Params, func(q *Param) bool { return q.ID == p.GetParamId() })
		if at < 0 {
			return bad("params[%d].param_id is %d, which is none of its parameters", i, p.GetParamId())
		}
		if call.Args[at] != nil {
			return bad("parameter %q is given twice", a.Params[at].Name)
		}
		v, err := a.Params[at].number(a.Params[at].what, p.Value)
		if err != nil {
			return bad("%v", err)
		}
		if call.Args[at] = v; len(v) != len(p.Value) {
			if out == in {
				out = &p4v1.Action{ActionId: a.ID, Params: slices.Clone(in.Params)}
			}
			out.Params[i] = &p4v1.Action_Param{ParamId: p.ParamId, Value: v}
		}
	}
	for i, v := range call.Args {
		if v == nil {
			return bad("parameter %q is missing", a.Params[i].Name)
		}
	}
	return out, nil
}
