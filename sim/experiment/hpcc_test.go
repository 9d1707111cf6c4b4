package experiment

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/units"
)

// hpccFiles are a topology, flows and sizes in the formats of HPCC's public simulator.
var hpccFiles = map[string]string{
	"topology.txt": "5 2 4\n0 4\n0 1 100Gbps 0.001ms 0\n0 2 100Gbps 0.001ms 0\n4 3 100Gbps 0.001ms 0\n0 4 100Gbps 1000ns 0\n",
	"flow.txt":     "2\n1 3 3 100 1000 2.000010\n2 1 4 100 10000 2\n",
	"sizes.txt":    "0 0\n1000 50\n2000 100\n",
}

const hpccRun = `
topology: {kind: file, file: topology.txt}
flows:
  - {kind: trace, file: flow.txt, start: 5us}
  - {kind: poisson, group: drawn, sizes: sizes.txt, load: 0.01, stop: 100us}
run: {until: 1ms, flows: true}
measures: [{name: fct, what: fct, stat: max, group: flows}, {name: drawn, what: done, group: drawn}]
`

// open writes files beside an experiment and reads it.
func openBeside(t *testing.T, text string, files map[string]string) (*File, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Parse(filepath.Join(dir, "x.yaml"), []byte(text))
}

// TestHPCCFiles reads a fabric, flows and sizes in the formats of HPCC's public simulator.
func TestHPCCFiles(t *testing.T) {
	f, err := openBeside(t, hpccRun, hpccFiles)
	if err != nil {
		t.Fatal(err)
	}
	o, err := f.Plans[0].Run(t.Context(), "x", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(o.Flows, func(f FlowRecord) bool { return f.Group == "flows" && f.Src == "2" })
	if at < 0 {
		t.Fatalf("no flow of host 2: %+v", o.Flows)
	}
	if got := o.Flows[at]; got.Src != "2" || got.Dst != "1" || got.Class != 4 || got.Size != 10_000 || got.Start != 5*units.Microsecond {
		t.Errorf("%+v, want the second line at the entry's start", got)
	}
	var other *FlowRecord
	for i := range o.Flows {
		if o.Flows[i].Group == "flows" && o.Flows[i].Src == "1" {
			other = &o.Flows[i]
		}
	}
	if other == nil || other.Dst != "3" || other.Class != 3 || other.Start != 15*units.Microsecond {
		t.Errorf("%+v, want the first line 10 µs later", other)
	}
	if o.Measures[1].Value < 1 {
		t.Errorf("no flows of drawn sizes: %+v", o.Measures)
	}
	for want, edit := range map[string][3]string{
		"topology.file: topology.txt: line 2: names switch 4 twice":            {"topology.txt", "0 4\n0 1", "4 4\n0 1"},
		"topology: host 2 has no link, want at least 1":                        {"topology.txt", "0 2 100", "0 3 100"},
		"flows[0].file: flow.txt: line 2: 4 is no host of the topology":        {"flow.txt", "1 3 3", "1 4 3"},
		"flows[0].file: flow.txt: line 3: is the last one, want the id of the": {"flow.txt", "2\n1", "3\n1"},
		"flows[1].sizes: sizes.txt: line 2: 3 fields, want a size":             {"sizes.txt", "50", "50 1"},
	} {
		files := maps.Clone(hpccFiles)
		files[edit[0]] = strings.Replace(files[edit[0]], edit[1], edit[2], 1)
		if _, err := openBeside(t, hpccRun, files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
