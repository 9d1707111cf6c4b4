package config

import (
	"math"
	"math/big"
	"net"
	"net/netip"
	"sort"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/units"
)

// decoder walks YAML nodes, because only nodes know their lines. It is used once.
type decoder struct {
	faults
	lines map[string]int // field path → line, for checks that come later
}

// field is how one key of a mapping is read. A nil read marks a key that is only allowed.
type field struct {
	key      string
	required bool
	read     func(n *yaml.Node, path string)
}

// object reads a mapping with exactly these keys.
func (d *decoder) object(n *yaml.Node, path string, fields []field) {
	d.lines[path] = n.Line
	if n.Kind != yaml.MappingNode {
		d.add(n.Line, path, "is %s, want a mapping with the keys %s", kindName(n), keyList(fields))
		return
	}
	seen := make(map[string]int, len(fields))
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := key.Value
		f := findField(fields, name)
		if key.Kind != yaml.ScalarNode || f == nil {
			d.add(key.Line, join(path, clip(name)), "unknown key, want one of %s", keyList(fields))
			continue
		}
		if line, twice := seen[name]; twice {
			d.add(key.Line, join(path, name), "is given twice, first in line %d", line)
			continue
		}
		seen[name] = key.Line
		p := join(path, name)
		d.lines[p] = value.Line
		if value.Kind == yaml.AliasNode {
			d.add(value.Line, p, "is an alias; anchors and aliases are not allowed")
			continue
		}
		f.read(value, p)
	}
	for _, f := range fields {
		if _, ok := seen[f.key]; f.required && !ok {
			d.add(n.Line, join(path, f.key), "is missing")
		}
	}
}

// maxList bounds every list of a fabric file.
const maxList = 65536

// list reads a sequence, calling read for each element.
func (d *decoder) list(n *yaml.Node, path string, read func(n *yaml.Node, path string)) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.SequenceNode {
		d.add(n.Line, path, "is %s, want a list", kindName(n))
		return
	}
	if len(n.Content) > maxList {
		d.add(n.Line, path, "has %d elements, at most %d are allowed", len(n.Content), maxList)
		return
	}
	for i, e := range n.Content {
		p := path + "[" + strconv.Itoa(i) + "]"
		d.lines[p] = e.Line
		if e.Kind == yaml.AliasNode {
			d.add(e.Line, p, "is an alias; anchors and aliases are not allowed")
			continue
		}
		read(e, p)
	}
}

// scalar returns a scalar's text.
func (d *decoder) scalar(n *yaml.Node, path, want string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		d.add(n.Line, path, "is %s, want %s", kindName(n), want)
		return "", false
	}
	return n.Value, true
}

func (d *decoder) text(n *yaml.Node, path, want string) string {
	s, _ := d.scalar(n, path, want)
	return s
}

// word reads a name that may stand in paths, metrics and log lines.
func (d *decoder) word(n *yaml.Node, path string) string {
	const want = "a word of 1 to 63 letters, digits, '-', '_' or '.', starting with a letter or digit"
	s, ok := d.scalar(n, path, want)
	if ok && !isWord(s) {
		d.add(n.Line, path, "is %q, want %s", clip(s), want)
		return ""
	}
	return s
}

func isWord(s string) bool {
	if s == "" || len(s) > 63 {
		return false
	}
	for i, r := range s {
		alnum := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !alnum && (i == 0 || !strings.ContainsRune("-_.", r)) {
			return false
		}
	}
	return true
}

func (d *decoder) uint(n *yaml.Node, path string, low, high uint64) uint64 {
	s, ok := d.scalar(n, path, "an integer")
	if !ok {
		return low
	}
	v, err := strconv.ParseUint(s, 0, 64)
	if low == high && (err != nil || v != low) {
		d.add(n.Line, path, "is %q, want %d", clip(s), low)
		return low
	}
	if err != nil || v < low || v > high {
		d.add(n.Line, path, "is %q, want an integer from %d to %d", clip(s), low, high)
		return low
	}
	return v
}

