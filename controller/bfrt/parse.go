package bfrt

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"math"
)

// schemas are the tables of the traffic manager and of ports that the controller uses, from
// the public driver's bf_rt_tm_tf{1,2}.json and bf_rt_port_tf{1,2}.json.
//
//go:embed schemas/tofino1.json schemas/tofino2.json
var schemas embed.FS

// Fixed returns the schema of a chip's fixed tables. Chips are "tofino1" and "tofino2".
func Fixed(chip string) (*Schema, error) {
	b, err := schemas.ReadFile("schemas/" + chip + ".json")
	if err != nil {
		return nil, fmt.Errorf("chip is %q: allowed is tofino1 or tofino2", chip)
	}
	return parse(b)
}

// The form of schemas/*.json.
type (
	fileField struct {
		Name      string
		ID        uint32
		Type      string // uint, bool, string
		Bits      int    // of uint
		Min       uint64
		Max       *uint64 // none: what Bits allow
		Choices   []string
		Repeated  bool
		ReadOnly  bool `json:"read_only"`
		Mandatory bool
		Insert    bool
	}
	fileAction struct {
		Name string
		ID   uint32
		Data []fileField
	}
	fileTable struct {
		Name       string
		ID         uint32
		Size       int
		Scope      string // device, pipe
		Operations []string
		Default    bool // what a new entry holds can be read
		Keys, Data []fileField
		Actions    []fileAction
	}
	file struct{ Tables []fileTable }
)

var (
	scopes     = map[string]Scope{"device": Device, "pipe": Pipe}
	operations = map[string]Operations{"read": CanRead, "insert": CanInsert, "modify": CanModify, "delete": CanDelete}
	kinds      = map[string]Kind{"uint": Number, "bool": Boolean, "string": Text}
)

func parse(b []byte) (*Schema, error) {
	var in file
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	var tables []*Table
	for _, t := range in.Tables {
		out := &Table{Name: t.Name, ID: t.ID, Size: t.Size, Scope: scopes[t.Scope]}
		if out.Scope == 0 {
			return nil, fmt.Errorf("schema: table %s: scope is %q: allowed is device or pipe", t.Name, t.Scope)
		}
		for _, o := range t.Operations {
			if operations[o] == 0 {
				return nil, fmt.Errorf("schema: table %s: operation is %q: allowed is read, insert, modify or delete", t.Name, o)
			}
			out.Operations |= operations[o]
		}
		if t.Default {
			out.Operations |= CanReadDefault
		}
		var err error
		if out.Keys, err = fields(t.Keys); err == nil {
			out.Data, err = fields(t.Data)
		}
		for _, a := range t.Actions {
			action := Action{Name: a.Name, ID: a.ID}
			if err == nil {
				action.Data, err = fields(a.Data)
			}
			out.Actions = append(out.Actions, action)
		}
		if err != nil {
			return nil, fmt.Errorf("schema: table %s: %w", t.Name, err)
		}
		tables = append(tables, out)
	}
	return newSchema(tables)
}

func fields(in []fileField) ([]Field, error) {
	var out []Field
	for _, f := range in {
		kind := kinds[f.Type]
		if kind == 0 {
			return nil, fmt.Errorf("field %s: type is %q: allowed is uint, bool or string", f.Name, f.Type)
		}
		g := Field{
			Name: f.Name, ID: f.ID, Kind: kind, Bits: f.Bits, Min: f.Min, Max: largest(f.Bits), Choices: f.Choices,
			Repeated: f.Repeated, ReadOnly: f.ReadOnly, Mandatory: f.Mandatory, Insert: f.Insert,
		}
		if f.Max != nil {
			g.Max = min(g.Max, *f.Max)
		}
		out = append(out, g)
	}
	return out, nil
}

// largest returns the largest number of some bits.
func largest(bits int) uint64 {
	if bits <= 0 || bits >= 64 {
		return math.MaxUint64
	}
	return 1<<uint(bits) - 1
}
