package fit

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// resourcesJSON is a report in the compiler's format with two stages: one memory that two features share, one
// register, one filter, one condition.
const resourcesJSON = `{
 "schema_version": "2.4.2",
 "resources": {
  "mau": {"nStages": 12, "mau_stages": [
   {"stage_number": 0,
    "rams": {"nRows": 8, "nColumns": 10, "srams": [
     {"row": 1, "column": 2, "usages": [{"used_by": "ingress.routing.lpm", "used_for": "action_ram"}]},
     {"row": 1, "column": 2, "usages": [{"used_by": "ingress.punt.punt_table", "used_for": "action_ram"}]},
     {"row": 1, "column": 3, "usages": [{"used_by": "ingress.routing.lpm", "used_for": "action_ram"}]}]},
    "tcams": {"nRows": 12, "nColumns": 2, "tcams": [
     {"row": 0, "column": 0, "usages": [{"used_by": "ingress.routing.lpm", "used_for": "ternary_match"}]}]},
    "gateways": {"nRows": 8, "nUnits": 2, "gateways": [
     {"row": 0, "unit_id": 1, "usages": [{"used_by": "cond-7", "used_for": "gateway"}]}]},
    "logical_tables": {"size": 16, "ids": [{"id": 0, "table_name": "ingress.routing.lpm"}, {"id": 1, "table_name": "cond-7"}]},
    "vliw": {"size": 32, "instructions": [
     {"instruction_number": 0, "color_usages": [{"color": 0, "gress": "ingress", "usages": [{"used_by": "ingress.routing.lpm", "action_names": ["a"]}]}]}]},
    "action_bus_bytes": {"size": 128, "bytes": [{"byte_number": 3, "used_by_tables": ["ingress.routing.lpm"]}]},
    "xbar_bytes": {"exact_size": 128, "ternary_size": 66, "size": 194, "bytes": [
     {"byte_number": 130, "byte_type": "ternary", "usages": [{"used_by": "ingress.routing.lpm", "used_for": "ternary_match"}]}]}},
   {"stage_number": 2,
    "rams": {"nRows": 8, "nColumns": 10, "srams": []},
    "meter_alus": {"nAlus": 4, "meters": [
     {"row": 1, "usages": [{"used_by": "egress.statistics.delay", "used_for": "stateful_ram"}]},
     {"row": 3, "usages": [{"used_by": "egress.maxqd.filter", "used_for": "meter_lpf"}]}]}}]},
  "phv_containers": {"normal": [{"units": 64, "width": 32, "addresses": []}], "tagalong": [{"units": 8, "width": 8, "addresses": []}]},
  "parser": {"nParsers": 2, "parsers": [
   {"parser_id": 0, "gress": "ingress", "nStates": 256, "states": [{}, {}]},
   {"parser_id": 0, "gress": "egress", "nStates": 256, "states": [{}]}]}
 }}`

const context = `{"tables": [
 {"name": "ingress.routing.lpm", "direction": "ingress"}, {"name": "cond-7", "direction": "ingress"},
 {"name": "delay", "direction": "egress"}, {"name": "tbl_maxqdl12", "direction": "egress"}]}`

const containers = `{"containers": [
 {"phv_number": 1, "bit_width": 32, "container_type": "normal", "gress": "ingress"},
 {"phv_number": 2, "bit_width": 32, "container_type": "normal", "gress": "egress"},
 {"phv_number": 3, "bit_width": 8, "container_type": "tagalong", "gress": "egress"}]}`

const assembly = `version:
  target: Tofino
stage 0 ingress:
  dependency: match
  ternary_match ingress.routing.lpm 0:
    p4: { name: ingress.routing.lpm, size: 64 }
stage 1 egress:
  dependency: match
  mpr_stage_id: 1
stage 2 egress:
  hash_action egress.statistics 1:
    always_run: true
`

func reportOf(t *testing.T, resources, phv, bfa string) (*Report, error) {
	t.Helper()
	dir := t.TempDir()
	for name, data := range map[string]string{"context.json": context, "logs/resources.json": resources, "logs/phv.json": phv, "x.bfa": bfa} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Read("tofino1", dir, filepath.Join(dir, "x.bfa"))
}

