package schema

import (
	"encoding/binary"
	"fmt"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/canon"
	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/softswitch/engine"
)

// Key is a validated match key in three forms.
type Key struct {
	// Text identifies the key among all keys of its table.
	Text string
	// Proto is the key in canonical form, in P4Info's order of fields.
	Proto []*p4v1.FieldMatch
	// Engine is the key in the engine's order of fields.
	Engine []engine.Match
}

// Key validates the match of an entry. Errors are INVALID_ARGUMENT and name the table, the
// field, the value and what is allowed.
func (t *Table) Key(match []*p4v1.FieldMatch) (Key, error) {
	return parseKey("table", t.Name, t.Fields, match)
}

// Member validates one member of the value set, as Key does an entry's match.
func (v *ValueSet) Member(match []*p4v1.FieldMatch) (Key, error) {
	return parseKey("value set", v.Name, v.Fields, match)
}

func parseKey(kind, name string, fields []*Field, match []*p4v1.FieldMatch) (Key, error) {
	bad := func(format string, args ...any) (Key, error) {
		return Key{}, status.Errorf(codes.InvalidArgument, "%s %q: %v", kind, name, fmt.Errorf(format, args...))
	}
	k := Key{Engine: make([]engine.Match, len(fields))}
	same := 0 // so many are canonical and in order, as most are; k.Proto then stays nil
	for i, m := range match {
		if !slices.ContainsFunc(fields, func(f *Field) bool { return f.ID == m.GetFieldId() }) {
			return bad("match[%d].field_id is %d, which is no field of its key", i, m.GetFieldId())
		}
	}
	text := make([]byte, 0, 64)
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
			text = append(text, 0)
			continue
		}
		value, mask, prefix, err := f.check(given)
		if err != nil {
			return bad("field %q: %w", f.Name, err)
		}
		switch c := f.canonical(given, value, mask, prefix); {
		case k.Proto != nil:
			k.Proto = append(k.Proto, c)
		case c == match[same]:
			same++
		default:
			k.Proto = append(append(make([]*p4v1.FieldMatch, 0, len(match)), match[:same]...), c)
		}
		k.Engine[f.position] = f.engine(value, mask, prefix)
		text = append(text, 1)
		text = appendText(text, value)
		text = appendText(text, mask)
		text = binary.AppendUvarint(text, uint64(prefix))
	}
	if k.Proto == nil {
		k.Proto = match
	}
	k.Text = string(text)
	return k, nil
}

func appendText(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// check validates one match and returns it in canonical form.
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

// canonical returns m in canonical form, and m itself if it is canonical already, as most are.
func (f *Field) canonical(m *p4v1.FieldMatch, value, mask []byte, prefix int) *p4v1.FieldMatch {
	same := false
	switch x := m.FieldMatchType.(type) {
	case *p4v1.FieldMatch_Exact_:
		same = len(x.Exact.Value) == len(value)
	case *p4v1.FieldMatch_Optional_:
		same = len(x.Optional.Value) == len(value)
	case *p4v1.FieldMatch_Lpm:
		same = len(x.Lpm.Value) == len(value)
	case *p4v1.FieldMatch_Ternary_:
		same = len(x.Ternary.Value) == len(value) && len(x.Ternary.Mask) == len(mask)
	case *p4v1.FieldMatch_Range_:
		same = len(x.Range.Low) == len(value) && len(x.Range.High) == len(mask)
	}
	if same {
		return m
	}
	return f.proto(value, mask, prefix)
}

// proto builds a match from canonical values.
func (f *Field) proto(value, mask []byte, prefix int) *p4v1.FieldMatch {
	switch f.Kind {
	case engine.Exact:
		return p4msg.Exact(f.ID, value)
	case engine.Optional:
		return p4msg.Optional(f.ID, value)
	case engine.LPM:
		return p4msg.LPM(f.ID, value, int32(prefix))
	case engine.Ternary:
		return p4msg.Ternary(f.ID, value, mask)
	}
	return p4msg.Range(f.ID, value, mask)
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
