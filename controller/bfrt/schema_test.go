package bfrt

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// TestFixed looks at what the driver needs of both chips.
func TestFixed(t *testing.T) {
	for chip, groups := range map[string]uint64{"tofino1": 17, "tofino2": 8} {
		s, err := Fixed(chip)
		if err != nil {
			t.Fatal(err)
		}
		ppg := s.Table("tm.ppg.cfg")
		if ppg == nil || ppg.ID != 0xff050030 || s.TableOf(0xff050030) != ppg || ppg.Scope != Pipe || ppg.Operations != CanRead|CanInsert|CanModify|CanDelete {
			t.Fatalf("%s: %+v", chip, ppg)
		}
		if f := named(ppg.Fields(ppg.Action("dev_port")), "pfc_skid_max_cells"); f == nil || f.ID != 3 || f.Bits != 32 {
			t.Errorf("%s: %+v", chip, f)
		}
		if f := named(ppg.Data, "dynamic_baf"); f == nil || f.ID != 16 || len(f.Choices) != 10 {
			t.Errorf("%s: %+v", chip, f)
		}
		if q := s.Table("tm.queue.buffer"); q.Key("pg_id").Max != groups || q.Operations&CanReadDefault == 0 || q.ActionOf(1).Name != "shared_pool" {
			t.Errorf("%s: %+v", chip, q)
		}
		// Tofino 2 has no ingress hysteresis of ports, and so another number for the last field.
		if f := named(s.Table("tm.port.buffer").Data, "skid_limit_cells"); f.ID != map[string]uint32{"tofino1": 7, "tofino2": 6}[chip] {
			t.Errorf("%s: %+v", chip, f)
		}
	}
	if _, err := Fixed("tofino3"); err == nil || !strings.Contains(err.Error(), "tofino1 or tofino2") {
		t.Error(err)
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{`: "unexpected EOF",
		`{"tables": [{"name": "a", "id": 1, "scope": "chip"}]}`:                                                                                                                                          `scope is "chip": allowed is device or pipe`,
		`{"tables": [{"name": "a", "id": 1, "scope": "pipe", "operations": ["clear"]}]}`:                                                                                                                 `operation is "clear"`,
		`{"tables": [{"name": "a", "scope": "pipe"}]}`:                                                                                                                                                   "identifier 0",
		`{"tables": [{"name": "a", "id": 1, "scope": "pipe", "colour": 1}]}`:                                                                                                                             "unknown field",
		`{"tables": [{"name": "a", "id": 1, "scope": "pipe", "keys": [{"name": "k", "id": 1, "type": "float"}]}]}`:                                                                                       `type is "float"`,
		`{"tables": [{"name": "a", "id": 1, "scope": "pipe", "keys": [{"name": "k", "id": 1, "type": "uint"}]}]}`:                                                                                        "0 bits",
		`{"tables": [{"name": "a", "id": 1, "scope": "pipe"}, {"name": "b", "id": 1, "scope": "pipe"}]}`:                                                                                                 `table "b" with identifier 1`,
		`{"tables": [{"name": "a", "id": 1, "scope": "pipe", "actions": [{"name": "x", "id": 0}]}]}`:                                                                                                     `action "x"`,
		`{"tables": [{"name": "a", "id": 1, "scope": "pipe", "data": [{"name": "d", "id": 1, "type": "bool"}], "actions": [{"name": "x", "id": 1, "data": [{"name": "e", "id": 1, "type": "bool"}]}]}]}`: `field "d" with identifier 1`,
		`{"tables": [{"name": "a", "id": 1, "scope": "pipe", "data": [{"name": "d", "id": 1, "type": "string", "repeated": true}]}]}`:                                                                    "a list of other than numbers",
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
	s, err := Program(info)
	if err != nil {
		t.Fatal(err)
	}
	all := s.Tables()
	if len(all) != 1 || all[0].Name != "pipe.egress.maxqd.delay_filter" || all[0].Key("$LPF_INDEX").Max != 511 || all[0].Data[1].Kind != Float || !all[0].Data[0].Mandatory {
		t.Fatalf("%+v", all[0])
	}
	if _, err := Merge(s, s); err == nil {
		t.Error("a table twice")
	}
	for text, want := range map[string]string{
		`[]`: "cannot unmarshal",
		`{"tables": [{"name": "a", "id": 1, "table_type": "Lpf", "key": [{"name": "k", "id": 1, "type": {"type": "int8"}}]}]}`:                       `"int8"`,
		`{"tables": [{"name": "a", "id": 1, "table_type": "Lpf", "key": [{"name": "k", "id": 1, "match_type": "LPM", "type": {"type": "uint8"}}]}]}`: `match_type is "LPM"`,
		`{"tables": [{"name": "a", "id": 1, "table_type": "Lpf", "data": [{"singleton": {"name": "k", "id": 1, "type": {"type": "uintx"}}}]}]}`:      `"uintx"`,
	} {
		if _, err := Program([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestEncodeErrors names field, value and what is allowed for what the schema does not have.
func TestEncodeErrors(t *testing.T) {
	s, err := Fixed("tofino1")
	if err != nil {
		t.Fatal(err)
	}
	port := Fields{{"dev_port", Uint(4)}}
	for name, c := range map[string]struct {
		op    Operation
		row   Row
		field string
		text  string
	}{
		"table":        {Modify, Row{Table: "tm.port.colour"}, "table", `"tm.port.colour"`},
		"field":        {Modify, Row{Table: "tm.port.flowcontrol", Key: port, Data: Fields{{"mode", String("PFC")}}}, "mode", "mode_tx, mode_rx, cos_to_icos"},
		"choice":       {Modify, Row{Table: "tm.port.flowcontrol", Key: port, Data: Fields{{"mode_tx", String("XON")}}}, "mode_tx", "XON: allowed is one of NONE, PFC, PAUSE"},
		"read-only":    {Modify, Row{Table: "tm.port.flowcontrol", Key: port, Data: Fields{{"mode_rx", String("PFC")}}}, "mode_rx", "reading it"},
		"type":         {Modify, Row{Table: "tm.port.flowcontrol", Key: port, Data: Fields{{"mode_tx", Uint(1)}}}, "mode_tx", "one of"},
		"list":         {Modify, Row{Table: "tm.port.flowcontrol", Key: port, Data: Fields{{"cos_to_icos", Uints(0, 9)}}}, "cos_to_icos", "[0,9]: allowed is a list, each 0 to 7"},
		"range":        {Modify, Row{Table: "tm.port.buffer", Key: port, Data: Fields{{"skid_limit_cells", Uint(286721)}}}, "skid_limit_cells", "286721: allowed is 0 to 286720"},
		"fresh":        {Modify, Row{Table: "tm.port.buffer", Key: port, Fresh: true}, "fresh", "false in a write"},
		"key range":    {Modify, Row{Table: "tm.port.buffer", Key: Fields{{"dev_port", Uint(512)}}}, "dev_port", "0 to 511"},
		"key field":    {Modify, Row{Table: "tm.port.buffer", Key: append(Fields{{"pipe", Uint(0)}}, port...)}, "key", "dev_port"},
		"no key":       {Modify, Row{Table: "tm.port.buffer"}, "key", "empty"},
		"default":      {0, Row{Table: "tm.port.buffer", Default: true}, "key", "default entry"},
		"operation":    {Insert, Row{Table: "tm.port.buffer", Key: port}, "operation", "insert"},
		"action":       {Insert, Row{Table: "tm.ppg.cfg", Key: Fields{{"ppg_id", Uint(1)}}, Action: "port"}, "action", "port"},
		"null group":   {Insert, Row{Table: "tm.ppg.cfg", Key: Fields{{"ppg_id", Uint(0)}}}, "ppg_id", "1 to 255"},
		"left out":     {Insert, Row{Table: "tm.ppg.cfg", Key: Fields{{"ppg_id", Uint(1)}}, Action: "dev_port"}, "dev_port", "left out"},
		"all pipes":    {Modify, Row{Table: "tm.ppg.cfg", Pipe: AllPipes, Key: Fields{{"ppg_id", Uint(1)}}}, "pipe", "one pipe"},
		"other action": {Modify, Row{Table: "tm.queue.buffer", Key: Fields{{"pg_id", Uint(0)}, {"pg_queue", Uint(0)}}, Action: "buffer_only", Data: Fields{{"pool_max_cells", Uint(1)}}}, "pool_max_cells", "guaranteed_cells"},
	} {
		_, err := s.encode(0, c.op, c.row)
		var f *FieldError
		if !errors.As(err, &f) || f.Field != c.field || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want field %s and %q", name, err, c.field, c.text)
		}
	}
}

func TestValues(t *testing.T) {
	for want, v := range map[string]Value{"7": Uint(7), "true": Bool(true), "false": Bool(false), "PFC": String("PFC"), "0.5": Real(0.5), "[1,2]": Uints(1, 2), "[]": Uints(), "nothing": {}} {
		if v.String() != want {
			t.Errorf("%v, want %s", v, want)
		}
	}
	for i, a := range []Value{Uint(7), Uint(1), Bool(true), String("1"), Real(1), Uints(1), Uints(1, 2), {}} {
		for j, b := range []Value{Uint(7), Uint(1), Bool(true), String("1"), Real(1), Uints(1), Uints(1, 2), {}} {
			if (a == b) != (i == j) {
				t.Errorf("%v == %v is %v", a, b, a == b)
			}
		}
	}
	if Uint(3).Text() != "" || String("3").Uint() != 0 || Bool(true).Uints() != nil || Uint(1).Bool() {
		t.Error("values of another kind are not zero")
	}
}

// FuzzSchemas feeds both parsers; what they take must hold what Schema promises.
func FuzzSchemas(f *testing.F) {
	for _, seed := range []string{
		`{"tables": [{"name": "tm.cfg", "id": 9, "size": 1, "scope": "device", "operations": ["read", "modify"], "keys": [], "data": [{"name": "b", "id": 1, "type": "uint", "bits": 8}]}]}`,
		`{"tables": [{"name": "q", "id": 7, "scope": "pipe", "operations": ["insert", "delete"], "default": true, "actions": [{"name": "x", "id": 1, "data": [{"name": "p", "id": 4, "type": "string", "choices": ["A"]}]}]}]}`,
		`{"tables": [{"name": "f", "id": 5, "table_type": "Lpf", "size": 512, "key": [{"id": 1, "name": "$LPF_INDEX", "match_type": "Exact", "type": {"type": "uint32"}}], "data": [{"mandatory": true, "singleton": {"id": 2, "name": "t", "type": {"type": "float"}}}]}]}`,
		`{"tables": [{"name": "f", "id": 5, "table_type": "Lpf", "key": [{"id": 1, "name": "k", "match_type": "Exact", "type": {"type": "bytes", "width": 65}}]}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Add([]byte(`{"tables": [{"name": "a", "id": 1, "scope": "pipe", "keys": [{"name": "k", "id": 1, "type": "uint", "bits": 64, "max": 1}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, parser := range []func([]byte) (*Schema, error){parse, Program} {
			s, err := parser(b)
			if err != nil {
				continue
			}
			for _, table := range s.Tables() {
				if s.Table(table.Name) != table || s.TableOf(table.ID) != table {
					t.Fatalf("table %q is not found", table.Name)
				}
				for _, field := range append(table.Keys, table.Data...) {
					if field.Kind == Number && (field.Bits < 1 || field.Bits > 64 || field.Max > largest(field.Bits)) {
						t.Fatalf("%+v", field)
					}
					_ = field.Allowed()
				}
			}
		}
	})
}