// float reads a number x with low < x, and x < high or x ≤ high.
func (d *decoder) float(n *yaml.Node, path string, ok func(float64) bool, want string) float64 {
	s, isScalar := d.scalar(n, path, want)
	if !isScalar {
		return 0
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || !ok(v) {
		d.add(n.Line, path, "is %q, want %s", clip(s), want)
		return 0
	}
	return v
}

func (d *decoder) rate(n *yaml.Node, path string) units.Rate {
	const want = `a rate above zero such as "50Mbps"`
	s, ok := d.scalar(n, path, want)
	if !ok {
		return 0
	}
	v, err := units.ParseRate(s)
	switch {
	case err != nil:
		d.add(n.Line, path, "%v", err)
	case v <= 0:
		d.add(n.Line, path, "is %q, want %s", clip(s), want)
	}
	return v
}

func (d *decoder) bytes(n *yaml.Node, path string, low, high units.Bytes) units.Bytes {
	s, ok := d.scalar(n, path, `an amount such as "200KB"`)
	if !ok {
		return 0
	}
	v, err := units.ParseBytes(s)
	switch {
	case err != nil:
		d.add(n.Line, path, "%v", err)
	case v < low || v > high:
		d.add(n.Line, path, "is %q, want %v to %v", clip(s), low, high)
	}
	return v
}

func (d *decoder) time(n *yaml.Node, path string, low, high units.Time) units.Time {
	s, ok := d.scalar(n, path, `a time such as "2us"`)
	if !ok {
		return 0
	}
	v, err := units.ParseTime(s)
	switch {
	case err != nil:
		d.add(n.Line, path, "%v", err)
	case v < low || v > high:
		d.add(n.Line, path, "is %q, want %v to %v", clip(s), low, high)
	}
	return v
}

// wall reads a wall-clock time, or "off" as -1 where that is allowed.
func (d *decoder) wall(n *yaml.Node, path string, low, high time.Duration, off bool) time.Duration {
	if off && n.Kind == yaml.ScalarNode && n.Value == "off" {
		return -1
	}
	t := d.time(n, path, units.FromDuration(low), units.FromDuration(high))
	return t.Duration()
}

// hostPort reads host:port.
func (d *decoder) hostPort(n *yaml.Node, path string) string {
	const want = `host:port with a port from 0 to 65535, such as "127.0.0.1:9559"`
	s, ok := d.scalar(n, path, want)
	if !ok {
		return ""
	}
	if why := badHostPort(s); why != "" {
		d.add(n.Line, path, "is %q: %s, want %s", clip(s), why, want)
		return ""
	}
	return s
}

func badHostPort(s string) string {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return "no host:port"
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "bad port " + strconv.Quote(clip(port))
	}
	if strings.ContainsAny(host, " \t/\\@?#\x00") {
		return "bad host " + strconv.Quote(clip(host))
	}
	return ""
}

func (d *decoder) ipv4(n *yaml.Node, path string) netip.Addr {
	const want = `a unicast IPv4 address such as "10.0.1.1"`
	s, ok := d.scalar(n, path, want)
	if !ok {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is4() || a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() || a.As4()[0] >= 240 || a.As4()[0] == 0 {
		d.add(n.Line, path, "is %q, want %s", clip(s), want)
		return netip.Addr{}
	}
	return a
}

func (d *decoder) mac(n *yaml.Node, path string) (mac [6]byte) {
	const want = `a unicast MAC address such as "06:00:0a:00:01:01"`
	s, ok := d.scalar(n, path, want)
	if !ok {
		return mac
	}
	hw, err := net.ParseMAC(s)
	if err != nil || len(hw) != 6 || hw[0]&1 != 0 || [6]byte(hw) == mac {
		d.add(n.Line, path, "is %q, want %s", clip(s), want)
		return mac
	}
	return [6]byte(hw)
}

func findField(fields []field, key string) *field {
	for i := range fields {
		if fields[i].key == key {
			return &fields[i]
		}
	}
	return nil
}

func keyList(fields []field) string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	sort.Strings(keys)
	return strings.Join(keys, ", ")
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// clip keeps messages readable when a value is not.
func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return "empty"
		}
		return strconv.Quote(clip(n.Value))
	}
	return "empty"
}

// mulFits reports whether a·b fits an int64.
func mulFits(a, b int64) bool {
	return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)).IsInt64()
}
