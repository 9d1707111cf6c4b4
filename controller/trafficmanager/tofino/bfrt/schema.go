package bfrt

import (
	"fmt"
	"slices"
	"strings"
)

// Scope is what an entry of a table belongs to.
type Scope uint8

// The scopes of tables.
const (
	Device Scope = iota + 1 // the target of an entry is AllPipes
	Pipe                    // the target of an entry is one pipe
)

// AllPipes is the pipe of a target that is the whole device.
const AllPipes = 0xffff

// Operations are what may be done with the entries of a table.
type Operations uint8

// The operations.
const (
	CanRead Operations = 1 << iota
	CanInsert
	CanModify
	CanDelete
	CanReadDefault // of a keyed table: what a new or reset entry holds
)

// Field is a part of a key or of an entry's data.
type Field struct {
	Name     string
	ID       uint32
	Kind     Kind   `json:"type"` // of one value: Number, Boolean, Text or Float
	Bits     int    // of a Number: 1 to 64
	Min, Max uint64 // of a Number that is written
	Choices  []string
	Repeated bool // a list of values
	ReadOnly bool `json:"read_only"`
	// Mandatory is that of a field that every write must have, Insert that of one that
	// every insert must have.
	Mandatory, Insert bool
}

// Action is one of the forms that an entry can have, with fields of its own.
type Action struct {
	Name string
	ID   uint32
	Data []Field
}

// Table describes a table.
type Table struct {
	Name       string
	ID         uint32
	Size       int // entries
	Scope      Scope
	Operations Operations
	Keys       []Field // none: the only entry is the default entry
	Data       []Field // of every entry
	Actions    []Action
}

// Schema is a set of tables. It does not change once made.
type Schema struct {
	tables []*Table
	byName map[string]*Table
	byID   map[uint32]*Table
}

func newSchema(tables []*Table) *Schema {
	s := &Schema{tables: tables, byName: map[string]*Table{}, byID: map[uint32]*Table{}}
	for _, t := range tables {
		s.byName[t.Name], s.byID[t.ID] = t, t
	}
	return s
}

// Tables returns all tables.
func (s *Schema) Tables() []*Table { return slices.Clone(s.tables) }

// Table returns the table of a name, or nil.
func (s *Schema) Table(name string) *Table { return s.byName[name] }

// Key returns the key field of a name, or nil.
func (t *Table) Key(name string) *Field { return named(t.Keys, name) }

// Action returns the action of a name, or nil.
func (t *Table) Action(name string) *Action {
	return find(t.Actions, func(a *Action) bool { return a.Name == name })
}

// ActionOf returns the action of an identifier, or nil.
func (t *Table) ActionOf(id uint32) *Action {
	return find(t.Actions, func(a *Action) bool { return a.ID == id })
}

// Fields returns the data fields of an entry with an action, which may be nil.
func (t *Table) Fields(a *Action) []Field {
	if a == nil {
		return t.Data
	}
	return append(slices.Clone(a.Data), t.Data...)
}

func named(list []Field, name string) *Field {
	return find(list, func(f *Field) bool { return f.Name == name })
}

func numbered(list []Field, id uint32) *Field {
	return find(list, func(f *Field) bool { return f.ID == id })
}

// find returns the first of a list that is meant, or nil.
func find[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

func names(list []Field) string {
	all := make([]string, len(list))
	for i := range list {
		all[i] = list[i].Name
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

// Bytes returns how many bytes a Number takes.
func (f *Field) Bytes() int { return (f.Bits + 7) / 8 }

// Allowed says what values a field may have, for errors.
func (f *Field) Allowed() string {
	var s string
	switch {
	case len(f.Choices) > 0:
		s = "one of " + strings.Join(f.Choices, ", ")
	case f.Kind == Number:
		s = fmt.Sprintf("%d to %d", f.Min, f.Max)
	default:
		s = f.Kind.String()
	}
	if f.Repeated {
		s = "a list, each " + s
	}
	return s
}

// Kind is what the values of a field are.
type Kind uint8

// The kinds, and the Go types of their values. A list of numbers is []uint32.
const (
	Number  Kind = iota + 1 // uint64
	Boolean                 // bool
	Text                    // string
	Float                   // float32
)

func (k Kind) String() string {
	return [...]string{"nothing", "a number", "true or false", "a text", "a number with a fraction"}[k]
}

// is reports whether a value is one of a field, whatever its range.
func (f *Field) is(v any) bool {
	switch v.(type) {
	case uint64:
		return f.Kind == Number && !f.Repeated
	case bool:
		return f.Kind == Boolean
	case string:
		return f.Kind == Text
	case float32:
		return f.Kind == Float
	case []uint32:
		return f.Repeated
	}
	return false
}

// Check returns a reason why a field cannot have a value that is written, or "".
func (f *Field) Check(v any) string {
	in := func(n uint64) bool { return n >= f.Min && n <= f.Max }
	ok := f.is(v)
	switch x := v.(type) {
	case uint64:
		ok = ok && in(x)
	case string:
		ok = ok && (len(f.Choices) == 0 || slices.Contains(f.Choices, x))
	case []uint32:
		ok = ok && !slices.ContainsFunc(x, func(n uint32) bool { return !in(uint64(n)) })
	}
	if ok {
		return ""
	}
	return f.Allowed()
}

// show returns a value for people.
func show(v any) string {
	if v == nil {
		return "nothing"
	}
	return fmt.Sprint(v)
}
