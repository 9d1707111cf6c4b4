package schema

import (
	"fmt"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/bytestring"
)

// Type is a P4 type that registers and digests can carry: numbers, and structs and tuples
// of them.
type Type struct {
	form    form
	Bits    int // width of a leaf
	members []*Type
}

type form uint8

const (
	unsigned form = iota
	signed
	boolean
	enum // serializable
	structure
	tuple
)

func (t *Type) leaf() bool { return t.form < structure }

// Leaves returns the widths of the numbers that the type consists of, in order.
func (t *Type) Leaves() []int {
	if t.leaf() {
		return []int{t.Bits}
	}
	var out []int
	for _, m := range t.members {
		out = append(out, m.Leaves()...)
	}
	return out
}

// maxParts bounds the parts of one type, because a type can contain another one many times.
const maxParts = 4096

func (s *Schema) dataType(where string, spec *p4configv1.P4DataTypeSpec) (*Type, error) {
	left := maxParts
	return s.resolve(where, spec, 0, &left)
}

// resolve resolves a type. depth bounds the nesting, because a type could contain itself.
func (s *Schema) resolve(where string, spec *p4configv1.P4DataTypeSpec, depth int, left *int) (*Type, error) {
	if *left--; *left < 0 {
		return nil, fmt.Errorf("%s: the type has more than %d parts", where, maxParts)
	}
	if depth > 16 {
		return nil, fmt.Errorf("%s: types are nested deeper than 16", where)
	}
	bad := func(name string) error {
		return fmt.Errorf("%s: type %q is not in type_info", where, name)
	}
	add := func(to *Type, where string, spec *p4configv1.P4DataTypeSpec) error {
		m, err := s.resolve(where, spec, depth+1, left)
		to.members = append(to.members, m)
		return err
	}
	switch t := spec.GetTypeSpec().(type) {
	case *p4configv1.P4DataTypeSpec_Bitstring:
		switch b := t.Bitstring.GetTypeSpec().(type) {
		case *p4configv1.P4BitstringLikeTypeSpec_Bit:
			return number(where, unsigned, b.Bit.GetBitwidth())
		case *p4configv1.P4BitstringLikeTypeSpec_Int:
			return number(where, signed, b.Int.GetBitwidth())
		}
		return nil, fmt.Errorf("%s: varbit is not supported, allowed are bit<W> and int<W>", where)
	case *p4configv1.P4DataTypeSpec_Bool:
		return &Type{form: boolean, Bits: 1}, nil
	case *p4configv1.P4DataTypeSpec_SerializableEnum:
		e := s.types.GetSerializableEnums()[t.SerializableEnum.GetName()]
		if e == nil {
			return nil, bad(t.SerializableEnum.GetName())
		}
		return number(where, enum, e.UnderlyingType.GetBitwidth())
	case *p4configv1.P4DataTypeSpec_NewType:
		n := s.types.GetNewTypes()[t.NewType.GetName()]
		if n == nil {
			return nil, bad(t.NewType.GetName())
		}
		if n.GetOriginalType() == nil {
			return nil, fmt.Errorf("%s: type %q is translated (@p4runtime_translation), which is not supported here", where, t.NewType.Name)
		}
		return s.resolve(where, n.GetOriginalType(), depth+1, left)
	case *p4configv1.P4DataTypeSpec_Struct:
		st := s.types.GetStructs()[t.Struct.GetName()]
		if st == nil {
			return nil, bad(t.Struct.GetName())
		}
		out := &Type{form: structure}
		for _, m := range st.Members {
			if err := add(out, where+"."+m.Name, m.TypeSpec); err != nil {
				return nil, err
			}
		}
		return out, nil
	case *p4configv1.P4DataTypeSpec_Tuple:
		out := &Type{form: tuple}
		for i, m := range t.Tuple.GetMembers() {
			if err := add(out, fmt.Sprintf("%s[%d]", where, i), m); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return nil, fmt.Errorf("%s: type %T is not supported, allowed are bit<W>, int<W>, bool, serializable enums, structs and tuples", where, spec.GetTypeSpec())
}

func number(where string, f form, bits int32) (*Type, error) {
	return &Type{form: f, Bits: int(bits)}, checkBits(where, bits)
}

// Encode builds the P4Data of a value. leaves holds the value's numbers in order, as the data
// plane has them. Encode returns nil if leaves are too few.
func (t *Type) Encode(leaves [][]byte) *p4v1.P4Data {
	d, rest := t.encode(leaves)
	if len(rest) > 0 {
		return nil
	}
	return d
}

func (t *Type) encode(leaves [][]byte) (*p4v1.P4Data, [][]byte) {
	d := &p4v1.P4Data{}
	if t.leaf() {
		if len(leaves) == 0 {
			return nil, [][]byte{nil} // a rest that is not empty marks the failure
		}
		switch b := leaves[0]; t.form {
		case signed:
			d.Data = &p4v1.P4Data_Bitstring{Bitstring: bytestring.SignExtend(b, t.Bits)}
		case boolean:
			d.Data = &p4v1.P4Data_Bool{Bool: !bytestring.IsZero(b)}
		case enum:
			d.Data = &p4v1.P4Data_EnumValue{EnumValue: copied(b)}
		default:
			d.Data = &p4v1.P4Data_Bitstring{Bitstring: copied(b)}
		}
		return d, leaves[1:]
	}
	members := &p4v1.P4StructLike{}
	for _, m := range t.members {
		var d *p4v1.P4Data
		if d, leaves = m.encode(leaves); d == nil {
			return nil, leaves
		}
		members.Members = append(members.Members, d)
	}
	if d.Data = (&p4v1.P4Data_Struct{Struct: members}); t.form == tuple {
		d.Data = &p4v1.P4Data_Tuple{Tuple: members}
	}
	return d, leaves
}

func copied(b []byte) []byte {
	if b = bytestring.Canonical(b); len(b) == 0 {
		return []byte{0}
	}
	return append([]byte(nil), b...)
}

// Decode checks the P4Data of a leaf type and returns its number as the data plane has it,
// unsigned. The error is INVALID_ARGUMENT for another type and OUT_OF_RANGE for a value that does
// not fit.
func (t *Type) Decode(d *p4v1.P4Data) ([]byte, error) {
	var b []byte
	is := ""
	switch v := d.GetData().(type) {
	case *p4v1.P4Data_Bool:
		if is, b = "bool", []byte{0}; v.Bool {
			b = []byte{1}
		}
	case *p4v1.P4Data_EnumValue:
		is, b = "enum_value", v.EnumValue
	case *p4v1.P4Data_Bitstring:
		is, b = "bitstring", v.Bitstring
	}
	want := [...]string{unsigned: "bitstring", signed: "bitstring", boolean: "bool", enum: "enum_value"}[t.form]
	switch {
	case is != want:
		return nil, status.Errorf(codes.InvalidArgument, "data is %T, wanted is %s", d.GetData(), want)
	case t.form == signed && bytestring.FitsSigned(b, t.Bits):
		return bytestring.Truncate(b, t.Bits), nil
	case t.form == signed:
		return nil, status.Errorf(codes.OutOfRange, "data is 0x%x, which does not fit int<%d>", b, t.Bits)
	case !bytestring.Fits(b, t.Bits):
		return nil, status.Errorf(codes.OutOfRange, "data is 0x%x, which does not fit bit<%d>", b, t.Bits)
	}
	return bytestring.Canonical(b), nil
}

// IsZero reports whether the value of a leaf type is zero, like the cells of a fresh pipeline.
func (t *Type) IsZero(d *p4v1.P4Data) bool {
	v, err := t.Decode(d)
	return err == nil && bytestring.IsZero(v)
}
