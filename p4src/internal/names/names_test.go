package names

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/headgate/headgate/p4src"
)

func parse(t *testing.T, text []byte) *p4configv1.P4Info {
	t.Helper()
	var info p4configv1.P4Info
	if err := prototext.Unmarshal(text, &info); err != nil {
		t.Fatal(err)
	}
	return &info
}

// TestEveryDifferenceHasAReason compares the committed P4Infos of v1model and of each chip.
func TestEveryDifferenceHasAReason(t *testing.T) {
	v1 := parse(t, p4src.P4Info)
	for _, chip := range p4src.Chips() {
		program, err := p4src.Tofino(chip)
		if err != nil {
			t.Fatal(err)
		}
		unlisted, gone := unexplained(chip, compare(v1, parse(t, program.P4Info)), known(t))
		for _, d := range unlisted {
			t.Errorf("%s: docs/targets/tofino.md has no reason for: %+v", chip, d)
		}
		for _, d := range gone {
			t.Errorf("%s: docs/targets/tofino.md has a difference that is none: %+v", chip, d)
		}
	}
	for _, r := range known(t) {
		if r.Why == "" || len(r.Differences) == 0 {
			t.Errorf("a reason needs words and differences: %+v", r)
		}
	}
}

func TestCompare(t *testing.T) {
	const left = `
tables {
  preamble { id: 1 name: "a.t" }
  match_fields { id: 1 name: "k" bitwidth: 16 match_type: RANGE }
  action_refs { id: 5 }
  size: 10
}
tables { preamble { id: 2 name: "a.gone" } size: 1 }
actions { preamble { id: 5 name: "a.act" } params { id: 1 name: "p" bitwidth: 9 } }
digests { preamble { id: 9 name: "d" } type_spec { struct { name: "s" } } }
type_info { structs { key: "s" value { members { name: "f" type_spec { bitstring { bit { bitwidth: 32 } } } } } } }
`
	for _, tc := range []struct {
		name, right string
		want        []Difference
	}{
		{"the same", left, nil},
		{"width, kind, action and size", `
tables {
  preamble { id: 1 name: "a.t" }
  match_fields { id: 1 name: "k" bitwidth: 20 match_type: TERNARY }
  action_refs { id: 6 }
  size: 10
  idle_timeout_behavior: NOTIFY_CONTROL
}
tables { preamble { id: 3 name: "a.gone" } size: 1 }
actions { preamble { id: 5 name: "a.act" } params { id: 2 name: "p" bitwidth: 9 } }
actions { preamble { id: 6 name: "a.other" } }
digests { preamble { id: 9 name: "d" } type_spec { struct { name: "s" } } }
type_info { structs { key: "s" value { members { name: "f" type_spec { bitstring { bit { bitwidth: 16 } } } } } } }
`, []Difference{
			{"action a.act", "parameter p", "number 1, 9 bits", "number 2, 9 bits"},
			{"action a.other", "", absent, "yes"},
			{"digest d", "field f", "32 bits", "16 bits"},
			{"table a.gone", "id", "0x00000002", "0x00000003"},
			{"table a.t", "action a.act", "yes", absent},
			{"table a.t", "action a.other", absent, "yes"},
			{"table a.t", "idle timeout", absent, "yes"},
			{"table a.t", "key k", "number 1, range, 16 bits", "number 1, ternary, 20 bits"},
		}},
		{"one missing", `
tables {
  preamble { id: 1 name: "a.t" }
  match_fields { id: 1 name: "k" bitwidth: 16 match_type: RANGE }
  action_refs { id: 5 }
  size: 10
}
actions { preamble { id: 5 name: "a.act" } params { id: 1 name: "p" bitwidth: 9 } }
digests { preamble { id: 9 name: "d" } type_spec { struct { name: "s" } } }
type_info { structs { key: "s" value { members { name: "f" type_spec { bitstring { bit { bitwidth: 32 } } } } } } }
`, []Difference{{"table a.gone", "", "yes", absent}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := compare(parse(t, []byte(left)), parse(t, []byte(tc.right)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}

func TestUnexplained(t *testing.T) {
	a := Difference{Object: "table a", V1: "yes", Tofino: absent}
	b := Difference{Object: "table b", V1: "yes", Tofino: absent}
	known := []Reason{{Why: "x", Chips: []string{"tofino2"}, Differences: []Difference{a}}}
	for _, tc := range []struct {
		chip           string
		found          []Difference
		unlisted, gone []Difference
	}{
		{"tofino2", []Difference{a}, nil, nil},
		{"tofino1", []Difference{a}, []Difference{a}, nil},
		{"tofino2", []Difference{b}, []Difference{b}, []Difference{a}},
	} {
		unlisted, gone := unexplained(tc.chip, tc.found, known)
		if !cmp.Equal(unlisted, tc.unlisted) || !cmp.Equal(gone, tc.gone) {
			t.Errorf("%s %v: unlisted %v, gone %v", tc.chip, tc.found, unlisted, gone)
		}
	}
}

func TestParseReason(t *testing.T) {
	for line, want := range map[string]Reason{
		"| only on v1model: `table a`, `table b`<br>only on Tofino: `register c` | because |\n": {
			Why: "because", Differences: []Difference{{"table a", "", "yes", absent}, {"table b", "", "yes", absent}, {"register c", "", absent, "yes"}},
		},
		"| `table d`, size: 2 on v1model, 1 on Tofino | (tofino1) small |\n": {Why: "small", Chips: []string{"tofino1"}, Differences: []Difference{{"table d", "size", "2", "1"}}},
	} {
		got, err := parseReason(line)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v, want -, got +\n%s", err, diff)
		}
	}
	for _, line := range []string{"| `table d` | a |\n", "text\n"} {
		if _, err := parseReason(line); err == nil {
			t.Errorf("%q is taken", line)
		}
	}
}
