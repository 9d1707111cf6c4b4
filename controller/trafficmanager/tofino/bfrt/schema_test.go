package bfrt

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/units"
)

// TestFixed checks the parts of both chips' schemas that the driver needs.
func TestFixed(t *testing.T) {
	for chip, groups := range map[string]uint64{"tofino1": 17, "tofino2": 8} {
		s, err := Load(chip, nil)
		if err != nil {
			t.Fatal(err)
		}
		ppg := s.Table("tm.ppg.cfg")
		if ppg == nil || ppg.ID != 0xff050030 || s.byID[0xff050030] != ppg || ppg.Scope != Pipe || !slices.Equal(ppg.Operations, []Operation{Read, Insert, Modify, Delete}) {
			t.Fatalf("%s: %+v", chip, ppg)
		}
		if f := named(ppg.Fields(ppg.Action("dev_port")), "pfc_skid_max_cells"); f == nil || f.ID != 3 || f.Bits != 32 {
			t.Errorf("%s: %+v", chip, f)
		}
		if f := named(ppg.Data, "dynamic_baf"); f == nil || f.ID != 16 || len(f.Choices) != 10 {
			t.Errorf("%s: %+v", chip, f)
		}
		if q := s.Table("tm.queue.buffer"); q.Key("pg_id").Max != groups || !q.Can(ReadDefault) || q.ActionOf(1).Name != "shared_pool" {
			t.Errorf("%s: %+v", chip, q)
		}
		// Tofino 2 has no ingress hysteresis of ports, so its last field has another number.
		if f := named(s.Table("tm.port.buffer").Data, "skid_limit_cells"); f.ID != map[string]uint32{"tofino1": 7, "tofino2": 6}[chip] {
			t.Errorf("%s: %+v", chip, f)
		}
	}
	if _, err := Load("tofino3", nil); err == nil || !strings.Contains(err.Error(), "tofino1 or tofino2") {
		t.Error(err)
	}
}

func unknown(o Operation) bool {
	return !slices.Contains([]Operation{Read, Insert, Modify, Delete, ReadDefault}, o)
}

