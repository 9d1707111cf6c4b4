package schema

import (
	"fmt"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/headgate/headgate/internal/canon"
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

// check validates one match and returns its canonical values.
func (f *Field) check(m *p4v1.FieldMatch) (value, mask []byte, prefix int, err error) {
	switch f.Kind {
	case engine.Exact:
		if x, ok := m.FieldMatchType.(*p4v1.FieldMatch_Exact_); ok {
			value, err = f.number("value", x.Exact.GetValue())
			return value, nil, 0, err
		}
	case engine.Optional:
		if x, ok := m.FieldMatchType.(*p4v1.FieldMatch_Optional_); ok {
			value, err = f.number("value", x.Optional.GetValue())
			return value, nil, 0, err
		}
	case engine.LPM:
		if x, ok := m.FieldMatchType.(*p4v1.FieldMatch_Lpm); ok {
			prefix = int(x.Lpm.GetPrefixLen())
			if value, err = f.number("value", x.Lpm.GetValue()); err != nil {
				return nil, nil, 0, err
			}
			if prefix < 1 || prefix > f.Bits {
				return nil, nil, 0, fmt.Errorf("prefix_len is %d, allowed are 1 to %d; leave the field out to match everything", prefix, f.Bits)
			}
			if !canon.LowBitsZero(value, f.Bits-prefix) {
				return nil, nil, 0, fmt.Errorf("value 0x%x has bits set beyond its prefix of %d", value, prefix)
			}
			return value, nil, prefix, nil
		}
	case engine.Ternary:
		if x, ok := m.FieldMatchType.(*p4v1.FieldMatch_Ternary_); ok {
			if value, err = f.number("value", x.Ternary.GetValue()); err != nil {
				return nil, nil, 0, err
			}
			if mask, err = f.number("mask", x.Ternary.GetMask()); err != nil {
				return nil, nil, 0, err
			}
			if canon.IsZero(mask) {
				return nil, nil, 0, fmt.Errorf("mask is 0; leave the field out to match everything")
			}
			if !canon.Within(value, mask) {
				return nil, nil, 0, fmt.Errorf("value 0x%x has bits set outside of mask 0x%x", value, mask)
			}
			return value, mask, 0, nil
		}
	case engine.Range:
		if x, ok := m.FieldMatchType.(*p4v1.FieldMatch_Range_); ok {
			if value, err = f.number("low", x.Range.GetLow()); err != nil {
				return nil, nil, 0, err
			}
			if mask, err = f.number("high", x.Range.GetHigh()); err != nil {
				return nil, nil, 0, err
			}
			if canon.Compare(value, mask) > 0 {
				return nil, nil, 0, fmt.Errorf("low 0x%x is above high 0x%x", value, mask)
			}
			if canon.IsZero(value) && canon.IsMax(mask, f.Bits) {
				return nil, nil, 0, fmt.Errorf("range is all of %d bits; leave the field out to match everything", f.Bits)
			}
			return value, mask, 0, nil
		}
	}
	return nil, nil, 0, fmt.Errorf("match type is %T, wanted is %s", m.FieldMatchType, kindName(f.Kind))
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
