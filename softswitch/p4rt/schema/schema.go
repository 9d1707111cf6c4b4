// Package schema checks a P4Info strictly, indexes it by id, and joins it with the same objects of
// the BMv2 JSON. It validates matches, actions and P4Data, and translates them between protobuf
// and the engine's form. Start reading at Parse and Schema.Bind.
package schema

import (
	"fmt"
	"slices"
	"strings"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/softswitch/engine"
)

// Schema is the checked P4Info of a program. It is immutable once Parse has returned it.
type Schema struct {
	Info *p4configv1.P4Info

	Tables    Index[*Table]
	Actions   Index[*Action]
	Profiles  Index[*Profile]
	Counters  Index[*Array]
	Meters    Index[*Array]
	Registers Index[*Array]
	ValueSets Index[*ValueSet]
	Digests   Index[*Digest]

	PacketIn  *Header // nil if the program has none
	PacketOut *Header

	direct map[uint32]direct // direct counters and meters, by id
	types  *p4configv1.P4TypeInfo
	ids    map[uint32]string // kind and name of the object with an id
	names  map[uint32]string // preamble.name by id
	absent map[uint32]string // why objects of the P4Info are not in the program
	learns map[int]string    // names of digests by learn list, of lists without a name of their own
}

// NameOf returns the name of the P4Info object with an id, or "" if there is none.
func (s *Schema) NameOf(id uint32) string { return s.names[id] }

// Absent returns why the program does not have the P4Info's object with this id, "" if it has it.
// Compilers omit objects that no packet can reach from the program.
func (s *Schema) Absent(id uint32) string { return s.absent[id] }

// LearnNames returns the names of digests by the numbers of the program's learn lists, of lists that the compiler
// gave no name.
func (s *Schema) LearnNames() map[int]string { return s.learns }

// AllAbsent returns the absent objects, kind and name, in alphabetical order.
func (s *Schema) AllAbsent() []string {
	var out []string
	for id := range s.absent {
		out = append(out, s.ids[id])
	}
	slices.Sort(out)
	return out
}

// Describe returns the kind and name of the P4Info object with an id.
func (s *Schema) Describe(id uint32) string { return s.ids[id] }

// Object holds the fields that every object of the P4Info has.
type Object struct {
	ID   uint32
	Name string
}

func (o Object) object() Object { return o }

// Index finds the objects of one kind.
type Index[T interface{ object() Object }] struct {
	Kind   string // such as table or action profile
	List   []T    // in the P4Info's order, without absent objects
	byID   map[uint32]T
	byName map[string]T
}

// ID returns the object with an id.
func (x *Index[T]) ID(id uint32) (T, bool) { v, ok := x.byID[id]; return v, ok }

// Find returns the object with the id that an entity names. The error is INVALID_ARGUMENT.
func (x *Index[T]) Find(id uint32) (T, error) {
	v, ok := x.byID[id]
	if !ok {
		return v, status.Errorf(codes.InvalidArgument, "%s_id is %#x, which is no %s of the P4Info", strings.ReplaceAll(x.Kind, " ", "_"), id, x.Kind)
	}
	return v, nil
}

// Select returns the objects that a read with an id selects; 0 selects all.
func (x *Index[T]) Select(id uint32) ([]T, error) {
	if id == 0 {
		return x.List, nil
	}
	v, err := x.Find(id)
	if err != nil {
		return nil, err
	}
	return []T{v}, nil
}

// Name returns the object with a name.
func (x *Index[T]) Name(name string) (T, bool) { v, ok := x.byName[name]; return v, ok }

// Width is the width of a number.
type Width struct {
	// Bits is the width that controllers see. For fields of type error it comes from the program,
	// because the P4Info has none.
	Bits int
	// DeviceBits is the width in the data plane. It differs from Bits only for parameters, and
	// exact and optional fields, of a translated type.
	DeviceBits int
	// Strings is the name of a type that is translated to strings; "" for all others.
	Strings string
}

func (w Width) number(what string, b []byte) ([]byte, error) {
	switch {
	case w.Strings != "": // the switch cannot translate strings
		return nil, fmt.Errorf("%s: its type %q is translated to strings (@p4runtime_translation), which this switch cannot do", what, w.Strings)
	case !bytestring.Fits(b, w.Bits):
		return nil, fmt.Errorf("%s is 0x%x, allowed is a number of 1 to %d bits", what, b, w.Bits)
	case !bytestring.Fits(b, w.DeviceBits):
		return nil, fmt.Errorf("%s is 0x%x, which does not fit the %d bits that the data plane has", what, b, w.DeviceBits)
	}
	return bytestring.Canonical(b), nil
}

// Field is one field of a key: of a table or of a value set.
type Field struct {
	ID   uint32
	Name string
	Kind engine.MatchKind
	Width
	// position of the field in the engine's key
	position int
	// deviceKind is Ternary for optional fields, which BMv2 JSON has as ternary
	deviceKind engine.MatchKind
	// inValueSet is set if the field belongs to a value set. The engine then takes the kind from
	// the match, not from the table.
	inValueSet bool
}

func (f *Field) id() uint32 { return f.ID }

// Table is a match-action table.
type Table struct {
	Object
	Fields        []*Field
	Actions       map[uint32]*ActionRef
	ConstDefault  uint32 // action id, 0 when the default is mutable
	Profile       *Profile
	CounterID     uint32 // direct counter, 0 when there is none
	MeterID       uint32
	Size          int64
	IdleTimeout   bool
	Const         bool // const entries
	NeedsPriority bool // at least one ternary, range or optional field

	// Entries are the program's own entries, in the order of the engine's ConstEntries.
	Entries []*p4v1.TableEntry
	// Default is the program's default action; nil when it is not in P4Info.
	Default *p4v1.Action
}

// ActionRef is one action that a table may use.
type ActionRef struct {
	*Action
	Scope p4configv1.ActionRef_Scope
}

// Action is an action and its parameters, in the engine's order.
type Action struct {
	Object
	Params []*Param
}

// Param is one parameter of an action.
type Param struct {
	ID   uint32
	Name string
	Width
	what string // the parameter, for errors
}

func (p *Param) id() uint32 { return p.ID }

// Profile is an action profile or action selector.
type Profile struct {
	Object
	Selector     bool
	Size         int64
	MaxGroupSize int32
	Tables       []*Table
}

// Array is an indirect counter, a meter or a register.
type Array struct {
	Object
	Size int64
	Type *Type // type of a register's cells; nil for counters and meters
}

// ValueSet is a parser value set.
type ValueSet struct {
	Object
	Size   int64
	Fields []*Field
}

// Digest is a digest and the type of its messages.
type Digest struct {
	Object
	Type *Type
}

// Header is the metadata of packet-ins or packet-outs, in the order of the header's fields.
type Header struct {
	Fields []HeaderField
	Bits   int
}

// HeaderField is one field of a Header.
type HeaderField struct {
	ID      uint32
	Name    string
	Bits    int
	Padding bool // annotated @padding: controllers may leave it out
}

func (f HeaderField) id() uint32 { return f.ID }

type direct struct {
	table uint32
	meter bool
}
