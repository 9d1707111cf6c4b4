// Package standin makes, from the P4Info of any program, a program for BMv2 with the same
// control-plane objects and a pipeline that drops every packet. A P4Runtime server for BMv2
// programs, such as the embedded switch's, can then serve the P4Info of a program for a
// chip: everything but packets behaves as on the chip's switch.
package standin

import (
	"encoding/json"
	"fmt"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
)

type (
	object map[string]any
	list   []any
)

// Program returns the program as BMv2's JSON. The error names an object that BMv2 or this
// package cannot have: meters and value sets are not made.
func Program(info *p4configv1.P4Info) ([]byte, error) {
	if n := len(info.GetMeters()) + len(info.GetDirectMeters()) + len(info.GetValueSets()); n > 0 {
		return nil, fmt.Errorf("the P4Info has %d meters and value sets, want none", n)
	}
	b := &builder{info: info, actions: map[uint32]int{}, fields: list{}}
	b.declareActions()
	tables, err := b.tables()
	if err != nil {
		return nil, err
	}
	learns, err := b.digests()
	if err != nil {
		return nil, err
	}
	registers, err := b.registers()
	if err != nil {
		return nil, err
	}
	counters := b.counters()
	profiles := b.profiles()
	if n := len(b.fields); n == 0 {
		b.fields = append(b.fields, list{"unused", 8, false})
	}
	drop := object{
		"name": dropAction, "id": len(b.actionList), "runtime_data": list{},
		"primitives": list{object{"op": "mark_to_drop", "parameters": list{object{"type": "header", "value": "standard_metadata"}}}},
	}
	pipeline := func(name string, id int, init any, tables, profiles, calls list) object {
		return object{
			"name": name, "id": id, "init_table": init, "tables": tables, "action_profiles": profiles,
			"conditionals": list{}, "action_calls": calls,
		}
	}
	call := object{"name": "drop_all", "id": 0, "action_id": len(b.actionList), "next_node": nil}
	start := object{
		"name": "start", "id": 0, "parser_ops": list{}, "transition_key": list{},
		"transitions": list{object{"type": "default", "value": nil, "mask": nil, "next_state": nil}},
	}
	doc := object{
		"__meta__": object{"version": list{2, 23}, "compiler": "standin"},
		"header_types": list{
			object{"name": "standard_metadata", "id": 0, "fields": standardFields()},
			object{"name": "keys", "id": 1, "fields": b.fields},
		},
		"headers": list{
			object{"name": "standard_metadata", "id": 0, "header_type": "standard_metadata", "metadata": true, "pi_omit": true},
			object{"name": "keys", "id": 1, "header_type": "keys", "metadata": true, "pi_omit": true},
		},
		"header_stacks": list{}, "header_union_types": list{}, "header_unions": list{}, "header_union_stacks": list{},
		"field_lists": list{}, "errors": list{}, "enums": list{}, "parse_vsets": list{}, "meter_arrays": list{},
		"calculations": list{}, "checksums": list{}, "force_arith": list{}, "extern_instances": list{}, "field_aliases": list{},
		"parsers":         list{object{"name": "parser", "id": 0, "init_state": "start", "parse_states": list{start}}},
		"deparsers":       list{object{"name": "deparser", "id": 0, "order": list{}, "primitives": list{}}},
		"counter_arrays":  counters,
		"register_arrays": registers,
		"learn_lists":     learns,
		"actions":         append(b.actionList, drop),
		"pipelines": list{
			pipeline("ingress", 0, "drop_all", tables, profiles, list{call}),
			pipeline("egress", 1, nil, list{}, list{}, list{}),
		},
	}
	return json.Marshal(doc)
}

// dropAction drops; no program has an action of this name.
const dropAction = "standin.drop"

// standardFields are the fields of standard_metadata that BMv2 requires.
func standardFields() list {
	return list{
		list{"ingress_port", 9, false}, list{"egress_spec", 9, false}, list{"egress_port", 9, false},
		list{"instance_type", 32, false}, list{"packet_length", 32, false},
		list{"_padding", 5, false},
	}
}

// builder owns what is made.
type builder struct {
	info       *p4configv1.P4Info
	actions    map[uint32]int // P4Info's id → the JSON's
	actionList list
	fields     list // of the metadata that keys and digests are taken from
}

// field declares a field of metadata and returns what refers to it.
func (b *builder) field(bits int32) list {
	name := fmt.Sprintf("f%d", len(b.fields))
	b.fields = append(b.fields, list{name, bits, false})
	return list{"keys", name}
}

func (b *builder) declareActions() {
	b.actionList = list{}
	for i, a := range b.info.GetActions() {
		b.actions[a.GetPreamble().GetId()] = i
		params := list{}
		for _, p := range a.GetParams() {
			params = append(params, object{"name": p.GetName(), "bitwidth": p.GetBitwidth()})
		}
		b.actionList = append(b.actionList, object{
			"name": a.GetPreamble().GetName(), "id": i, "runtime_data": params, "primitives": list{},
		})
	}
}

func (b *builder) profiles() list {
	out := list{}
	for i, p := range b.info.GetActionProfiles() {
		o := object{"name": p.GetPreamble().GetName(), "id": i, "max_size": p.GetSize()}
		if p.GetWithSelector() {
			o["selector"] = object{"algo": "crc32", "input": list{object{"type": "field", "value": b.field(32)}}}
		}
		out = append(out, o)
	}
	return out
}

func (b *builder) counters() list {
	out := list{}
	for _, c := range b.info.GetCounters() {
		out = append(out, object{"name": c.GetPreamble().GetName(), "id": len(out), "size": c.GetSize(), "is_direct": false})
	}
	for _, c := range b.info.GetDirectCounters() {
		table := ""
		for _, t := range b.info.GetTables() {
			if t.GetPreamble().GetId() == c.GetDirectTableId() {
				table = t.GetPreamble().GetName()
			}
		}
		out = append(out, object{"name": c.GetPreamble().GetName(), "id": len(out), "is_direct": true, "binding": table})
	}
	return out
}

func (b *builder) registers() (list, error) {
	out := list{}
	for _, r := range b.info.GetRegisters() {
		bits, err := width(r.GetTypeSpec())
		if err != nil {
			return nil, fmt.Errorf("register %s: %w", r.GetPreamble().GetName(), err)
		}
		out = append(out, object{"name": r.GetPreamble().GetName(), "id": len(out), "size": r.GetSize(), "bitwidth": bits})
	}
	return out, nil
}
