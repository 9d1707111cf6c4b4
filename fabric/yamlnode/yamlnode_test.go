package yamlnode

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/units"
)

func TestReads(t *testing.T) {
	d, err := Parse("x.yaml", []byte("a: 5\nb: 2us\nc: {d: 16MB, e: [1, 2]}\nf: true\ng: [{h: 1Gbps}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	m := d.Root()
	c := m.Sub("c")
	if m.Int("a", 0, 0, 9) != 5 || m.Time("b", 0, 0, units.Second) != 2*units.Microsecond || c.Bytes("d", 0, 0, units.GB) != 16*units.MB ||
		len(c.Ints("e", 0, 5)) != 2 || !m.Bool("f", false) || m.Int("z", 7, 0, 9) != 7 {
		t.Error("a value was read wrongly")
	}
	m.Each("g", func(m *Map) {
		if m.Rate("h", 0, 0, units.Rate(1e12)) != units.Gbps {
			t.Error("a rate was read wrongly")
		}
		m.Done()
	})
	c.Done()
	m.Done()
	if err := d.Err(); err != nil {
		t.Error(err)
	}
}

func TestRefusals(t *testing.T) {
	for want, text := range map[string]string{
		"is empty":                   "",
		"more than one document":     "a: 1\n---\na: 2\n",
		"anchors and aliases":        "a: &x 1\nb: *x\n",
		"x.yaml:1: is \"5\"":         "5",
		"unknown key, want one of":   "b: 1",
		"x.yaml:2: a: is given":      "a: 1\na: 2",
		"from 0 to 9":                "a: 10",
		"is a list, want":            "a: [1]",
		"did not find expected":      "a: [1",
		"x.yaml:1: a: is \"1.5\", w": "a: 1.5",
	} {
		d, err := Parse("x.yaml", []byte(text))
		if err == nil {
			m := d.Root()
			m.Int("a", 0, 0, 9)
			m.Done()
			err = d.Err()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
}

func TestOverlay(t *testing.T) {
	d, err := Parse("x.yaml", []byte("a: {b: 1, c: 2}\nd: [1]\n"))
	if err != nil {
		t.Fatal(err)
	}
	var over yaml.Node
	if err := yaml.Unmarshal([]byte("a: {c: 3, e: 4}\nd: [2, 3]\n"), &over); err != nil {
		t.Fatal(err)
	}
	m := d.Overlay(over.Content[0]).Root()
	a := m.Sub("a")
	if a.Int("b", 0, 0, 9) != 1 || a.Int("c", 0, 0, 9) != 3 || a.Int("e", 0, 0, 9) != 4 || len(m.Ints("d", 0, 9)) != 2 {
		t.Error("the overlay is wrong")
	}
	if d.Root().Sub("a").Int("c", 0, 0, 9) != 2 {
		t.Error("the overlay changed its base")
	}
}
