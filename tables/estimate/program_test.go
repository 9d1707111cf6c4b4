package estimate

import (
	"math/bits"
	"math/rand/v2"
	"os"
	"testing"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
	"github.com/headgate/headgate/tables/buffer"
	"github.com/headgate/headgate/tests/tofino"
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

// program is a chip that runs the program's text with the entries of tab.
func program(t *testing.T, name string, tab *Tables) *tofino.Chip {
	t.Helper()
	chip, err := tofino.Load(os.DirFS("../../p4src"), name)
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := p4src.Tofino(name)
	if err != nil {
		t.Fatal(err)
	}
	info := &p4configv1.P4Info{}
	if err := prototext.Unmarshal(compiled.P4Info, info); err != nil {
		t.Fatal(err)
	}
	tables, actions := map[string]*p4configv1.Table{}, map[string]uint32{}
	for _, x := range info.GetTables() {
		tables[x.GetPreamble().GetName()] = x
	}
	for _, x := range info.GetActions() {
		actions[x.GetPreamble().GetName()] = x.GetPreamble().GetId()
	}
	for _, e := range tab.Entries() {
		var match []*p4v1.FieldMatch
		for _, m := range e.Match {
			for _, f := range tables[e.Table].GetMatchFields() {
				if f.GetName() != m.Field {
					continue
				}
				if m.Prefix == buffer.Exact {
					match = append(match, p4rtmsg.Exact(f.GetId(), m.Value))
				} else {
					match = append(match, p4rtmsg.LPM(f.GetId(), m.Value, int32(m.Prefix)))
				}
			}
		}
		entry := p4rtmsg.Entry(tables[e.Table].GetPreamble().GetId(), 0, p4rtmsg.Do(actions[e.Action.Name], e.Params...), match...)
		entry.IsDefaultAction = len(match) == 0
		if err := chip.Insert(entry); err != nil {
			t.Fatal(err)
		}
	}
	return chip
}

// TestProgramIsTheModel: the program's text, run as package tofino runs it, reports of random queues what
// Estimator has, bit by bit, whatever places hold that it has not written.
func TestProgramIsTheModel(t *testing.T) {
	cpu := map[string]uint32{"tofino1": 320, "tofino2": 0}
	for _, name := range p4src.Chips() {
		ports := []Port{{5, 100 * units.Gbps, 60_000}, {9, 400 * units.Gbps, 200_000}}
		tab := tables(t, Config{Chip: name, Ports: ports})
		chip := program(t, name, tab)
		rng := rand.New(rand.NewPCG(1, 2))
		chip.Undefined = rng.Uint64
		through := func(port uint32, queue, mode byte, now, depth uint32) tofino.Left {
			a, err := chip.Ingress(cpu[name], append([]byte{byte(port >> 1), byte(port)<<7 | queue<<4 | mode}, make([]byte, 60)...))
			if err != nil {
				t.Fatal(err)
			}
			l, err := chip.Egress(a, tofino.Departure{Time: uint64(now), Left: depth})
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		for i, p := range ports {
			walk := &trace{rng: rng, rate: p.Rate, cell: tab.cell, at: units.Millisecond}
			var queues [2]Estimator
			for step := range 400 {
				now, depth := walk.next()
				queue := rng.IntN(len(queues))
				if step > 300 && rng.IntN(4) == 0 {
					depth = rng.Uint32N(1 << 19)
				}
				through(p.Number, byte(queue), ids.PacketOutPort, now, depth)
				queues[queue].Departed(tab, now, depth)
				report, _, err := pollreport.Parse(through(p.Number, byte(queue), ids.PacketOutPoll, now, depth).Report[2:])
				if err != nil {
					t.Fatal(err)
				}
				e := &queues[queue]
				want := pollreport.Estimate{Queue: uint8(queue), Profile: uint8(i), Average: e.Average(), Gradient: e.Gradient(), Headroom: uint32(tab.Headroom(i, e.Gradient()))}
				if *report.Estimate != want {
					t.Fatalf("%s, port %d, step %d: %+v, the model has %+v", name, p.Number, step, *report.Estimate, want)
				}
			}
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
