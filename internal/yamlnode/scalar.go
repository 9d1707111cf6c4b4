package yamlnode

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/units"
)

// ErrNotAllowed is the error of a parser without a message of its own.
var ErrNotAllowed = errors.New("not allowed")

// unitError is an error of package units, whose text already has the value and what is allowed.
type unitError struct{ error }

// kind describes the allowed texts of a value: in words, as a JSON schema, and by a parser that refuses all others.
type kind[T any] struct {
	want   string
	schema Schema
	parse  func(string) (T, error)
}

// Scalar reads a key's text with a parser; want says what is allowed.
func Scalar[T any](m *Map, key string, def T, want string, parse func(string) (T, error)) T {
	return scalar(m, key, def, kind[T]{want, anyText, parse})
}

func scalar[T any](m *Map, key string, def T, k kind[T]) T {
	if m.d.described != nil {
		describe(m, key, def, k)
		return def
	}
	v := element(m, m.Node(key), m.join(key), def, k)
	note(m, key, v, def, k)
	return v
}

func element[T any](m *Map, n *yaml.Node, path string, def T, k kind[T]) T {
	if n == nil {
		return def
	}
	if n.Kind != yaml.ScalarNode || isNull(n) {
		m.d.add(n.Line, path, "is %s, want %s", kindName(n), k.want)
		return def
	}
	v, err := k.parse(n.Value)
	if err == nil {
		return v
	}
	switch {
	case errors.As(err, new(unitError)):
		m.d.add(n.Line, path, "%v", err)
	case errors.Is(err, ErrNotAllowed):
		m.d.add(n.Line, path, "is %q, want %s", clip(n.Value), k.want)
	default:
		m.d.add(n.Line, path, "is %q: %v, want %s", clip(n.Value), err, k.want)
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
func elements[T any](m *Map, key string, k kind[T]) []T {
	var none T
	if m.d.described != nil {
		m.d.described.add(Key{Path: m.join(key), Allowed: "a list, of each " + nameOf(none) + k.want, Schema: list(k.schema)})
		return nil
	}
	var values []T
	for i, n := range m.list(key) {
		path, faults := m.index(key, i), len(m.d.faults)
		m.d.lines[path] = n.Line
		if v := element(m, n, path, none, k); len(m.d.faults) == faults {
			values = append(values, v)
		}
	}
	if m.d.values != nil && values != nil {
		m.d.values[m.show(key)] = strings.Trim(fmt.Sprint(values), "[]")
	}
	return values
}

func same(s string) (string, error) { return s, nil }

// Text returns a text.
func (m *Map) Text(key, def string) string { return Scalar(m, key, def, "a text", same) }

// Texts returns a list of words.
func (m *Map) Texts(key string) []string {
	return elements(m, key, kind[string]{"a word", anyText, same})
}

// OneOf returns a word out of a list.
func (m *Map) OneOf(key, def string, allowed ...string) string {
	v := scalar(m, key, def, kind[string]{"one of " + strings.Join(allowed, ", "), Schema{Enum: allowed}, func(s string) (string, error) {
		return check(s, slices.Contains(allowed, s))
	}})
	if s := m.d.described; s != nil && s.all {
		return s.choose(m.join(key), def, allowed)
	}
	return v
}

// Bool returns true or false.
func (m *Map) Bool(key string, def bool) bool {
	return scalar(m, key, def, kind[bool]{"true or false", Schema{Type: "boolean"}, func(s string) (bool, error) {
		return check(s == "true", s == "true" || s == "false")
	}})
}

// Int returns an integer from low to high.
func (m *Map) Int(key string, def, low, high int) int { return scalar(m, key, def, integer(low, high)) }

// Ints returns a list of integers from low to high.
func (m *Map) Ints(key string, low, high int) []int { return elements(m, key, integer(low, high)) }

func integer(low, high int) kind[int] {
	want := fmt.Sprintf("an integer from %d to %d", low, high)
	if low == high {
		want = strconv.Itoa(low)
	}
	return kind[int]{want, Schema{Type: "integer", Minimum: low, Maximum: high}, func(s string) (int, error) {
		v, err := strconv.ParseInt(s, 0, 64)
		return check(int(v), err == nil && int64(low) <= v && v <= int64(high))
	}}
}

// Float returns a number from low to high.
func (m *Map) Float(key string, def, low, high float64) float64 {
	return m.number(key, def, "a number from "+plain(low)+" to "+plain(high), Schema{Minimum: low, Maximum: high},
		func(v float64) bool { return low <= v && v <= high })
}

// Above returns a finite number above low and at most high, which may be infinite.
func (m *Map) Above(key string, def, low, high float64) float64 {
	want, schema := "a finite number above "+plain(low), Schema{Above: low}
	if !math.IsInf(high, 1) {
		want, schema.Maximum = "a number above "+plain(low)+" and at most "+plain(high), high
	}
	return m.number(key, def, want, schema, func(v float64) bool { return low < v && v <= high })
}

// Between returns a number above low and below high.
func (m *Map) Between(key string, def, low, high float64) float64 {
	return m.number(key, def, "a number above "+plain(low)+" and below "+plain(high), Schema{Above: low, Below: high},
		func(v float64) bool { return low < v && v < high })
}

func (m *Map) number(key string, def float64, want string, s Schema, ok func(float64) bool) float64 {
	s.Type = "number"
	return scalar(m, key, def, kind[float64]{want, s, func(s string) (float64, error) {
		v, err := strconv.ParseFloat(s, 64)
		return check(v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) && ok(v))
	}})
}

// plain prints a bound without an exponent.
func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Bytes returns an amount such as "16MB" from low to high.
func (m *Map) Bytes(key string, def, low, high units.Bytes) units.Bytes {
	return scalar(m, key, def, quantity(low, high, units.BytesPattern, units.ParseBytes))
}

// Amounts returns a list of amounts from low to high.
func (m *Map) Amounts(key string, low, high units.Bytes) []units.Bytes {
	return elements(m, key, quantity(low, high, units.BytesPattern, units.ParseBytes))
}

// Time returns a time such as "2us" from low to high.
func (m *Map) Time(key string, def, low, high units.Time) units.Time {
	return scalar(m, key, def, duration(low, high))
}

// Rate returns a rate such as "100Gbps" from low to high.
func (m *Map) Rate(key string, def, low, high units.Rate) units.Rate {
	return scalar(m, key, def, quantity(low, high, units.RatePattern, units.ParseRate))
}

func duration(low, high units.Time) kind[units.Time] {
	return quantity(low, high, units.TimePattern, units.ParseTime)
}

// quantity is a number with a unit from low to high.
func quantity[T interface {
	~int64
	String() string
}](low, high T, pattern string, parse func(string) (T, error)) kind[T] {
	return kind[T]{low.String() + " to " + high.String(), Schema{Type: "string", Pattern: "^" + pattern + "$"}, func(s string) (T, error) {
		v, err := parse(s)
		if err != nil {
			return v, unitError{err}
		}
		return check(v, low <= v && v <= high)
	}}
}

// Wall returns a wall-clock time from low to high.
func (m *Map) Wall(key string, def, low, high time.Duration) time.Duration {
	return m.Time(key, units.FromDuration(def), units.FromDuration(low), units.FromDuration(high)).Duration()
}

// WallOrOff returns a wall-clock time from low to high, or 0 for "off".
func (m *Map) WallOrOff(key string, def, low, high time.Duration) time.Duration {
	within := duration(units.FromDuration(low), units.FromDuration(high))
	return scalar(m, key, units.FromDuration(def), kind[units.Time]{
		"off, or " + within.want, Schema{Type: "string", Pattern: within.schema.Pattern + "|^off$"},
		func(s string) (units.Time, error) {
			if s == "off" {
				return 0, nil
			}
			return within.parse(s)
		},
	}).Duration()
}

// word matches the texts that Word takes.
var word = regexp.MustCompile(`^[0-9A-Za-z][-_.0-9A-Za-z]{0,62}$`)

// Word returns a name that may stand in paths, metrics and log lines.
func (m *Map) Word(key, def string) string {
	const want = "a word of 1 to 63 letters, digits, '-', '_' or '.', starting with a letter or digit"
	schema := anyText
	schema.Pattern = word.String()
	return scalar(m, key, def, kind[string]{want, schema, func(s string) (string, error) { return check(s, IsWord(s)) }})
}

// IsWord reports whether Word takes a text.
func IsWord(s string) bool { return word.MatchString(s) }

// HostPort returns host:port, or one of the words that are allowed in its place.
func (m *Map) HostPort(key, def string, words ...string) string {
	want := `host:port with a port from 0 to 65535, such as "127.0.0.1:9559"`
	for _, w := range words {
		want += ", or " + w
	}
	return Scalar(m, key, def, want, func(s string) (string, error) {
		if slices.Contains(words, s) {
			return s, nil
		}
		return s, hostPort(s)
	})
}

func hostPort(s string) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return errors.New("no host:port")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return errors.New("bad port " + strconv.Quote(clip(port)))
	}
	if strings.ContainsAny(host, " \t/\\@?#\x00") {
		return errors.New("bad host " + strconv.Quote(clip(host)))
	}
	return nil
}

