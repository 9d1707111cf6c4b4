package bmv2json

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// MaxBits bounds the numbers of a program; BMv2 has no bound.
const MaxBits = 1 << 16

// Parse reads a program. It checks the form of the document. Callers check names and numbers with
// a Reader.
func Parse(doc []byte) (*Program, error) {
	// Most of p4c's text is white space, and expressions are scanned once per level of nesting.
	var compact bytes.Buffer
	if err := json.Compact(&compact, doc); err != nil {
		return nil, fmt.Errorf("BMv2 JSON: %w", err)
	}
	var p Program
	if err := json.Unmarshal(compact.Bytes(), &p); err != nil {
		var te *json.UnmarshalTypeError
		if errors.As(err, &te) {
			return nil, fmt.Errorf("BMv2 JSON: %s: %s where %v is wanted", strings.ReplaceAll(te.Field, "Named.", ""), te.Value, te.Type)
		}
		return nil, fmt.Errorf("BMv2 JSON: %w", err)
	}
	return &p, nil
}

// Error is a fault in a program: where it is, the value, and what is allowed.
type Error struct{ Path, Text string }

func (e *Error) Error() string {
	if e.Path == "" {
		return "BMv2 JSON: " + e.Text
	}
	return "BMv2 JSON: " + e.Path + ": " + e.Text
}

// Reader reads parts of a program and records their path, which errors contain. Its methods panic
// with an *Error, which Catch turns into a returned error. The zero value is at the top of the document.
type Reader struct{ path []string }

// Catch turns a panic of a Reader into an error. Callers defer it.
func Catch(err *error) {
	if r := recover(); r != nil {
		e, ok := r.(*Error)
		if !ok {
			panic(r)
		}
		*err = e
	}
}

// In runs f with name (and index, unless it is negative) added to the path of errors.
func (r *Reader) In(name string, index int, f func()) {
	if index >= 0 {
		name += "[" + strconv.Itoa(index) + "]"
	}
	r.path = append(r.path, name)
	f()
	r.path = r.path[:len(r.path)-1]
}

// Path is where the reader is.
func (r *Reader) Path() string { return strings.Join(r.path, ".") }

// Fail panics with an *Error.
func (r *Reader) Fail(format string, args ...any) {
	panic(&Error{r.Path(), fmt.Sprintf(format, args...)})
}

// Decode decodes a value into a type.
func (r *Reader) Decode(raw json.RawMessage, v any) {
	if IsNull(raw) {
		r.Fail("a value is missing")
	}
	if err := json.Unmarshal(raw, v); err != nil {
		r.Fail("%s: %v", clip(raw), err)
	}
}

// Str reads a string.
func (r *Reader) Str(raw json.RawMessage) (s string) {
	r.Decode(raw, &s)
	return s
}

// Int reads a number.
func (r *Reader) Int(raw json.RawMessage) (i int) {
	r.Decode(raw, &i)
	return i
}

// Pair reads an array of two elements.
func (r *Reader) Pair(raw json.RawMessage, form string) []json.RawMessage {
	var v []json.RawMessage
	if r.Decode(raw, &v); len(v) != 2 {
		r.Fail("want %s, not %s", form, clip(raw))
	}
	return v
}

// Names reads an array of two names.
func (r *Reader) Names(raw json.RawMessage, form string) (string, string) {
	v := r.Pair(raw, form)
	return r.Str(v[0]), r.Str(v[1])
}

// Value reads a typed value.
func (r *Reader) Value(raw json.RawMessage) *Value {
	var v Value
	r.Decode(raw, &v)
	return &v
}

// Hex reads a hexadecimal number such as 0x0a, 0a or -0x0a.
func Hex(s string) (*big.Int, error) {
	t, neg := strings.CutPrefix(s, "-")
	t = strings.TrimPrefix(t, "0x")
	z := new(big.Int)
	if t == "" || len(t) > MaxBits/2 || strings.Trim(t, "0123456789abcdefABCDEF") != "" {
		return nil, fmt.Errorf("%q is not a hexadecimal number of at most %d bits", clip([]byte(s)), MaxBits)
	}
	z.SetString(t, 16)
	if neg {
		z.Neg(z)
	}
	return z, nil
}

// Hex reads a hexadecimal number as the function Hex does.
func (r *Reader) Hex(s string) *big.Int {
	z, err := Hex(s)
	if err != nil {
		r.Fail("%v", err)
	}
	return z
}

// HexBytes reads a hexadecimal number as bytes, leading zeros included.
func (r *Reader) HexBytes(s string) []byte {
	return r.Fixed(s, (len(strings.TrimPrefix(s, "0x"))+1)/2)
}

// Fixed reads a hexadecimal number as n bytes.
func (r *Reader) Fixed(s string, n int) []byte {
	z := r.Hex(s)
	if z.Sign() < 0 || z.BitLen() > 8*n {
		r.Fail("%q does not fit %d bytes", s, n)
	}
	return z.FillBytes(make([]byte, n))
}

// IsNull reports whether a value is missing or null.
func IsNull(b json.RawMessage) bool { return len(b) == 0 || string(b) == "null" }

// clip shortens JSON text for an error message.
func clip(b []byte) string {
	if len(b) > 80 {
		return string(b[:80]) + "…"
	}
	return string(b)
}
