package yamlnode

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/units"
)

// ErrNotAllowed is the error of a parser that has no more to say than what is wanted.
var ErrNotAllowed = errors.New("not allowed")

// unitError is an error of package units, which says value and what is wanted itself.
type unitError struct{ error }

// Scalar reads a key's text with a parser; want says what is allowed.
func Scalar[T any](m *Map, key string, def T, want string, parse func(string) (T, error)) T {
	if m.d.described != nil {
		return describe(m, key, def, want, parse)
	}
	return element(m, m.Node(key), m.join(key), def, want, parse)
}

func element[T any](m *Map, n *yaml.Node, path string, def T, want string, parse func(string) (T, error)) T {
	if n == nil {
		return def
	}
	if n.Kind != yaml.ScalarNode || isNull(n) {
		m.d.add(n.Line, path, "is %s, want %s", kindName(n), want)
		return def
	}
	v, err := parse(n.Value)
	if err == nil {
		return v
	}
	switch {
	case errors.As(err, new(unitError)):
		m.d.add(n.Line, path, "%v", err)
	case errors.Is(err, ErrNotAllowed):
		m.d.add(n.Line, path, "is %q, want %s", clip(n.Value), want)
	default:
		m.d.add(n.Line, path, "is %q: %v, want %s", clip(n.Value), err, want)
	}
	return def
}

// check returns a parser's value when it is allowed.
func check[T any](v T, ok bool) (T, error) {
	if !ok {
		return v, ErrNotAllowed
	}
	return v, nil
}

// elements reads each scalar of a list.
func elements[T any](m *Map, key, want string, parse func(string) (T, error)) []T {
	if m.d.described != nil {
		return describeList(m, key, want, parse)
	}
	var list []T
	for i, n := range m.list(key) {
		path, faults := m.index(key, i), len(m.d.faults)
		var none T
		m.d.lines[path] = n.Line
		if v := element(m, n, path, none, want, parse); len(m.d.faults) == faults {
			list = append(list, v)
		}
	}
	return list
}

func same(s string) (string, error) { return s, nil }

// Text returns a text.
func (m *Map) Text(key, def string) string { return Scalar(m, key, def, "a text", same) }

// Texts returns a list of words.
func (m *Map) Texts(key string) []string { return elements(m, key, "a word", same) }

// OneOf returns a word out of a list.
func (m *Map) OneOf(key, def string, allowed ...string) string {
	return Scalar(m, key, def, "one of "+strings.Join(allowed, ", "), func(s string) (string, error) {
		return check(s, slices.Contains(allowed, s))
	})
}

// Bool returns true or false.
func (m *Map) Bool(key string, def bool) bool {
	return Scalar(m, key, def, "true or false", func(s string) (bool, error) {
		return check(s == "true", s == "true" || s == "false")
	})
}

// Int returns an integer from low to high.
func (m *Map) Int(key string, def, low, high int) int {
	want, parse := integer(low, high)
	return Scalar(m, key, def, want, parse)
}

// Ints returns a list of integers from low to high.
func (m *Map) Ints(key string, low, high int) []int {
	want, parse := integer(low, high)
	return elements(m, key, want, parse)
}

func integer(low, high int) (string, func(string) (int, error)) {
	want := fmt.Sprintf("an integer from %d to %d", low, high)
	if low == high {
		want = strconv.Itoa(low)
	}
	return want, func(s string) (int, error) {
		v, err := strconv.ParseInt(s, 0, 64)
		return check(int(v), err == nil && int64(low) <= v && v <= int64(high))
	}
}

// Float returns a number from low to high.
func (m *Map) Float(key string, def, low, high float64) float64 {
	return m.number(key, def, "a number from "+plain(low)+" to "+plain(high), func(v float64) bool { return low <= v && v <= high })
}

// Above returns a finite number above low and at most high, which may be infinite.
func (m *Map) Above(key string, def, low, high float64) float64 {
	want := "a finite number above " + plain(low)
	if !math.IsInf(high, 1) {
		want = "a number above " + plain(low) + " and at most " + plain(high)
	}
	return m.number(key, def, want, func(v float64) bool { return low < v && v <= high })
}

// Between returns a number above low and below high.
func (m *Map) Between(key string, def, low, high float64) float64 {
	return m.number(key, def, "a number above "+plain(low)+" and below "+plain(high), func(v float64) bool { return low < v && v < high })
}

func (m *Map) number(key string, def float64, want string, ok func(float64) bool) float64 {
	return Scalar(m, key, def, want, func(s string) (float64, error) {
		v, err := strconv.ParseFloat(s, 64)
		return check(v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) && ok(v))
	})
}

// plain prints a bound without an exponent.
func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Bytes returns an amount such as "16MB" from low to high.
func (m *Map) Bytes(key string, def, low, high units.Bytes) units.Bytes {
	return quantity(m, key, def, low, high, units.ParseBytes)
}

// Amounts returns a list of amounts from low to high.
func (m *Map) Amounts(key string, low, high units.Bytes) []units.Bytes {
	want, parse := amount(low, high, units.ParseBytes)
	return elements(m, key, want, parse)
}

// Time returns a time such as "2us" from low to high.
func (m *Map) Time(key string, def, low, high units.Time) units.Time {
	return quantity(m, key, def, low, high, units.ParseTime)
}

// Rate returns a rate such as "100Gbps" from low to high.
func (m *Map) Rate(key string, def, low, high units.Rate) units.Rate {
	return quantity(m, key, def, low, high, units.ParseRate)
}

// measured is what carries a unit.
type measured interface {
	~int64
	String() string
}

func quantity[T measured](m *Map, key string, def, low, high T, parse func(string) (T, error)) T {
	want, within := amount(low, high, parse)
	return Scalar(m, key, def, want, within)
}

// amount returns what is wanted of an amount from low to high, and its parser.
func amount[T measured](low, high T, parse func(string) (T, error)) (string, func(string) (T, error)) {
	return low.String() + " to " + high.String(), func(s string) (T, error) {
		v, err := parse(s)
		if err != nil {
			return v, unitError{err}
		}
		return check(v, low <= v && v <= high)
	}
}

// Wall returns a wall-clock time from low to high.
func (m *Map) Wall(key string, def, low, high time.Duration) time.Duration {
	return m.Time(key, units.FromDuration(def), units.FromDuration(low), units.FromDuration(high)).Duration()
}

// WallOrOff returns a wall-clock time from low to high, or −1 for "off".
func (m *Map) WallOrOff(key string, def, low, high time.Duration) time.Duration {
	const off = -1
	want, within := amount(units.FromDuration(low), units.FromDuration(high), units.ParseTime)
	v := Scalar(m, key, units.FromDuration(def), "off, or "+want, func(s string) (units.Time, error) {
		if s == "off" {
			return off, nil
		}
		return within(s)
	})
	if v == off {
		return off
	}
	return v.Duration()
}
