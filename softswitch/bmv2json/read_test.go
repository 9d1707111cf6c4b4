package bmv2json

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	p, err := Parse([]byte(`{"header_types": [{"name": "t", "id": 1, "fields": [["a", 8, true], ["v", "*"], ["b", 1, 0, 1]]}],
		"errors": [["NoMatch", 2]], "field_aliases": [["x.y", ["h", "f"]]]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Field{{Name: "a", Bits: 8, Signed: true}, {Name: "v", Variable: true}, {Name: "b", Bits: 1, Saturating: true}}
	for i, f := range p.HeaderTypes[0].Fields {
		if f != want[i] {
			t.Errorf("field %+v, want %+v", f, want[i])
		}
	}
	if e := p.Errors[0]; e != (Pair{"NoMatch", 2}) {
		t.Errorf("error %+v", e)
	}
	if a := p.FieldAliases[0]; a != (Alias{"x.y", "h", "f"}) {
		t.Errorf("alias %+v", a)
	}
	for doc, text := range map[string]string{
		`{`:                            "BMv2 JSON",
		`{"tables": 1, "headers": {}}`: "headers: object where",
		`{"errors": [["a"]]}`:          "want [name, value]",
	} {
		if _, err := Parse([]byte(doc)); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %q", doc, err, text)
		}
	}
}

func TestHex(t *testing.T) {
	for s, want := range map[string]int64{"0x0a": 10, "0a": 10, "-0x0a": -10, "0x0": 0} {
		if z, err := Hex(s); err != nil || z.Int64() != want {
			t.Errorf("%s: %v, %v, want %d", s, z, err, want)
		}
	}
	for _, s := range []string{"", "0x", "-", "0xg", "0x-1", "+1"} {
		if z, err := Hex(s); err == nil {
			t.Errorf("%q is %v, want an error", s, z)
		}
	}
}

// A Reader's errors say where in the document they are.
func TestReaderPath(t *testing.T) {
	var r Reader
	err := func() (err error) {
		defer Catch(&err)
		r.In("tables", 3, func() { r.In("key", -1, func() { r.Fixed("0x100", 1) }) })
		return nil
	}()
	if want := `BMv2 JSON: tables[3].key: "0x100" does not fit 1 bytes`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
