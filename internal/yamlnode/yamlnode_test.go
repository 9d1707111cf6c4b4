package yamlnode

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/units"
)

// read parses a text with everything that a mapping can hold.
func read(text string) (values []any, err error) {
	d, err := Parse("x.yaml", []byte(text))
	if err != nil {
		return nil, err
	}
	d.Read(func(m *Map) {
		add := func(v any) { values = append(values, v) }
		add(m.Int("int", 1, 0, 9))
		add(m.Ints("ints", 0, 9))
		add(m.Float("float", 1, 0, 9))
		add(m.Above("above", 1, 0, 9))
		add(m.Between("between", 1, 0, 9))
		add(m.Bool("bool", true))
		add(m.Text("text", "t"))
		add(m.Texts("texts"))
		add(m.Word("word", "w"))
		add(m.OneOf("one", "a", "a", "b"))
		add(m.Time("time", 1, 0, units.Second))
		add(m.Bytes("bytes", 1, 0, units.GB))
		add(m.Rate("rate", 1, 0, units.Gbps))
		add(m.Wall("wall", time.Second, 0, time.Hour))
		add(m.WallOrOff("off", time.Second, 0, time.Hour))
		add(m.HostPort("addr", "h:1", "off"))
		add(m.IPv4("ipv4"))
		add(m.MAC("mac"))
		add(Section(m, "sub", func(m *Map) int { return m.Int("x", 3, 0, 9) }))
		add(List(m, "list", func(m *Map) int { m.Need("x"); return m.Int("x", 3, 0, 9) }))
		m.Entries("entries", func(name string, m *Map) { add(name); add(m.Int("x", 3, 0, 9)) })
	})
	return values, d.Err()
}

func TestReads(t *testing.T) {
	var none []int
	for text, want := range map[string][]any{
		"{}": {1, none, 1.0, 1.0, 1.0, true, "t", []string(nil), "w", "a", units.Time(1), units.Bytes(1), units.Rate(1),
			time.Second, time.Second, "h:1", netip.Addr{}, [6]byte{}, 3, none},
		`{int: 5, ints: [1, 0x2], float: 0, above: 9, between: 8.9, bool: false, text: 5, texts: [a], word: b, one: b, time: 2us, bytes: 16MB,
		  rate: 1Mbps, wall: 1ms, off: off, addr: off, ipv4: 10.0.0.1, mac: "02:00:00:00:00:01", sub: {x: 0}, list: [{x: 1}], entries: {k: {x: 2}}}`: {
			5, []int{1, 2}, 0.0, 9.0, 8.9, false, "5", []string{"a"}, "b", "b", 2 * units.Microsecond, 16 * units.MB,
			units.Mbps, time.Millisecond, time.Duration(0), "off", netip.MustParseAddr("10.0.0.1"), [6]byte{2, 0, 0, 0, 0, 1}, 0, []int{1}, "k", 2},
	} {
		got, err := read(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %v, %v\nwant %v", text, got, err, want)
		}
	}
}

