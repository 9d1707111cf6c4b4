package bfrt

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

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
