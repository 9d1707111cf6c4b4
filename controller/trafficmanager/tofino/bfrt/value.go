package bfrt

import (
	"fmt"
	"slices"
)

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
