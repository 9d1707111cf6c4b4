package main

import (
	"encoding/json"
	"path"
	"strings"
	"testing"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/encoding/prototext"
)

// schema is the part of a BF Runtime schema with names.
type schema struct {
	Tables []struct {
		Name    string `json:"name"`
		Key     []schemaField
		Actions []struct {
			Name string `json:"name"`
			Data []schemaField
		} `json:"action_specs"`
	} `json:"tables"`
	Learn []struct {
		Name   string        `json:"name"`
		Fields []schemaField `json:"fields"`
	} `json:"learn_filters"`
}

type schemaField struct {
	Name string `json:"name"`
	Type struct {
		Width int `json:"width"`
	} `json:"type"`
}

// TestSchemaNamesTheP4Info: the BF Runtime schema of each chip has every object of its P4Info (tables with their
// keys and actions, and externs), so that both interfaces of a switch describe the same program.
func TestSchemaNamesTheP4Info(t *testing.T) {
	for _, b := range committed(t) {
		data := b.file(bfrtFile)
		if data == nil {
			continue
		}
		var s schema
		if err := json.Unmarshal(data, &s); err != nil {
			t.Fatalf("%s: %v", path.Join(b.folder, bfrtFile), err)
		}
		widths := map[string]int{} // of "object", "object key", "object action param"
		for _, tb := range s.Tables {
			widths[tb.Name] = 0
			for _, k := range tb.Key {
				widths[tb.Name+" "+k.Name] = k.Type.Width
			}
			for _, a := range tb.Actions {
				widths[tb.Name+" "+a.Name] = 0
				for _, p := range a.Data {
					widths[tb.Name+" "+a.Name+" "+p.Name] = p.Type.Width
				}
			}
		}
		for _, l := range s.Learn {
			widths[l.Name] = 0
		}
		for _, name := range controlPlane(decode(t, b)) {
			if width, ok := widths["pipe."+name.text]; !ok || width != name.width {
				t.Errorf("%s: the P4Info has %q of %d bits; the schema has it: %v, with %d bits", b.name, name.text, name.width, ok, width)
			}
		}
	}
}

// object is something that the schema must name; only fields have a width.
type object struct {
	text  string
	width int
}

func controlPlane(info *p4configv1.P4Info) []object {
	var list []object
	actions := map[uint32]*p4configv1.Action{}
	for _, a := range info.GetActions() {
		actions[a.GetPreamble().GetId()] = a
	}
	for _, tb := range info.GetTables() {
		name := tb.GetPreamble().GetName()
		list = append(list, object{name, 0})
		for _, f := range tb.GetMatchFields() {
			list = append(list, object{name + " " + f.GetName(), int(f.GetBitwidth())})
		}
		if tb.GetImplementationId() != 0 { // its actions are the profile's
			continue
		}
		for _, ref := range tb.GetActionRefs() {
			a := actions[ref.GetId()]
			action := a.GetPreamble().GetName()
			if ref.GetScope() == p4configv1.ActionRef_DEFAULT_ONLY || action == "NoAction" {
				continue
			}
			list = append(list, object{name + " " + action, 0})
			for _, p := range a.GetParams() {
				list = append(list, object{name + " " + action + " " + p.GetName(), int(p.GetBitwidth())})
			}
		}
	}
	for kind, p := range externs(info) {
		if kind != "DIRECT_COUNTER" { // a part of its table
			list = append(list, object{p.GetName(), 0})
		}
	}
	return list
}

