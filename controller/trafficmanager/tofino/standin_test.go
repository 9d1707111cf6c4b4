package tofino_test

import (
	"encoding/json"
	"fmt"
	"testing"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
)

type (
	jsonObject map[string]any
	jsonList   []any
)

// standIn makes, from the P4Info of any program, BMv2's JSON of a program with the same
// control-plane objects and a pipeline that drops every packet. The embedded switch's P4Runtime
// server can then serve the P4Info of a program for a chip: everything except packets behaves as on
// the chip's switch. Meters and value sets are not made.
func standIn(t *testing.T, info *p4configv1.P4Info) []byte {
	t.Helper()
	if n := len(info.GetMeters()) + len(info.GetDirectMeters()) + len(info.GetValueSets()); n > 0 {
		t.Fatalf("the P4Info has %d meters and value sets, want none", n)
	}
	b := &standInMaker{t: t, info: info, actions: map[uint32]int{}, fields: jsonList{}}
	actions, tables, learns, registers, counters, profiles := b.declareActions(), b.tables(), b.digests(), b.registers(), b.counters(), b.profiles()
	drop := jsonObject{
		"name": "standin.drop", "id": len(actions), "runtime_data": jsonList{},
		"primitives": jsonList{jsonObject{"op": "mark_to_drop", "parameters": jsonList{jsonObject{"type": "header", "value": "standard_metadata"}}}},
	}
	pipeline := func(name string, id int, init any, tables, profiles, calls jsonList) jsonObject {
		return jsonObject{
			"name": name, "id": id, "init_table": init, "tables": tables, "action_profiles": profiles,
			"conditionals": jsonList{}, "action_calls": calls,
		}
	}
	call := jsonObject{"name": "drop_all", "id": 0, "action_id": len(actions), "next_node": nil}
	start := jsonObject{
		"name": "start", "id": 0, "parser_ops": jsonList{}, "transition_key": jsonList{},
		"transitions": jsonList{jsonObject{"type": "default", "value": nil, "mask": nil, "next_state": nil}},
	}
	text, err := json.Marshal(jsonObject{
		"__meta__": jsonObject{"version": jsonList{2, 23}, "compiler": "standin"},
		"header_types": jsonList{
			// The fields of standard_metadata that BMv2 requires.
			jsonObject{"name": "standard_metadata", "id": 0, "fields": jsonList{
				jsonList{"ingress_port", 9, false}, jsonList{"egress_spec", 9, false}, jsonList{"egress_port", 9, false},
				jsonList{"instance_type", 32, false}, jsonList{"packet_length", 32, false},
				jsonList{"_padding", 5, false},
			}},
			jsonObject{"name": "keys", "id": 1, "fields": b.fields},
		},
		"headers": jsonList{
			jsonObject{"name": "standard_metadata", "id": 0, "header_type": "standard_metadata", "metadata": true, "pi_omit": true},
			jsonObject{"name": "keys", "id": 1, "header_type": "keys", "metadata": true, "pi_omit": true},
		},
		"header_stacks": jsonList{}, "header_union_types": jsonList{}, "header_unions": jsonList{}, "header_union_stacks": jsonList{},
		"field_lists": jsonList{}, "errors": jsonList{}, "enums": jsonList{}, "parse_vsets": jsonList{}, "meter_arrays": jsonList{},
		"calculations": jsonList{}, "checksums": jsonList{}, "force_arith": jsonList{}, "extern_instances": jsonList{}, "field_aliases": jsonList{},
		"parsers":         jsonList{jsonObject{"name": "parser", "id": 0, "init_state": "start", "parse_states": jsonList{start}}},
		"deparsers":       jsonList{jsonObject{"name": "deparser", "id": 0, "order": jsonList{}, "primitives": jsonList{}}},
		"counter_arrays":  counters,
		"register_arrays": registers,
		"learn_lists":     learns,
		"actions":         append(actions, drop),
		"pipelines": jsonList{
			pipeline("ingress", 0, "drop_all", tables, profiles, jsonList{call}),
			pipeline("egress", 1, nil, jsonList{}, jsonList{}, jsonList{}),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// standInMaker collects the parts of the program.
type standInMaker struct {
	t       *testing.T
	info    *p4configv1.P4Info
	actions map[uint32]int // P4Info's id → the JSON's
	fields  jsonList       // metadata from which keys and digests are taken
}

// field declares a metadata field and returns a reference to it.
func (b *standInMaker) field(bits int32) jsonList {
	name := fmt.Sprintf("f%d", len(b.fields))
	b.fields = append(b.fields, jsonList{name, bits, false})
	return jsonList{"keys", name}
}

func (b *standInMaker) declareActions() jsonList {
	out := jsonList{}
	for i, a := range b.info.GetActions() {
		b.actions[a.GetPreamble().GetId()] = i
		params := jsonList{}
		for _, p := range a.GetParams() {
			params = append(params, jsonObject{"name": p.GetName(), "bitwidth": p.GetBitwidth()})
		}
		out = append(out, jsonObject{"name": a.GetPreamble().GetName(), "id": i, "runtime_data": params, "primitives": jsonList{}})
	}
	return out
}

func (b *standInMaker) profiles() jsonList {
	out := jsonList{}
	for i, p := range b.info.GetActionProfiles() {
		o := jsonObject{"name": p.GetPreamble().GetName(), "id": i, "max_size": p.GetSize()}
		if p.GetWithSelector() {
			o["selector"] = jsonObject{"algo": "crc32", "input": jsonList{jsonObject{"type": "field", "value": b.field(32)}}}
		}
		out = append(out, o)
	}
	return out
}

func (b *standInMaker) counters() jsonList {
	out := jsonList{}
	for _, c := range b.info.GetCounters() {
		out = append(out, jsonObject{"name": c.GetPreamble().GetName(), "id": len(out), "size": c.GetSize(), "is_direct": false})
	}
	for _, c := range b.info.GetDirectCounters() {
		table := ""
		for _, t := range b.info.GetTables() {
			if t.GetPreamble().GetId() == c.GetDirectTableId() {
				table = t.GetPreamble().GetName()
			}
		}
		out = append(out, jsonObject{"name": c.GetPreamble().GetName(), "id": len(out), "is_direct": true, "binding": table})
	}
	return out
}

func (b *standInMaker) registers() jsonList {
	out := jsonList{}
	for _, r := range b.info.GetRegisters() {
		out = append(out, jsonObject{"name": r.GetPreamble().GetName(), "id": len(out), "size": r.GetSize(), "bitwidth": b.width(r.GetTypeSpec())})
	}
	return out
}

// matchTypes are BMv2's names of match kinds. The first that a table has decides on the table's
// type.
var matchTypes = []struct {
	kind        p4configv1.MatchField_MatchType
	key, lookup string
}{
	{p4configv1.MatchField_RANGE, "range", "range"},
	{p4configv1.MatchField_TERNARY, "ternary", "ternary"},
	{p4configv1.MatchField_OPTIONAL, "optional", "ternary"},
	{p4configv1.MatchField_LPM, "lpm", "lpm"},
	{p4configv1.MatchField_EXACT, "exact", "exact"},
}

func (b *standInMaker) tables() jsonList {
	out := jsonList{}
	for i, t := range b.info.GetTables() {
		out = append(out, b.table(i, t))
	}
	return out
}

func (b *standInMaker) table(id int, t *p4configv1.Table) jsonObject {
	keys, lookup := jsonList{}, "exact"
	rank := len(matchTypes)
	for _, f := range t.GetMatchFields() {
		for i, m := range matchTypes {
			if m.kind != f.GetMatchType() {
				continue
			}
			if i < rank {
				rank, lookup = i, m.lookup
			}
			keys = append(keys, jsonObject{"match_type": m.key, "name": f.GetName(), "target": b.field(f.GetBitwidth()), "mask": nil})
		}
	}
	if len(keys) != len(t.GetMatchFields()) {
		b.t.Fatalf("table %s matches as BMv2 does not: %v", t.GetPreamble().GetName(), t.GetMatchFields())
	}
	actionIDs, actions, next := jsonList{}, jsonList{}, jsonObject{}
	for _, r := range t.GetActionRefs() {
		at := b.actions[r.GetId()]
		name := b.info.GetActions()[at].GetPreamble().GetName()
		actionIDs, actions = append(actionIDs, at), append(actions, name)
		next[name] = nil
	}
	o := jsonObject{
		"name": t.GetPreamble().GetName(), "id": id, "key": keys, "match_type": lookup, "type": "simple",
		"max_size": t.GetSize(), "with_counters": b.counted(t), "support_timeout": t.GetIdleTimeoutBehavior() == p4configv1.Table_NOTIFY_CONTROL,
		"direct_meters": nil, "action_ids": actionIDs, "actions": actions, "base_default_next": nil, "next_tables": next,
	}
	if t.GetIsConstTable() {
		o["entries"] = jsonList{}
	}
	if def := t.GetConstDefaultActionId(); def != 0 {
		data := jsonList{} // P4Info does not have the arguments
		for range b.info.GetActions()[b.actions[def]].GetParams() {
			data = append(data, "0x0")
		}
		o["default_entry"] = jsonObject{"action_id": b.actions[def], "action_const": true, "action_data": data, "action_entry_const": true}
	}
	for _, p := range b.info.GetActionProfiles() {
		if p.GetPreamble().GetId() == t.GetImplementationId() {
			o["type"], o["action_profile"] = "indirect", p.GetPreamble().GetName()
			if p.GetWithSelector() {
				o["type"] = "indirect_ws"
			}
			delete(o, "default_entry")
		}
	}
	return o
}

// counted reports whether a table has a direct counter.
func (b *standInMaker) counted(t *p4configv1.Table) bool {
	for _, c := range b.info.GetDirectCounters() {
		if c.GetDirectTableId() == t.GetPreamble().GetId() {
			return true
		}
	}
	return false
}

// digests adds the digests of bit strings and of structs of bit strings.
func (b *standInMaker) digests() jsonList {
	out := jsonList{}
	for i, d := range b.info.GetDigests() {
		specs := []*p4configv1.P4DataTypeSpec{d.GetTypeSpec()}
		if s := d.GetTypeSpec().GetStruct(); s != nil {
			specs = nil
			for _, m := range b.info.GetTypeInfo().GetStructs()[s.GetName()].GetMembers() {
				specs = append(specs, m.GetTypeSpec())
			}
		}
		elements := jsonList{}
		for _, spec := range specs {
			elements = append(elements, jsonObject{"type": "field", "value": b.field(b.width(spec))})
		}
		out = append(out, jsonObject{"id": i + 1, "name": d.GetPreamble().GetName(), "elements": elements})
	}
	return out
}

func (b *standInMaker) width(spec *p4configv1.P4DataTypeSpec) int32 {
	s := spec.GetBitstring()
	if s.GetBit() == nil && s.GetInt() == nil {
		b.t.Fatalf("a type is %T, want bit<W> or int<W>", spec.GetTypeSpec())
	}
	return max(s.GetBit().GetBitwidth(), s.GetInt().GetBitwidth())
}