func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "x.yaml: is empty, want a mapping",
		"int: 1\n---\nint: 2\n":  "x.yaml:2: a second YAML document starts here, want one",
		"text: &x 1\nword: *x\n": "x.yaml:2: word: is an alias, which is not allowed, want a word",
		"5":                      `x.yaml:1: is "5", want a mapping with the keys above, addr, `,
		"b: 1":                   "x.yaml:1: b: unknown key, want one of above, addr, ",
		"int: 1\nint: 2":         "x.yaml:2: int: is given twice, first in line 1",
		"int: 10":                `x.yaml:1: int: is "10", want an integer from 0 to 9`,
		"int: [1]":               "x.yaml:1: int: is a list, want an integer from 0 to 9",
		"int: 1.5":               `x.yaml:1: int: is "1.5", want an integer`,
		"int: ":                  "x.yaml:1: int: is empty, want an integer",
		"int: [1":                "x.yaml:1: not YAML: did not find expected",
		"ints: [1, 10]":          `x.yaml:1: ints[1]: is "10", want an integer from 0 to 9`,
		"above: 0":               `x.yaml:1: above: is "0", want a number above 0 and at most 9`,
		"between: 9":             `x.yaml:1: between: is "9", want a number above 0 and below 9`,
		"float: nan":             `x.yaml:1: float: is "nan", want a number from 0 to 9`,
		"time: 5":                `x.yaml:1: time: "5" is not a time: want a non-negative number with one of the units`,
		"addr: x":                `x.yaml:1: addr: is "x": no host:port, want host:port`,
		"list:\n - {y: 1}":       "x.yaml:2: list[0].x: is missing\nx.yaml:2: list[0].y: unknown key, want one of x",
		"list: {x: 1}":           "x.yaml:1: list: is a mapping, want a list",
		"sub: 3":                 `x.yaml:1: sub: is "3", want a mapping with the keys x`,
		"entries: {k: 3}":        `x.yaml:1: entries.k: is "3", want a mapping with the keys x`,
	} {
		if _, err := read(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// An overlay over a file is read as if the file contained it, and errors name the overlay.
func TestSet(t *testing.T) {
	for _, text := range []string{"a: {b: 1}", "{}", "a: {}"} {
		d, err := Parse("x.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		d.Set("a.b", "12", "--flag")
		var b int
		d.Read(func(m *Map) { m.Sub("a", func(m *Map) { b = m.Int("b", 0, 0, 20) }) })
		d.Fault("a.b", "is too much")
		if err := d.Err(); b != 12 || err == nil || err.Error() != "x.yaml: --flag: is too much" {
			t.Errorf("%s: b = %d, %v", text, b, err)
		}
	}
}

func TestOverlay(t *testing.T) {
	d, err := Parse("x.yaml", []byte("a: {b: 1, c: 2}\nd: [1]\n"))
	if err != nil {
		t.Fatal(err)
	}
	var over yaml.Node
	if err := yaml.Unmarshal([]byte("a: {b: ~, c: 3, e: 4, g: ~}\nd: [2, 3]\nf: {h: ~, x: 1}\n"), &over); err != nil {
		t.Fatal(err)
	}
	a := func(m *Map) [3]int { return [3]int{m.Int("b", 0, 0, 9), m.Int("c", 0, 0, 9), m.Int("e", 0, 0, 9)} }
	m := d.Overlay(over.Content[0]).Root()
	if got := Section(m, "a", a); got != [3]int{0, 3, 4} || m.Has("g") || Section(m, "f", func(m *Map) bool { return m.Has("h") }) || len(m.Ints("d", 0, 9)) != 2 {
		t.Errorf("the overlay is wrong: %v", got)
	}
	if got := Section(d.Root(), "a", a); got != [3]int{1, 2, 0} {
		t.Errorf("the overlay changed its base: %v", got)
	}
}

// TestOverlayOfLists: a mapping over a list changes the named elements; "*" changes all.
func TestOverlayOfLists(t *testing.T) {
	const base = "flows: [{group: a, x: 1}, {name: b, x: 2}, {x: 3}, {group: a, x: 4}]\n"
	for over, want := range map[string]string{
		"flows: {a: {x: 7}}":              "7 2 3 7",
		"flows: {b: {x: 7}, '*': {x: 8}}": "8 8 8 8",
		"flows: {a: ~}":                   "2 3",
		"flows: {c: {x: 7}}":              "x.yaml:1: c: is over a list that has nothing of this group or name",
	} {
		d, err := Parse("x.yaml", []byte(base))
		if err != nil {
			t.Fatal(err)
		}
		var node yaml.Node
		if err := yaml.Unmarshal([]byte(over), &node); err != nil {
			t.Fatal(err)
		}
		laid := d.Overlay(node.Content[0])
		var got []string
		laid.Root().Each("flows", func(m *Map) {
			m.Text("group", "")
			m.Text("name", "")
			got = append(got, fmt.Sprint(m.Int("x", 0, 0, 9)))
		})
		if text := strings.Join(got, " "); text != want && fmt.Sprint(laid.Err()) != want {
			t.Errorf("%s: %s, %v; want %s", over, text, laid.Err(), want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("int: 5\nsub: {x: 1}\nlist: [{x: 1}]\nentries: {k: {x: 2}}\n")
	f.Add("a: &x [*x]\n? [1]\n: 2\n<<: *x\n")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := read(text); err != nil {
			if e, ok := err.(*Error); !ok || len(e.Faults) == 0 {
				t.Errorf("%q: %v, want faults", text, err)
			}
		}
	})
}

// TestValues: each key has the value that is used, with names instead of indices. A key at its default, or at a
// value that would be computed, is left out.
func TestValues(t *testing.T) {
	text := `
rate: 1000Mbps
off: "off"
zero: 0s
odd: 1234567B
ints: [1, 2]
links:
  - {a: "x:1", b: y, mtu: 9000}
  - {name: n, mtu: 1500}
  - {mtu: 1}
`
	d, err := Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got := d.Values(func(d *Doc) {
		d.Read(func(m *Map) {
			m.Rate("rate", 0, 0, units.Gbps)
			m.WallOrOff("off", time.Second, time.Millisecond, time.Hour)
			m.WallOrOff("on", time.Second, 0, time.Hour)
			m.Time("zero", 0, 0, units.Second)
			m.Time("none", 0, 0, units.Second)
			m.Bytes("odd", 0, 0, units.GB)
			m.Ints("ints", 0, 9)
			m.Int("computed", -1, 0, 9)
			m.Sub("section", func(m *Map) { m.Int("x", 1, 0, 9) })
			m.Each("links", func(m *Map) {
				m.Text("name", "")
				m.Text("a", "")
				m.Text("b", "")
				m.Int("mtu", 1, 1, 9000)
			})
		})
	})
	want := map[string]string{
		"rate": "1Gbps", "off": "off", "on": "1s", "odd": "1.235MB (1234567)", "ints": "1 2",
		"links[x:1-y].a": "x:1", "links[x:1-y].b": "y", "links[x:1-y].mtu": "9000",
		"links[n].name": "n", "links[n].mtu": "1500", "links[2].mtu": "1",
	}
	if !reflect.DeepEqual(got, want) || d.Err() != nil {
		t.Errorf("got %v, want %v; %v", got, want, d.Err())
	}
}
