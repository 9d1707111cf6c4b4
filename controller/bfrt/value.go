package bfrt

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Kind is what a Value is.
type Kind uint8

// The kinds of values.
const (
	Number Kind = iota + 1
	Boolean
	Text
	Float
	Numbers // a list of numbers of up to 32 bits
)

func (k Kind) String() string {
	switch k {
	case Number:
		return "a number"
	case Boolean:
		return "true or false"
	case Text:
		return "a text"
	case Float:
		return "a number with a fraction"
	case Numbers:
		return "a list of numbers"
	}
	return "nothing"
}

// Value is a field's value. Values can be compared with ==. The zero Value is none.
type Value struct {
	kind Kind
	n    uint64 // Number, Boolean, bits of Float
	text string // Text; Numbers as 4 bytes each
}

// Uint returns a Number.
func Uint(v uint64) Value { return Value{kind: Number, n: v} }

// Bool returns a Boolean.
func Bool(v bool) Value {
	if v {
		return Value{kind: Boolean, n: 1}
	}
	return Value{kind: Boolean}
}

// String returns a Text.
func String(v string) Value { return Value{kind: Text, text: v} }

// Real returns a Float.
func Real(v float32) Value { return Value{kind: Float, n: uint64(math.Float32bits(v))} }

// Uints returns Numbers.
func Uints(v ...uint32) Value {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.BigEndian.AppendUint32(b, x)
	}
	return Value{kind: Numbers, text: string(b)}
}

// Kind returns what v is; 0 for none.
func (v Value) Kind() Kind { return v.kind }

// Uint returns a Number; 0 for anything else.
func (v Value) Uint() uint64 {
	if v.kind != Number {
		return 0
	}
	return v.n
}

// Bool returns a Boolean; false for anything else.
func (v Value) Bool() bool { return v.kind == Boolean && v.n != 0 }

// Text returns a Text; "" for anything else.
func (v Value) Text() string {
	if v.kind != Text {
		return ""
	}
	return v.text
}

// Real returns a Float; 0 for anything else.
func (v Value) Real() float32 {
	if v.kind != Float {
		return 0
	}
	return math.Float32frombits(uint32(v.n))
}

// Uints returns Numbers; nil for anything else.
func (v Value) Uints() []uint32 {
	if v.kind != Numbers {
		return nil
	}
	list := make([]uint32, 0, len(v.text)/4)
	for i := 0; i+4 <= len(v.text); i += 4 {
		list = append(list, binary.BigEndian.Uint32([]byte(v.text[i:i+4])))
	}
	return list
}

// String returns v for people.
func (v Value) String() string {
	switch v.kind {
	case Number:
		return strconv.FormatUint(v.n, 10)
	case Boolean:
		return strconv.FormatBool(v.n != 0)
	case Text:
		return v.text
	case Float:
		return strconv.FormatFloat(float64(v.Real()), 'g', -1, 32)
	case Numbers:
		return strings.ReplaceAll(fmt.Sprint(v.Uints()), " ", ",")
	}
	return "nothing"
}
