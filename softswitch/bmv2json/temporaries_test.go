package bmv2json

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestTemporaries(t *testing.T) {
	field := func(name string) string { return `{"type": "field", "value": [ "scalars", "` + name + `" ]}` }
	const number = `{"type": "hexstr", "value": "0x1"}`
	call := func(op string, params ...string) string {
		return `{"op": "` + op + `", "parameters": [` + strings.Join(params, ", ") + `]}`
	}
	assign := func(to, from string) string { return call("assign", field(to), from) }
	jump := func(to string) string { return call("_jump", `{"type": "hexstr", "value": "`+to+`"}`) }
	unless := func(cond, to string) string {
		return call("_jump_if_zero", cond, `{"type": "hexstr", "value": "`+to+`"}`)
	}
	const own = `{"name": "scalars", "header_type": "s", "metadata": true}`
	for _, tt := range []struct {
		name    string
		actions [][]string // primitives of each action
		headers string
		rest    string
		want    string
	}{
		{name: "assigned, then read", actions: [][]string{{assign("a", number), assign("b", field("a"))}}, want: "a b"},
		{name: "read, then assigned", actions: [][]string{{assign("b", field("a")), assign("a", number)}}, want: "b"},
		{name: "read by its own assignment", actions: [][]string{{assign("a", field("a"))}}},
		{name: "read in another action", actions: [][]string{{assign("a", number)}, {assign("b", field("a"))}}, want: "b"},
		{name: "only read", actions: [][]string{{call("count", field("a"))}}},
		{name: "assigned on one way", actions: [][]string{{unless(number, "0x2"), assign("a", number), assign("b", field("a"))}}, want: "b"},
		{
			name:    "assigned on both ways",
			actions: [][]string{{unless(number, "0x3"), assign("a", number), jump("0x4"), assign("a", number), assign("b", field("a"))}}, want: "a b",
		},
		{name: "a condition", actions: [][]string{{unless(field("a"), "0x2"), assign("a", number)}}},
		{name: "unless it is assigned", actions: [][]string{{assign("a", number), unless(field("a"), "0x9")}}, want: "a"},
		{name: "backwards", actions: [][]string{{assign("a", number), jump("0x0")}}},
		{name: "a register that may not have the cell", actions: [][]string{{call("register_read", field("a"), number, number), assign("b", field("a"))}}, want: "b"},
		{name: "a key of a table", actions: [][]string{{assign("a", number), assign("b", number)}}, rest: `"calculations": [{"input": [` + field("a") + `]}]`, want: "b"},
		{name: "the whole header", actions: [][]string{{assign("a", number)}}, rest: `"calculations": [{"input": [{"type": "header", "value": "scalars"}]}]`},
		{name: "the whole header in an action", actions: [][]string{{assign("a", number), call("assign_header", `{"type": "header", "value": "scalars"}`)}}},
		{name: "a type of two headers", actions: [][]string{{assign("a", number)}}, headers: own + `, {"name": "h", "header_type": "s"}`},
		{name: "no metadata", actions: [][]string{{assign("a", number)}}, headers: `{"name": "scalars", "header_type": "s"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var actions []string
			for _, list := range tt.actions {
				actions = append(actions, `{"primitives": [`+strings.Join(list, ", ")+`]}`)
			}
			if tt.rest == "" {
				tt.rest = `"errors": []`
			}
			p, err := Parse([]byte(`{"actions": [` + strings.Join(actions, ", ") + `], "headers": [` + cmp.Or(tt.headers, own) + `], ` + tt.rest + `}`))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(slices.Sorted(maps.Keys(p.Temporaries())), " "); got != tt.want {
				t.Errorf("temporaries %q, want %q", got, tt.want)
			}
		})
	}
}