// IPv4 returns a unicast IPv4 address.
func (m *Map) IPv4(key string) netip.Addr {
	return Scalar(m, key, netip.Addr{}, `a unicast IPv4 address such as "10.0.1.1"`, func(s string) (netip.Addr, error) {
		a, err := netip.ParseAddr(s)
		return check(a, err == nil && a.Is4() && !a.IsMulticast() && !a.IsLoopback() && a.As4()[0] < 240 && a.As4()[0] > 0)
	})
}

// IPv6 returns a unicast IPv6 address that is not link-local.
func (m *Map) IPv6(key string) netip.Addr {
	return Scalar(m, key, netip.Addr{}, `a unicast IPv6 address, not of a link alone, such as "2001:db8:1::1"`, func(s string) (netip.Addr, error) {
		a, err := netip.ParseAddr(s)
		return check(a, err == nil && a.Is6() && a.Zone() == "" && !a.Is4In6() && !a.IsMulticast() && !a.IsLoopback() && !a.IsUnspecified() && !a.IsLinkLocalUnicast())
	})
}

// MAC returns a unicast MAC address.
func (m *Map) MAC(key string) [6]byte {
	var none [6]byte
	return Scalar(m, key, none, `a unicast MAC address such as "06:00:0a:00:01:01"`, func(s string) ([6]byte, error) {
		hw, err := net.ParseMAC(s)
		if err != nil || len(hw) != 6 || hw[0]&1 != 0 || [6]byte(hw) == none {
			return none, ErrNotAllowed
		}
		return [6]byte(hw), nil
	})
}
