package estimate

import (
	"math/bits"
	"testing"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/tables/buffer"
	"github.com/headgate/headgate/units"
)

// Every entry is one that the compiled program takes: its table, fields, action and widths.
func TestEntriesFitTheProgram(t *testing.T) {
	for _, chip := range p4src.Chips() {
		program, err := p4src.Tofino(chip)
		if err != nil {
			t.Fatal(err)
		}
		info := &p4configv1.P4Info{}
		if err := (prototext.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(program.P4Info, info); err != nil {
			t.Fatal(err)
		}
		tables, actions := map[string]*p4configv1.Table{}, map[string]*p4configv1.Action{}
		for _, x := range info.GetTables() {
			tables[x.GetPreamble().GetName()] = x
		}
		for _, x := range info.GetActions() {
			actions[x.GetPreamble().GetName()] = x
		}
		tab, err := New(Config{Chip: chip, Ports: []Port{{1, 100 * units.Gbps, 60_000}, {511, 400 * units.Gbps, 200_000}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range tab.Entries() {
			checkEntry(t, chip, e, tables[e.Table], actions[e.Name])
		}
	}
}

func checkEntry(t *testing.T, chip string, e buffer.Entry, table *p4configv1.Table, action *p4configv1.Action) {
	t.Helper()
	if table == nil || action == nil {
		t.Fatalf("%s: the program lacks %s or %s", chip, e.Table, e.Name)
	}
	given := map[string]buffer.Match{}
	for _, m := range e.Match {
		given[m.Field] = m
	}
	for _, f := range table.GetMatchFields() {
		m, ok := given[f.GetName()]
		delete(given, f.GetName())
		exact := f.GetMatchType() == p4configv1.MatchField_EXACT
		switch {
		case !ok && exact:
			t.Fatalf("%s: %+v has no %s", chip, e, f.GetName())
		case !ok:
		case exact != (m.Prefix == buffer.Exact) || bits.Len64(m.Value) > int(f.GetBitwidth()) || m.Prefix > int(f.GetBitwidth()):
			t.Fatalf("%s: %+v does not fit field %v", chip, e, f)
		case !exact && m.Value&(1<<(int(f.GetBitwidth())-m.Prefix)-1) != 0:
			t.Fatalf("%s: %+v has bits behind its prefix", chip, e)
		}
	}
	if len(given) != 0 {
		t.Fatalf("%s: %+v: the table has no field of %v", chip, e, given)
	}
	if len(action.GetParams()) != len(e.Params) {
		t.Fatalf("%s: %+v has %d parameters, want %d", chip, e, len(e.Params), len(action.GetParams()))
	}
	for i, p := range action.GetParams() {
		if bits.Len64(e.Params[i]) > int(p.GetBitwidth()) {
			t.Fatalf("%s: %+v does not fit parameter %v", chip, e, p)
		}
	}
	for _, ref := range table.GetActionRefs() {
		if ref.GetId() == action.GetPreamble().GetId() {
			return
		}
	}
	t.Fatalf("%s: %s has no action %s", chip, e.Table, e.Name)
}
