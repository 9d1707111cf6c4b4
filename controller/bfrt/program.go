package bfrt

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The form of the bf-rt.json that p4c writes for a program (p4c, backends/tofino/bf-p4c/
// control-plane/bfruntime.cpp), as far as needed.
type (
	programType struct {
		Type    string
		Width   int
		Choices []string
	}
	programField struct {
		ID       uint32
		Name     string
		Type     programType
		Repeated bool
		Match    string `json:"match_type"`
	}
	programData struct {
		Mandatory bool
		ReadOnly  bool `json:"read_only"`
		Singleton programField
	}
	programTable struct {
		Name string
		ID   uint32
		Type string `json:"table_type"`
		Size int
		Key  []programField
		Data []programData
	}
	program struct{ Tables []programTable }
)

// FilterTable is the type of a program's low-pass filters.
const FilterTable = "Lpf"

// Program returns the schema of a program's low-pass filters from its bf-rt.json: what of
// a program P4Runtime does not reach. Entries of a filter are there from the start and are
// modified; they belong to the device.
func Program(info []byte) (*Schema, error) {
	var in program
	if err := json.Unmarshal(info, &in); err != nil {
		return nil, fmt.Errorf("schema of the program: %w", err)
	}
	var tables []*Table
	for _, t := range in.Tables {
		if t.Type != FilterTable {
			continue
		}
		out := &Table{Name: t.Name, ID: t.ID, Size: t.Size, Scope: Device, Operations: CanRead | CanModify}
		for _, k := range t.Key {
			f, err := k.field()
			if err != nil {
				return nil, fmt.Errorf("schema of the program: table %s: %w", t.Name, err)
			}
			if k.Match != "Exact" {
				return nil, fmt.Errorf("schema of the program: table %s: field %s: match_type is %q: allowed is Exact", t.Name, k.Name, k.Match)
			}
			if t.Size > 0 {
				f.Max = min(f.Max, uint64(t.Size)-1) // the key of a filter is its index
			}
			out.Keys = append(out.Keys, f)
		}
		for _, d := range t.Data {
			f, err := d.Singleton.field()
			if err != nil {
				return nil, fmt.Errorf("schema of the program: table %s: %w", t.Name, err)
			}
			f.Mandatory, f.ReadOnly = d.Mandatory, d.ReadOnly
			out.Data = append(out.Data, f)
		}
		tables = append(tables, out)
	}
	return newSchema(tables)
}

func (p *programField) field() (Field, error) {
	f := Field{Name: p.Name, ID: p.ID, Repeated: p.Repeated}
	switch t := p.Type; {
	case t.Type == "bool":
		f.Kind = Boolean
	case t.Type == "string":
		f.Kind, f.Choices = Text, t.Choices
	case t.Type == "float":
		f.Kind = Float
	case t.Type == "bytes":
		f.Kind, f.Bits = Number, t.Width
	case strings.HasPrefix(t.Type, "uint"):
		f.Kind = Number
		if _, err := fmt.Sscanf(t.Type, "uint%d", &f.Bits); err != nil {
			return f, fmt.Errorf("field %s: type is %q: allowed is uint8 to uint64", p.Name, t.Type)
		}
	default:
		return f, fmt.Errorf("field %s: type is %q: allowed is bool, string, float, bytes or uint8 to uint64", p.Name, t.Type)
	}
	f.Max = largest(f.Bits)
	return f, nil
}
