// Package schema is a P4Info as P4Runtime's server needs it: indexed by id, checked
// strictly, joined with what the BMv2 JSON says of the same objects. It validates and
// translates matches, actions and P4Data between protobuf and engine form.
package schema

import (
	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/softswitch/engine"
)

// Schema is immutable once Parse has returned it.
type Schema struct {
	Info *p4configv1.P4Info

	Tables    Index[*Table]
	Actions   Index[*Action]
	Profiles  Index[*Profile]
	Counters  Index[*Array]
	Meters    Index[*Array]
	Registers Index[*Register]
	ValueSets Index[*ValueSet]
	Digests   Index[*Digest]

	PacketIn  *Header // nil when the program has none
	PacketOut *Header

	direct map[uint32]direct // direct counters and meters, by id
	types  *p4configv1.P4TypeInfo
	ids    map[uint32]string // every id in use, and by what
	names  map[uint32]string // preamble.name by id
}

// NameOf returns the name of the P4Info object with an id, "" when there is none.
func (s *Schema) NameOf(id uint32) string { return s.names[id] }

// Index is the objects of one kind.
type Index[T any] struct {
	List   []T // in P4Info's order
	byID   map[uint32]T
	byName map[string]T
}

// ID returns the object with an id.
func (x *Index[T]) ID(id uint32) (T, bool) { v, ok := x.byID[id]; return v, ok }

// Name returns the object with a name.
func (x *Index[T]) Name(name string) (T, bool) { v, ok := x.byName[name]; return v, ok }

func (x *Index[T]) add(id uint32, name string, v T) {
	if x.byID == nil {
		x.byID, x.byName = map[uint32]T{}, map[string]T{}
	}
	x.List = append(x.List, v)
	x.byID[id], x.byName[name] = v, v
}

// Field is one field of a key: of a table or of a value set.
type Field struct {
	ID   uint32
	Name string
	Kind engine.MatchKind
	Bits int // as controllers see it
	// DeviceBits is the width in the data plane; it differs from Bits only for exact and
	// optional fields of a translated type.
	DeviceBits int
	// position of the field in the engine's key
	position int
	// deviceKind is Ternary for optional fields, which BMv2 JSON has as ternary
	deviceKind engine.MatchKind
	// inValueSet: the engine learns the kind from the match, not from the table
	inValueSet bool
}

// Table is a match-action table.
type Table struct {
	ID            uint32
	Name          string
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

	fields map[uint32]*Field
}

// ActionRef is one action a table may use.
type ActionRef struct {
	*Action
	Scope p4configv1.ActionRef_Scope
}

// Action is an action and its parameters, in the engine's order.
type Action struct {
	ID     uint32
	Name   string
	Params []*Param
	params map[uint32]*Param
}

// Param is one parameter of an action.
type Param struct {
	ID         uint32
	Name       string
	Bits       int // as controllers see it
	DeviceBits int // in the data plane; differs for translated types
	position   int
}

// Profile is an action profile or action selector.
type Profile struct {
	ID           uint32
	Name         string
	Selector     bool
	Size         int64
	MaxGroupSize int32
	Tables       []*Table
}

// Array is an indirect counter or meter.
type Array struct {
	ID   uint32
	Name string
	Size int64
}

// Register is a register array.
type Register struct {
	ID   uint32
	Name string
	Size int64
	Type *Type
}

// ValueSet is a parser value set.
type ValueSet struct {
	ID     uint32
	Name   string
	Size   int64
	Fields []*Field
	fields map[uint32]*Field
}

// Digest is a digest and the type of its messages.
type Digest struct {
	ID   uint32
	Name string
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

type direct struct {
	table uint32
	meter bool
}

// Owner returns the table that a direct counter or meter belongs to.
func (s *Schema) Owner(id uint32) (table uint32, ok bool) {
	d, ok := s.direct[id]
	return d.table, ok
}
