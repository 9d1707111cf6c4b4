// Package param describes the parameters of congestion laws, each once: name, meaning,
// default and range. A law's parameters visit a Set:
//
//	func (p *Params) Visit(s *param.Set, f *law.Flow) {
//		param.Path(s, "line_rate", &p.LineRate, f.Rate, param.Above(0))
//		param.Of(s, "gain", &p.Gain, 1.0/256, param.Between(0, 1), "g of the estimate of congestion")
//	}
//
// and the Set fills them in, checks them or lists them. A given value counts even if it is 0 or false; only a
// parameter that is not given takes its default.
package param

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/units"
)

// Value is the type of a parameter with a range. Times, amounts and rates carry units.
type Value interface {
	units.Time | units.Bytes | units.Rate | float64 | int
}

// Set is the purpose of a Visit: fill, check or describe.
type Set struct {
	given  map[string]string
	parsed map[string]any
	mode   mode
	prefix string
	hidden []string // names of parameters that keep their defaults and cannot be set
	infos  []Info
	err    error
}

type mode uint8

const (
	fill mode = iota
	check
	describe
)

// Info describes a parameter that can be set.
type Info struct {
	Name    string
	Kind    string // time, bytes, rate, number, whole number or true or false
	Default string
	Want    string // the range, "" for any
	Doc     string
}

// Error is a parameter with a value that is not allowed, or with an unknown name.
type Error struct{ Name, Value, Text string }

func (e *Error) Error() string { return fmt.Sprintf("%s %s: %s", e.Name, e.Value, e.Text) }

// Visitor visits a law's parameters. It already holds the flow that defaults depend on.
type Visitor func(*Set)

// Parse reads values by name. Unknown names and values of the wrong kind are an *Error; Fill checks the ranges.
func Parse(v Visitor, given map[string]string) (*Set, error) {
	s := &Set{given: given, parsed: map[string]any{}, mode: describe}
	v(s)
	names := make([]string, len(s.infos))
	for i, info := range s.infos {
		names[i] = info.Name
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, name) {
			return nil, &Error{name, given[name], "no such parameter, want " + OneOf(names)}
		}
	}
	return s, s.err
}

// Fill gives every parameter its parsed value or its default.
func (s *Set) Fill(v Visitor) error {
	t := Set{parsed: s.parsed, mode: fill}
	v(&t)
	return t.err
}

// Defaults gives every parameter its default.
func Defaults(v Visitor) { v(&Set{}) }

// For returns the parameters of a law with their defaults for a flow: For[swift.Params](f).
func For[P any, V interface {
	*P
	Visit(*Set, *law.Flow)
}](f law.Flow) P {
	var p P
	Defaults(func(s *Set) { V(&p).Visit(s, &f) })
	return p
}

// Check returns the first fault of a law's parameters, an *Error.
func Check(visit func(*Set, *law.Flow)) error {
	s := Set{mode: check}
	visit(&s, &law.Flow{})
	return s.err
}

// Describe lists the parameters that can be set.
func Describe(v Visitor) []Info {
	s := Set{mode: describe}
	v(&s)
	return s.infos
}

// Under visits parameters whose names begin with a prefix, such as "under.". The outer law sets the parameters
// in decided, so they cannot be given.
func (s *Set) Under(prefix string, v Visitor, decided ...string) {
	before := *s
	s.prefix, s.hidden = s.prefix+prefix, decided
	v(s)
	s.prefix, s.hidden = before.prefix, before.hidden
}

// Fills reports whether the Visit sets parameters.
func (s *Set) Fills() bool { return s.mode == fill }

// Describes reports whether the Visit only describes parameters. The values then belong to no flow.
func (s *Set) Describes() bool { return s.mode == describe }

// Given returns the parsed value of a parameter, nil if it was not given.
func (s *Set) Given(name string) any { return s.parsed[name] }

// Has reports whether a parameter was given.
func (s *Set) Has(name string) bool {
	_, given := s.parsed[s.prefix+name]
	return given
}

// Fail reports an error.
func (s *Set) Fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// Fault reports a contradiction between parameters.
func (s *Set) Fault(name string, value any, format string, args ...any) {
	if s.err == nil && s.mode != describe {
		s.err = &Error{s.prefix + name, fmt.Sprint(value), fmt.Sprintf(format, args...)}
	}
}

// Path visits parameters that follow from the flow's path and cannot be set.
func Path[T Value](s *Set, name string, v *T, value T, r Range) {
	if s.mode != check {
		*v = value
	}
	verify(s, name, *v, r)
}

// Of visits a parameter.
func Of[T Value](s *Set, name string, v *T, def T, r Range, doc string) {
	if s.mode == describe {
		s.describe(Info{name, kindOf(def), fmt.Sprint(def), want[T](r), doc}, func(text string) (any, error) { return parse(def, text) })
	}
	give(s, name, v, def)
	verify(s, name, *v, r)
}