func TestRead(t *testing.T) {
	got, err := reportOf(t, resourcesJSON, containers, assembly)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{0}, got.Ingress); diff != "" {
		t.Errorf("ingress stages: %s", diff)
	}
	if diff := cmp.Diff([]int{2}, got.Egress); diff != "" { // stage 1 only waits
		t.Errorf("egress stages: %s", diff)
	}
	wantUse := []Use{
		{SRAM: 2, TCAM: 1, Gateway: 1, Table: 2, VLIW: 1, ActionB: 1, TernaryX: 1}, {}, {MeterALU: 2},
	}
	if diff := cmp.Diff(wantUse, got.Use); diff != "" {
		t.Errorf("use by stage: want -, got +\n%s", diff)
	}
	wantFeatures := []Feature{
		{Name: "ingress punting", Stages: []int{0}, Use: Use{SRAM: 1}},
		{Name: "ingress routing", Stages: []int{0}, Use: Use{SRAM: 2, TCAM: 1, Table: 1, VLIW: 1, ActionB: 1, TernaryX: 1}},
		{Name: "ingress conditions", Stages: []int{0}, Use: Use{Gateway: 1, Table: 1}},
		{Name: "egress maxQD", Stages: []int{2}, Use: Use{MeterALU: 1}},
		{Name: "egress telemetry", Stages: []int{2}, Use: Use{MeterALU: 1}, Stateful: 1},
	}
	if diff := cmp.Diff(wantFeatures, got.Features); diff != "" {
		t.Errorf("features: want -, got +\n%s", diff)
	}
	wantPHV := []Containers{
		{Kind: "normal", Width: 32, Total: 64, Ingress: 1, Egress: 1},
		{Kind: "tagalong", Width: 8, Total: 8, Egress: 1},
	}
	if diff := cmp.Diff(wantPHV, got.PHV); diff != "" {
		t.Errorf("PHV: want -, got +\n%s", diff)
	}
	if got.Stages != 12 || got.PerStage[SRAM] != 80 || got.PerStage[MeterALU] != 4 || got.Stateful != 1 {
		t.Errorf("stages %d, SRAM a stage %d, ALUs a stage %d, stateful %d; want 12, 80, 4, 1",
			got.Stages, got.PerStage[SRAM], got.PerStage[MeterALU], got.Stateful)
	}
	if got.Parser["ingress"] != 2 || got.Parser["egress"] != 1 || got.ParserRows != 256 {
		t.Errorf("parser rows %v of %d", got.Parser, got.ParserRows)
	}
}

func TestFeatureNames(t *testing.T) {
	var c contextReport
	if err := json.Unmarshal([]byte(`{"tables": [
 {"name": "tbl_routing12", "direction": "ingress"}, {"name": "tbl_flow_hash_add_seed", "direction": "ingress"}, {"name": "last_delay", "direction": "egress"},
 {"name": "cond-3", "direction": "egress"}, {"name": "ingress.pacc.congested_flow", "direction": "egress"},
 {"name": "tbl_pacc_congestion_compare", "direction": "egress"}, {"name": "tbl_packet_io30_1", "direction": "ingress"},
 {"name": "ingress.classify.dscp_to_class", "direction": "ingress"}]}`), &c); err != nil {
		t.Fatal(err)
	}
	names := c.features()
	for in, want := range map[string]string{
		"ingress.routing.ipv4_lpm":        "ingress routing",
		"ingress.routing.ipv4_lpm$action": "ingress routing",
		"ingress.pacc.congested_flow":     "egress PACC", // where it was placed
		"tbl_flow_hash_add_seed":          "ingress routing",
		"egress.ecn_marks":                "egress ECN",
		"tbl_routing12":                   "ingress routing",
		"tbl_routing12-gateway":           "ingress routing",
		"tbl_pacc_congestion_compare":     "egress PACC",
		"tbl_packet_io30_1":               "ingress ports, packet I/O",
		"classify_dscp_to_class":          "ingress classes",
		"_ingress_classify_dscp_to_class": "ingress classes",
		"last_delay":                      "egress telemetry",
		"cond-3":                          "egress conditions",
		"egress.portal.x":                 "egress portal", // not ports
		"unheard_of":                      "either half: unheard_of",
	} {
		if got := names.of(in); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

func TestReadFaults(t *testing.T) {
	for _, tc := range []struct{ name, resources, phv, want string }{
		{"another schema", `{"schema_version": "3.0.0"}`, containers, `schema version "3.0.0"; version 2`},
		{"no JSON", `nothing`, containers, "resources.json: "},
		{"no containers", resourcesJSON, `[`, "phv.json: "},
	} {
		if _, err := reportOf(t, tc.resources, tc.phv, assembly); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", tc.name, err, tc.want)
		}
	}
}

// TestJSON reads back its own output, and refuses anything else.
func TestJSON(t *testing.T) {
	want, err := reportOf(t, resourcesJSON, containers, assembly)
	if err != nil {
		t.Fatal(err)
	}
	data, err := want.JSON()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	for _, bad := range []string{`{"chip": 1}`, `{"colour": 1}`, `{"stages": 1, "use": [{}, {}]}`} {
		if _, err := Decode([]byte(bad)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestMarkdown(t *testing.T) {
	r, err := reportOf(t, resourcesJSON, containers, assembly)
	if err != nil {
		t.Fatal(err)
	}
	text := r.Markdown()
	for _, want := range []string{
		"Ingress takes 1 (0), egress 1 (2), of 12 stages.",
		"| SRAM blocks | 2 | 960 | 2 of 80 | 2 0 0 |",
		"| stateful ALUs and filters | 2 | 48 | 2 of 4 | 0 0 2 |",
		"| ingress routing | 0 | 1 | 2 | – | 1 | – | – | – | – |",
		"| egress maxQD | 2 | – | – | – | – | – | 1 | – | – |",
		"| normal, 32 bits | 1 | 1 | 62 | 64 |",
		"2 (ingress) and 1 (egress) of 256 rows",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
}

func TestRanges(t *testing.T) {
	for want, in := range map[string][]int{"0": {0}, "0–3": {0, 1, 2, 3}, "0, 2–3, 5": {0, 2, 3, 5}} {
		if got := ranges(in); got != want {
			t.Errorf("%v: %s, want %s", in, got, want)
		}
	}
}
