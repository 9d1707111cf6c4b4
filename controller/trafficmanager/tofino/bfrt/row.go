package bfrt

import (
	"fmt"
	"strings"
)

// Named is a field with its value. The value has the Go type of the field's Kind; nil is no value.
type Named struct {
	Name  string
	Value any
}

// Fields are the fields of a key or of an entry's data, each once.
type Fields []Named

// Get returns the value of a field, or nil.
func (f Fields) Get(name string) any {
	for i := range f {
		if f[i].Name == name {
			return f[i].Value
		}
	}
	return nil
}

// Uint returns the number of a field; 0 for anything else.
func (f Fields) Uint(name string) uint64 { return get[uint64](f, name) }

// Text returns the text of a field; "" for anything else.
func (f Fields) Text(name string) string { return get[string](f, name) }

// Bool returns whether a field is true.
func (f Fields) Bool(name string) bool { return get[bool](f, name) }

// Uints returns the list of a field; nil for anything else.
func (f Fields) Uints(name string) []uint32 { return get[[]uint32](f, name) }

func get[T any](f Fields, name string) T {
	v, _ := f.Get(name).(T)
	return v
}

// String returns "name=value, …".
func (f Fields) String() string {
	all := make([]string, len(f))
	for i, n := range f {
		all[i] = n.Name + "=" + show(n.Value)
	}
	return strings.Join(all, ", ")
}

// Row is an entry of a table, with names instead of ids.
type Row struct {
	Table  string
	Pipe   uint32 // used by tables of Scope Pipe only
	Key    Fields // empty: the default entry, or all entries when a keyed table is read
	Action string // "" in tables without actions
	Data   Fields // a write leaves other fields as they are; a read without fields reads all
	// Default is the data of new entries of a keyed table; it can only be read.
	Default bool
	// Fresh makes a Read ask the chip instead of the driver's copy, which the driver updates only now and then.
	Fresh bool
}

// Name returns the row's table and key.
func (r Row) Name() string {
	s := r.Table
	if r.Pipe != AllPipes {
		s += fmt.Sprintf(" pipe %d", r.Pipe)
	}
	if len(r.Key) > 0 {
		s += " " + r.Key.String()
	}
	if r.Default {
		s += " default"
	}
	return s
}

// String returns a row as one line.
func (r Row) String() string {
	s := r.Name()
	if r.Action != "" {
		return fmt.Sprintf("%s → %s(%s)", s, r.Action, r.Data)
	}
	return fmt.Sprintf("%s → %s", s, r.Data)
}

// Change is one row to write.
type Change struct {
	Operation Operation
	Row       Row
}

// String returns a change as one line.
func (c Change) String() string { return string(c.Operation) + " " + c.Row.String() }