// TestSound: the built-in schemas have the properties that Schema promises.
func TestSound(t *testing.T) {
	for _, chip := range []string{"tofino1", "tofino2"} {
		program, err := p4src.Tofino(chip)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Load(chip, program.BFRT)
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range s.Tables() {
			if table.Name == "" || table.ID == 0 || table.Scope != Device && table.Scope != Pipe || len(table.Operations) == 0 || slices.ContainsFunc(table.Operations, unknown) || s.Table(table.Name) != table || s.byID[table.ID] != table {
				t.Errorf("%s: %+v is not one of its own", chip, table)
			}
			groups := [][]Field{table.Keys, table.Data}
			for i := range table.Actions {
				a := &table.Actions[i]
				if a.Name == "" || table.Action(a.Name) != a || table.ActionOf(a.ID) != a {
					t.Errorf("%s: %s: action %+v", chip, table.Name, a)
				}
				groups = append(groups, table.Fields(a))
			}
			for _, g := range groups {
				for i := range g {
					f := &g[i]
					if f.Name == "" || !slices.Contains([]Kind{Number, Boolean, Text, Float}, f.Kind) || named(g, f.Name) != f || numbered(g, f.ID) != f || f.Repeated && (f.Kind != Number || f.Bits > 32) ||
						f.Kind == Number && (f.Bits < 1 || f.Bits > 64 || f.Min > f.Max || f.Max > largest(f.Bits)) {
						t.Errorf("%s: %s: field %+v", chip, table.Name, f)
					}
				}
			}
		}
	}
	for text, want := range map[string]string{
		`{`:                                    "unexpected EOF",
		`{"tables": [{"colour": 1}]}`:          "unknown field",
		`{"tables": [{"keys": [{"bit": 1}]}]}`: "unknown field",
	} {
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestProgram(t *testing.T) {
	info, err := os.ReadFile("testdata/program.json")
	if err != nil {
		t.Fatal(err)
	}
	all, err := parseProgram(info)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 || all[0].Name != "pipe.egress.maxqd.delay_filter" || all[0].Key("$LPF_INDEX").Max != 511 || all[0].Data[1].Kind != Float || !all[0].Data[0].Mandatory {
		t.Fatalf("%+v", all[0])
	}
	for text, want := range map[string]string{
		`[]`: "cannot unmarshal",
		`{"tables": [{"name": "a", "id": 1, "table_type": "Lpf", "key": [{"name": "k", "id": 1, "type": {"type": "int8"}}]}]}`:                  `"int8"`,
		`{"tables": [{"name": "a", "id": 1, "table_type": "Lpf", "data": [{"singleton": {"name": "k", "id": 1, "type": {"type": "uintx"}}}]}]}`: `"uintx"`,
	} {
		if _, err := parseProgram([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestEncodeErrors: the error for something outside the schema names field, value and allowed
// values.
func TestEncodeErrors(t *testing.T) {
	s, err := Load("tofino1", nil)
	if err != nil {
		t.Fatal(err)
	}
	port := Fields{{"dev_port", uint64(4)}}
	for name, c := range map[string]struct {
		op    Operation
		row   Row
		field string
		text  string
	}{
		"table":        {Modify, Row{Table: "tm.port.colour"}, "table", `"tm.port.colour"`},
		"field":        {Modify, Row{Table: "tm.port.flowcontrol", Key: port, Data: Fields{{"mode", "PFC"}}}, "mode", "mode_tx, mode_rx, cos_to_icos"},
		"choice":       {Modify, Row{Table: "tm.port.flowcontrol", Key: port, Data: Fields{{"mode_tx", "XON"}}}, "mode_tx", "XON: allowed is one of NONE, PFC, PAUSE"},
		"read-only":    {Modify, Row{Table: "tm.port.flowcontrol", Key: port, Data: Fields{{"mode_rx", "PFC"}}}, "mode_rx", "reading it"},
		"type":         {Modify, Row{Table: "tm.port.flowcontrol", Key: port, Data: Fields{{"mode_tx", uint64(1)}}}, "mode_tx", "one of"},
		"list":         {Modify, Row{Table: "tm.port.flowcontrol", Key: port, Data: Fields{{"cos_to_icos", []uint32{0, 9}}}}, "cos_to_icos", "[0 9]: allowed is a list, each 0 to 7"},
		"range":        {Modify, Row{Table: "tm.port.buffer", Key: port, Data: Fields{{"skid_limit_cells", uint64(286721)}}}, "skid_limit_cells", "286721: allowed is 0 to 286720"},
		"fresh":        {Modify, Row{Table: "tm.port.buffer", Key: port, Fresh: true}, "fresh", "false in a write"},
		"key range":    {Modify, Row{Table: "tm.port.buffer", Key: Fields{{"dev_port", uint64(512)}}}, "dev_port", "0 to 511"},
		"key field":    {Modify, Row{Table: "tm.port.buffer", Key: append(Fields{{"pipe", uint64(0)}}, port...)}, "key", "dev_port"},
		"no key":       {Modify, Row{Table: "tm.port.buffer"}, "key", "empty"},
		"default":      {Read, Row{Table: "tm.port.buffer", Default: true}, "key", "default entry"},
		"operation":    {Insert, Row{Table: "tm.port.buffer", Key: port}, "operation", "insert"},
		"action":       {Insert, Row{Table: "tm.ppg.cfg", Key: Fields{{"ppg_id", uint64(1)}}, Action: "port"}, "action", "port"},
		"null group":   {Insert, Row{Table: "tm.ppg.cfg", Key: Fields{{"ppg_id", uint64(0)}}}, "ppg_id", "1 to 255"},
		"left out":     {Insert, Row{Table: "tm.ppg.cfg", Key: Fields{{"ppg_id", uint64(1)}}, Action: "dev_port"}, "dev_port", "left out"},
		"all pipes":    {Modify, Row{Table: "tm.ppg.cfg", Pipe: AllPipes, Key: Fields{{"ppg_id", uint64(1)}}}, "pipe", "one pipe"},
		"other action": {Modify, Row{Table: "tm.queue.buffer", Key: Fields{{"pg_id", uint64(0)}, {"pg_queue", uint64(0)}}, Action: "buffer_only", Data: Fields{{"pool_max_cells", uint64(1)}}}, "pool_max_cells", "guaranteed_cells"},
	} {
		_, err := s.Encode(0, c.op, c.row)
		var f *units.FieldError
		if !errors.As(err, &f) || f.Field != c.field || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want field %s and %q", name, err, c.field, c.text)
		}
	}
}
