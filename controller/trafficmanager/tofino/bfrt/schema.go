package bfrt

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Scope says whether an entry belongs to the device or to a pipe.
type Scope string

// The scopes of tables.
const (
	Device Scope = "device" // the target of an entry is AllPipes
	Pipe   Scope = "pipe"   // the target of an entry is one pipe
)

// AllPipes is the pipe id in a target that means the whole device.
const AllPipes = 0xffff

// Operation is an operation on a table's entries.
type Operation string

// The operations.
const (
	Read        Operation = "read"
	Insert      Operation = "insert"
	Modify      Operation = "modify"
	Delete      Operation = "delete"
	ReadDefault Operation = "read_default" // read_default of a keyed table returns the data of a new or reset entry
)

// Kind is the type of a field's values.
type Kind string

// The kinds, and the Go types of their values. A list of numbers is []uint32.
const (
	Number  Kind = "uint"   // uint64
	Boolean Kind = "bool"   // bool
	Text    Kind = "string" // string
	Float   Kind = "float"  // float32
)

// Field is a part of a key or of an entry's data.
type Field struct {
	Name     string
	ID       uint32
	Kind     Kind   `json:"type"` // the type of one value
	Bits     int    // width of a Number: 1 to 64
	Min, Max uint64 // range of a Number that is written
	Choices  []string
	Repeated bool // a list of values
	ReadOnly bool `json:"read_only"`
	// Mandatory is set if every write must have the field, Insert if every insert must have it.
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
	Operations []Operation
	Keys       []Field // none: the only entry is the default entry
	Data       []Field // data fields of every entry
	Actions    []Action
}

// Schema is a set of tables. It does not change once made.
type Schema struct {
	tables []*Table
	byName map[string]*Table
	byID   map[uint32]*Table
}

// schemas are the tables of the traffic manager and of ports that the controller uses, from
// the public driver's bf_rt_tm_tf{1,2}.json and bf_rt_port_tf{1,2}.json, in the form of
// Table.
//
//go:embed schemas/tofino1.json schemas/tofino2.json
var schemas embed.FS

// Load returns the schema of a chip's fixed tables and of a program's filters, from its
// bf-rt.json, which may be nil. Chips are "tofino1" and "tofino2".
func Load(chip string, program []byte) (*Schema, error) {
	b, err := schemas.ReadFile("schemas/" + chip + ".json")
	if err != nil {
		return nil, fmt.Errorf("chip is %q: allowed is tofino1 or tofino2", chip)
	}
	tables, err := parse(b)
	if err == nil && program != nil {
		var filters []*Table
		filters, err = parseProgram(program)
		tables = append(tables, filters...)
	}
	if err != nil {
		return nil, err
	}
	s := &Schema{tables: tables, byName: map[string]*Table{}, byID: map[uint32]*Table{}}
	for _, t := range tables {
		s.byName[t.Name], s.byID[t.ID] = t, t
	}
	return s, nil
}

func parse(b []byte) ([]*Table, error) {
	var in struct{ Tables []*Table }
	if err := strict(b, &in); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return in.Tables, nil
}

func strict(b []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// UnmarshalJSON reads a field; its width gives the maximum if there is none.
func (f *Field) UnmarshalJSON(b []byte) error {
	type plain Field
	p := plain{Max: math.MaxUint64}
	err := strict(b, &p)
	*f = Field(p)
	f.Max = min(f.Max, largest(f.Bits))
	return err
}

// largest returns the largest number of that many bits.
func largest(bits int) uint64 {
	if bits <= 0 || bits >= 64 {
		return math.MaxUint64
	}
	return 1<<uint(bits) - 1
}

// programField is a field in the bf-rt.json that p4c writes for a program (p4c, backends/
// tofino/bf-p4c/control-plane/bfruntime.cpp).
type programField struct {
	ID   uint32
	Name string
	Type struct {
		Type    string
		Width   int
		Choices []string
	}
	Repeated bool
}

// parseProgram returns a program's low-pass filters, which P4Runtime does not reach, from its bf-rt.json. A
// filter has all its entries from the start, so the controller modifies them and adds or deletes none.
func parseProgram(info []byte) (tables []*Table, err error) {
	var in struct {
		Tables []struct {
			Name string
			ID   uint32
			Type string `json:"table_type"`
			Size int
			Key  []programField
			Data []struct {
				Mandatory bool
				ReadOnly  bool `json:"read_only"`
				Singleton programField
			}
		}
	}
	err = json.Unmarshal(info, &in)
	for _, t := range in.Tables {
		if t.Type != "Lpf" {
			continue
		}
		out := &Table{Name: t.Name, ID: t.ID, Size: t.Size, Scope: Device, Operations: []Operation{Read, Modify}}
		for _, k := range t.Key {
			f := k.field(&err)
			f.Max = min(f.Max, uint64(t.Size)-1) // the key of a filter is its index
			out.Keys = append(out.Keys, f)
		}
		for _, d := range t.Data {
			f := d.Singleton.field(&err)
			f.Mandatory, f.ReadOnly = d.Mandatory, d.ReadOnly
			out.Data = append(out.Data, f)
		}
		tables = append(tables, out)
	}
	if err != nil {
		return nil, fmt.Errorf("schema of the program: %w", err)
	}
	return tables, nil
}

// field returns the field, or sets err.
func (p *programField) field(err *error) Field {
	f := Field{Name: p.Name, ID: p.ID, Repeated: p.Repeated, Choices: p.Type.Choices, Bits: p.Type.Width, Kind: Kind(p.Type.Type)}
	switch f.Kind {
	case Boolean, Text, Float:
	case "bytes":
		f.Kind = Number
	default:
		bits, ok := strings.CutPrefix(p.Type.Type, "uint")
		n, bad := strconv.Atoi(bits)
		if !ok || bad != nil {
			*err = fmt.Errorf("field %s: type is %q: allowed is bool, string, float, bytes or uint8 to uint64", p.Name, p.Type.Type)
		}
		f.Kind, f.Bits = Number, n
	}
	f.Max = largest(f.Bits)
	return f
}

// Tables returns all tables.
func (s *Schema) Tables() []*Table { return slices.Clone(s.tables) }

// Table returns the table of a name, or nil.
func (s *Schema) Table(name string) *Table { return s.byName[name] }

// Key returns the key field of a name, or nil.
func (t *Table) Key(name string) *Field { return named(t.Keys, name) }

// Can reports whether a table has an operation.
func (t *Table) Can(o Operation) bool { return slices.Contains(t.Operations, o) }

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

// find returns the first element for which is returns true, or nil.
func find[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

func names(list []Field) string {
	var all []string
	for _, f := range list {
		all = append(all, f.Name)
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

// Bytes returns how many bytes a Number takes.
func (f *Field) Bytes() int { return (f.Bits + 7) / 8 }

// Allowed returns a field's allowed values as text for errors.
func (f *Field) Allowed() string {
	s := map[Kind]string{Number: fmt.Sprintf("%d to %d", f.Min, f.Max), Boolean: "true or false", Text: "a text", Float: "a number with a fraction"}[f.Kind]
	if len(f.Choices) > 0 {
		s = "one of " + strings.Join(f.Choices, ", ")
	}
	if f.Repeated {
		s = "a list, each " + s
	}
	return s
}

// is reports whether a value has a field's type; the range does not matter.
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

// Check returns the reason why v cannot be written to the field, or "".
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