// Bool visits a parameter that is true or false.
func Bool(s *Set, name string, v *bool, def bool, doc string) {
	if s.mode == describe {
		s.describe(Info{name, "true or false", strconv.FormatBool(def), "", doc}, func(text string) (any, error) {
			if text != "true" && text != "false" {
				return nil, errors.New("want true or false")
			}
			return text == "true", nil
		})
	}
	give(s, name, v, def)
}

// Choice visits a parameter that is one of a few words, in the order of its values.
func Choice[T ~uint8](s *Set, name string, v *T, def T, words []string, doc string) {
	if s.mode == describe {
		s.describe(Info{name, OneOf(words), words[def], "", doc}, func(text string) (any, error) {
			at := slices.Index(words, text)
			if at < 0 {
				return nil, errors.New("want " + OneOf(words))
			}
			return T(at), nil
		})
	}
	give(s, name, v, def)
	if int(*v) >= len(words) {
		s.Fault(name, uint8(*v), "want %s", OneOf(words))
	}
}

// describe lists a parameter that can be set, and parses its given value.
func (s *Set) describe(info Info, parse func(string) (any, error)) {
	if slices.Contains(s.hidden, info.Name) {
		return
	}
	info.Name = s.prefix + info.Name
	s.infos = append(s.infos, info)
	if text, ok := s.given[info.Name]; ok && s.err == nil {
		value, err := parse(text)
		if err != nil {
			s.err = &Error{info.Name, text, err.Error()}
			return
		}
		s.parsed[info.Name] = value
	}
}

// give sets a parameter to its parsed value or its default.
func give[T any](s *Set, name string, v *T, def T) {
	if s.mode == check {
		return
	}
	*v = def
	if s.mode == fill && len(s.parsed) > 0 {
		if value, ok := s.parsed[s.prefix+name]; ok {
			*v = value.(T)
		}
	}
}

func verify[T Value](s *Set, name string, v T, r Range) {
	if !r.has(float64(v)) {
		s.Fault(name, v, "want %s", want[T](r))
	}
}

func kindOf(v any) string {
	switch v.(type) {
	case units.Time:
		return "time"
	case units.Bytes:
		return "bytes"
	case units.Rate:
		return "rate"
	case int:
		return "whole number"
	}
	return "number"
}

func parse(as any, s string) (any, error) {
	switch as.(type) {
	case units.Time:
		return units.ParseTime(s)
	case units.Bytes:
		return units.ParseBytes(s)
	case units.Rate:
		return units.ParseRate(s)
	case int:
		if v, err := strconv.Atoi(s); err == nil {
			return v, nil
		}
		return nil, errors.New("want a whole number")
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return nil, errors.New("want a finite number")
	}
	return v, nil
}

// OneOf lists words for an error.
func OneOf(words []string) string {
	last := len(words) - 1
	switch last {
	case -1:
		return "none"
	case 0:
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Range is the allowed interval of a parameter, in its type's base unit.
type Range struct {
	low, high         float64
	openLow, openHigh bool
}

// Number is the type of a bound.
type Number interface {
	~int | ~int64 | ~float64
}

// Any allows everything.
var Any = Range{low: math.Inf(-1), high: math.Inf(1)}

// Above allows values above low.
func Above[T Number](low T) Range { return Range{float64(low), math.Inf(1), true, false} }

// AtLeast allows values from low on.
func AtLeast[T Number](low T) Range { return Range{float64(low), math.Inf(1), false, false} }

// From allows low to high.
func From[T Number](low, high T) Range { return Range{float64(low), float64(high), false, false} }

// AboveTo allows values above low and at most high.
func AboveTo[T Number](low, high T) Range { return Range{float64(low), float64(high), true, false} }

// Between allows values above low and below high.
func Between[T Number](low, high T) Range { return Range{float64(low), float64(high), true, true} }

// has reports whether v is allowed; NaN never is.
func (r Range) has(v float64) bool {
	return (v > r.low || v == r.low && !r.openLow) && (v < r.high || v == r.high && !r.openHigh)
}

// want describes a range in T's units.
func want[T Value](r Range) string {
	low, high := bound[T](r.low), bound[T](r.high)
	switch {
	case low == "" && high == "":
		return ""
	case low == "":
		return "at most " + high
	case high == "" && r.openLow:
		return "more than " + low
	case high == "":
		return low + " or more"
	case r.openLow && r.openHigh:
		return "more than " + low + " and less than " + high
	case r.openLow:
		return "more than " + low + " and at most " + high
	}
	return low + " to " + high
}

func bound[T Value](v float64) string {
	if math.Abs(v) >= 1<<62 {
		return ""
	}
	return fmt.Sprint(T(v))
}

// PacketTime returns the time that a packet takes at a rate. It is the least base round trip: with a shorter
// one, the bandwidth-delay product would be less than a packet. It is 1 ps if the rate is out of range, which
// another check reports.
func PacketTime(rate units.Rate, mss units.Bytes) units.Time {
	if rate <= 0 {
		return 1
	}
	return max(rate.TxTime(mss), 1)
}