func TestWithFixedIDs(t *testing.T) {
	const text = `tables {
  preamble {
    id: 33619969
    name: "ingress.a"
    alias: "a"
  }
  implementation_id: 291000001
  direct_resource_ids: 319000001
}
action_profiles {
  preamble {
    id: 291000001
    name: "ingress.ecmp"
    alias: "ecmp"
  }
}
direct_counters {
  preamble {
    id: 319000001
    name: "ingress.flow_counter"
    alias: "flow_counter"
  }
}
registers {
  preamble {
    id: 370000001
    name: "egress.depth_0"
    alias: "depth_0"
  }
}
`
	v1model := &p4configv1.P4Info{
		ActionProfiles: []*p4configv1.ActionProfile{{Preamble: &p4configv1.Preamble{Id: 0x11020001, Name: "ingress.ecmp"}}},
		DirectCounters: []*p4configv1.DirectCounter{{Preamble: &p4configv1.Preamble{Id: 0x13090001, Name: "ingress.flow_counter"}}},
	}
	fixed, err := withFixedIDs([]byte(text), v1model, map[string]uint32{"ID_REGISTER_DEPTH_0": 0x16070010})
	if err != nil {
		t.Fatal(err)
	}
	var info p4configv1.P4Info
	if err := prototext.Unmarshal(fixed, &info); err != nil {
		t.Fatal(err)
	}
	table := info.GetTables()[0]
	for what, id := range map[string][2]uint32{
		"table":           {table.GetPreamble().GetId(), 33619969},
		"implementation":  {table.GetImplementationId(), 0x11020001},
		"direct resource": {table.GetDirectResourceIds()[0], 0x13090001},
		"profile":         {info.GetActionProfiles()[0].GetPreamble().GetId(), 0x11020001},
		"direct counter":  {info.GetDirectCounters()[0].GetPreamble().GetId(), 0x13090001},
		"register":        {info.GetRegisters()[0].GetPreamble().GetId(), 0x16070010},
	} {
		if id[0] != id[1] {
			t.Errorf("%s has id %#x, want %#x", what, id[0], id[1])
		}
	}
	if _, err := withFixedIDs([]byte(text), v1model, nil); err == nil || !strings.Contains(err.Error(), "ID_REGISTER_DEPTH_0") {
		t.Errorf("a register without an id: %v, want an error that names ID_REGISTER_DEPTH_0", err)
	}
}

func TestUnknownWarnings(t *testing.T) {
	const known = "warning: No known conversion to standard P4Info for 'Lpf' extern type\n" +
		"warning: Parser state min_parse_depth_accept_loop will be unrolled up to 4 times due to @pragma max_loop_depth.\n"
	const other = "tna/a.p4(3): [--Wwarn=uninitialized-use] warning: sum may be uninitialized"
	if got := unknownWarnings(known); got != "" {
		t.Errorf("harmless warnings are reported: %q", got)
	}
	if got := unknownWarnings(known + other); got != other {
		t.Errorf("got %q, want %q", got, other)
	}
}

func TestWithoutExterns(t *testing.T) {
	const text = "pkg_info {\n  name: \"x\"\n}\nexterns {\n  extern_type_id: 144\n  instances {\n    info {\n    }\n  }\n}\ntype_info {\n}\n"
	if got, want := string(withoutExterns([]byte(text))), "pkg_info {\n  name: \"x\"\n}\ntype_info {\n}\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReplacePart(t *testing.T) {
	const text = "a\n<!-- generated: x -->\nold\n<!-- end of generated part -->\nb\n"
	got, err := replacePart(text, "x", "new\n")
	if want := "a\n<!-- generated: x -->\nnew\n<!-- end of generated part -->\nb\n"; err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	for part, text := range map[string]string{"y": text, "x": "<!-- generated: x -->\nold\n"} {
		if _, err := replacePart(text, part, ""); err == nil || !strings.Contains(err.Error(), "has no line") {
			t.Errorf("part %s of %q: error %v", part, text, err)
		}
	}
}

// TestSourceFiles follows includes as the preprocessor does.
func TestSourceFiles(t *testing.T) {
	for main, want := range map[string]string{"headgate_v1model.p4": "v1model/target.p4", tofinoMain: "tna/target.p4"} {
		names, err := sourceFiles(root, main)
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(names, " ")
		for _, file := range []string{main, want, "shared/parser.p4"} { // the last one by a target's parser
			if !strings.Contains(all, file) {
				t.Errorf("%s: %s is not among %s", main, file, all)
			}
		}
		for _, other := range []string{"v1model/", "tna/"} {
			if !strings.HasPrefix(want, other) && strings.Contains(all, other) {
				t.Errorf("%s includes files of %s: %s", main, other, all)
			}
		}
	}
}

func TestSourcesThatChange(t *testing.T) {
	b := committed(t)[0]
	b.sources = "other"
	if _, err := b.digestLines(root); err == nil || !strings.Contains(err.Error(), "changed while") {
		t.Errorf("sources that changed while they were compiled: error %v", err)
	}
}

func TestWithoutSnapshots(t *testing.T) {
	const schema = `{"schema_version": "1.0.0", "tables": [{"name": "pipe.a", "id": 3000000001}, {"name": "pipe.snapshot.cfg"}], "learn_filters": []}`
	got, err := withoutSnapshots([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	want := `{
 "schema_version": "1.0.0",
 "tables": [
  {
   "name": "pipe.a",
   "id": 3000000001
  }
 ],
 "learn_filters": []
}
`
	if string(got) != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	for _, bad := range []string{`{`, `{"other": 1}`, `{"tables": [1]}`} {
		if _, err := withoutSnapshots([]byte(bad)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}
