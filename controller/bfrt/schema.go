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
	Kind     Kind   // of one value: Number, Boolean, Text or Float
	Bits     int    // of a Number: 1 to 64
	Min, Max uint64 // of a Number that is written
	Choices  []string
	Repeated bool // a list of values
	ReadOnly bool
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

func newSchema(tables []*Table) (*Schema, error) {
	s := &Schema{tables: tables, byName: map[string]*Table{}, byID: map[uint32]*Table{}}
	for _, t := range tables {
		if t.Name == "" || t.ID == 0 || s.byName[t.Name] != nil || s.byID[t.ID] != nil {
			return nil, fmt.Errorf("schema: table %q with identifier %d: allowed is a name and an identifier of its own", t.Name, t.ID)
		}
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("schema: table %s: %w", t.Name, err)
		}
		s.byName[t.Name], s.byID[t.ID] = t, t
	}
	return s, nil
}

// Merge returns a schema with the tables of several.
func Merge(schemas ...*Schema) (*Schema, error) {
	var all []*Table
	for _, s := range schemas {
		all = append(all, s.tables...)
	}
	return newSchema(all)
}

// Tables returns all tables.
func (s *Schema) Tables() []*Table { return slices.Clone(s.tables) }

// Table returns the table of a name, or nil.
func (s *Schema) Table(name string) *Table { return s.byName[name] }

// TableOf returns the table of an identifier, or nil.
func (s *Schema) TableOf(id uint32) *Table { return s.byID[id] }

// Key returns the key field of a name, or nil.
func (t *Table) Key(name string) *Field { return named(t.Keys, name) }

// Action returns the action of a name, or nil.
func (t *Table) Action(name string) *Action {
	for i := range t.Actions {
		if t.Actions[i].Name == name {
			return &t.Actions[i]
		}
	}
	return nil
}

// ActionOf returns the action of an identifier, or nil.
func (t *Table) ActionOf(id uint32) *Action {
	for i := range t.Actions {
		if t.Actions[i].ID == id {
			return &t.Actions[i]
		}
	}
	return nil
}

// Fields returns the data fields of an entry with an action, which may be nil.
func (t *Table) Fields(a *Action) []Field {
	if a == nil {
		return t.Data
	}
	return append(slices.Clone(a.Data), t.Data...)
}

func named(list []Field, name string) *Field {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

func numbered(list []Field, id uint32) *Field {
	for i := range list {
		if list[i].ID == id {
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

// Check returns a reason why a field cannot have a value that is written, or "".
func (f *Field) Check(v Value) string {
	if f.Repeated {
		if v.Kind() != Numbers {
			return f.Allowed()
		}
		for _, x := range v.Uints() {
			if uint64(x) < f.Min || uint64(x) > f.Max {
				return f.Allowed()
			}
		}
		return ""
	}
	switch {
	case v.Kind() != f.Kind,
		f.Kind == Number && (v.Uint() < f.Min || v.Uint() > f.Max),
		len(f.Choices) > 0 && !slices.Contains(f.Choices, v.Text()):
		return f.Allowed()
	}
	return ""
}

// check looks for what no table can be.
func (t *Table) check() error {
	groups := [][]Field{t.Keys, t.Data}
	for i := range t.Actions {
		a := &t.Actions[i]
		if a.Name == "" || a.ID == 0 || t.Action(a.Name) != a || t.ActionOf(a.ID) != a {
			return fmt.Errorf("action %q with identifier %d: allowed is a name and an identifier of its own", a.Name, a.ID)
		}
		groups = append(groups, t.Fields(a))
	}
	for _, g := range groups {
		for i := range g {
			f := &g[i]
			switch {
			case f.Name == "" || f.ID == 0 || named(g, f.Name) != f || numbered(g, f.ID) != f:
				return fmt.Errorf("field %q with identifier %d: allowed is a name and an identifier of its own", f.Name, f.ID)
			case f.Kind == Number && (f.Bits < 1 || f.Bits > 64):
				return fmt.Errorf("field %s has %d bits: allowed is 1 to 64", f.Name, f.Bits)
			case f.Repeated && (f.Kind != Number || f.Bits > 32):
				return fmt.Errorf("field %s is a list of other than numbers of up to 32 bits", f.Name)
			}
		}
	}
	return nil
}
