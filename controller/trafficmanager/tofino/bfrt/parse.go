package bfrt

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// schemas are the tables of the traffic manager and of ports that the controller uses, from
// the public driver's bf_rt_tm_tf{1,2}.json and bf_rt_port_tf{1,2}.json, in the form of
// Table.
//
//go:embed schemas/tofino1.json schemas/tofino2.json
var schemas embed.FS

// Load returns the schema of a chip's fixed tables and of a program's filters, from its
// bf-rt.json, which may be nil. Chips are "tofino1" and "tofino2".
func Load(chip string, program []byte) (*Schema, error) {
	b, err := schemas.ReadFile("schemas/" + chip + ".json")
	if err != nil {
		return nil, fmt.Errorf("chip is %q: allowed is tofino1 or tofino2", chip)
	}
	tables, err := parse(b)
	if err == nil && program != nil {
		var filters []*Table
		filters, err = parseProgram(program)
		tables = append(tables, filters...)
	}
	if err != nil {
		return nil, err
	}
	return newSchema(tables), nil
}

func parse(b []byte) ([]*Table, error) {
	var in struct{ Tables []*Table }
	if err := strict(b, &in); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return in.Tables, nil
}

func strict(b []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// UnmarshalJSON reads a field; without a maximum it is what its bits allow.
func (f *Field) UnmarshalJSON(b []byte) error {
	type plain Field
	p := plain{Max: math.MaxUint64}
	err := strict(b, &p)
	*f = Field(p)
	f.Max = min(f.Max, largest(f.Bits))
	return err
}

// UnmarshalText reads the scope of a table: device or pipe.
func (s *Scope) UnmarshalText(b []byte) error {
	return word(s, string(b), "device or pipe", map[string]Scope{"device": Device, "pipe": Pipe})
}

// UnmarshalText reads the kind of a field: uint, bool or string.
func (k *Kind) UnmarshalText(b []byte) error {
	return word(k, string(b), "uint, bool or string", map[string]Kind{"uint": Number, "bool": Boolean, "string": Text})
}

// UnmarshalJSON reads a list of operations.
func (o *Operations) UnmarshalJSON(b []byte) error {
	var words []string
	if err := json.Unmarshal(b, &words); err != nil {
		return err
	}
	for _, w := range words {
		var one Operations
		err := word(&one, w, "read, read_default, insert, modify or delete", map[string]Operations{
			"read": CanRead, "read_default": CanReadDefault, "insert": CanInsert, "modify": CanModify, "delete": CanDelete,
		})
		if err != nil {
			return err
		}
		*o |= one
	}
	return nil
}

func word[T any](to *T, text, allowed string, known map[string]T) error {
	v, ok := known[text]
	if !ok {
		return fmt.Errorf("%q: allowed is %s", text, allowed)
	}
	*to = v
	return nil
}

// largest returns the largest number of some bits.
func largest(bits int) uint64 {
	if bits <= 0 || bits >= 64 {
		return math.MaxUint64
	}
	return 1<<uint(bits) - 1
}

// programField is a field in the bf-rt.json that p4c writes for a program (p4c, backends/
// tofino/bf-p4c/control-plane/bfruntime.cpp).
type programField struct {
	ID   uint32
	Name string
	Type struct {
		Type    string
		Width   int
		Choices []string
	}
	Repeated bool
}

// parseProgram returns a program's low-pass filters from its bf-rt.json: what of a program
// P4Runtime does not reach. Entries of a filter are there from the start and are modified;
// they belong to the device.
func parseProgram(info []byte) (tables []*Table, err error) {
	var in struct {
		Tables []struct {
			Name string
			ID   uint32
			Type string `json:"table_type"`
			Size int
			Key  []programField
			Data []struct {
				Mandatory bool
				ReadOnly  bool `json:"read_only"`
				Singleton programField
			}
		}
	}
	err = json.Unmarshal(info, &in)
	for _, t := range in.Tables {
		if t.Type != "Lpf" {
			continue
		}
		out := &Table{Name: t.Name, ID: t.ID, Size: t.Size, Scope: Device, Operations: CanRead | CanModify}
		for _, k := range t.Key {
			f := k.field(&err)
			f.Max = min(f.Max, uint64(t.Size)-1) // the key of a filter is its index
			out.Keys = append(out.Keys, f)
		}
		for _, d := range t.Data {
			f := d.Singleton.field(&err)
			f.Mandatory, f.ReadOnly = d.Mandatory, d.ReadOnly
			out.Data = append(out.Data, f)
		}
		tables = append(tables, out)
	}
	if err != nil {
		return nil, fmt.Errorf("schema of the program: %w", err)
	}
	return tables, nil
}

// field returns the field, or sets err.
func (p *programField) field(err *error) Field {
	f := Field{Name: p.Name, ID: p.ID, Repeated: p.Repeated, Choices: p.Type.Choices, Bits: p.Type.Width}
	switch kind := p.Type.Type; kind {
	case "bool":
		f.Kind = Boolean
	case "string":
		f.Kind = Text
	case "float":
		f.Kind = Float
	case "bytes":
		f.Kind = Number
	default:
		bits, ok := strings.CutPrefix(kind, "uint")
		n, bad := strconv.Atoi(bits)
		if !ok || bad != nil {
			*err = fmt.Errorf("field %s: type is %q: allowed is bool, string, float, bytes or uint8 to uint64", p.Name, kind)
		}
		f.Kind, f.Bits = Number, n
	}
	f.Max = largest(f.Bits)
	return f
}
