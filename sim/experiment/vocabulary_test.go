package experiment

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// alone returns the time, in µs, of a flow of n full packets without contention on star's links.
func alone(n int) float64 { return 2*(0.08432+1) + float64(n-1)*0.08432 + 2*(0.00512+1) }

// TestRanksBySize: flows get the class, law and group for their size, and coflows those for their total size.
func TestRanksBySize(t *testing.T) {
	const ranks = `{bounds: [10KB, 1MB], ranks: [{group: small, class: 5}, {group: middle, class: 4}, {group: large, class: 3, law: swift, weight: 2}]}`
	got, o := measured(t, star+`
flows:
  - {kind: incast, to: h3, from: h0, size: 10KB, weight: 3, by_size: `+ranks+`}
  - {kind: flow, from: h1, to: h3, size: 9999B, by_size: `+ranks+`}
  - {kind: coflows, mappers: 2, reducers: 1, size: 500KB, every: 1ms, stop: 5ms, by_size: `+ranks+`}
  - {kind: poisson, size: 1KB, load: 0.01, stop: 100us, by_size: {split: flows, ranks: [{group: lower}, {group: upper}]}}
run: {until: 20ms, stop_when_done: true, flows: true}
measures:
  - {name: small, what: done, group: small}
  - {name: middle, what: done, group: middle}
  - {name: large, what: jobs, group: large}
  - {name: upper, what: done, group: upper}
`)
	if got["small"].Value != 1 || got["middle"].Value != 1 || got["large"].Value < 1 || got["upper"].Value < 1 {
		t.Errorf("%v", got)
	}
	for _, f := range o.Flows {
		want := map[string]FlowRecord{"small": {Class: 5, Weight: 1}, "middle": {Class: 4, Weight: 3}, "large": {Class: 3, Weight: 2}, "upper": {Weight: 1}}[f.Group]
		if f.Class != want.Class || f.Weight != want.Weight {
			t.Errorf("%+v, want class %d and weight %g", f, want.Class, want.Weight)
		}
	}
}

// TestDeadlines: two flows that share a link take twice their ideal time.
func TestDeadlines(t *testing.T) {
	got, _ := measured(t, star+`
flows:
  - {kind: incast, group: tight, from: h0, to: h3, size: 1MB, deadline_factor: 1.5}
  - {kind: incast, group: loose, from: h1, to: h3, size: 1MB, deadline: 200us}
  - {kind: flow, group: late, from: h2, to: h1, size: 1GB, deadline: 1us}
  - {kind: flow, group: open, from: h2, to: h0, size: 1GB, deadline: 1s}
run: {until: 1ms}
measures:
  - {name: tight, what: met, group: tight}
  - {name: loose, what: met, group: loose}
  - {name: late, what: met, group: late}
  - {name: open, what: met, group: open}
  - {name: all, what: met, sizes: 0-10MB}
`)
	checkMeasures(t, got, []want{{"tight", 0, 0}, {"loose", 100, 0}, {"late", 0, 0}, {"all", 50, 0}})
	if v := got["open"].Value; !math.IsNaN(v) {
		t.Errorf("a deadline that is not over counts: %v", v)
	}
}

// TestAfter: flows wait for earlier flows and a pause, and their own times count from there.
func TestAfter(t *testing.T) {
	got, o := measured(t, star+`
flows:
  - {kind: flow, group: a, from: h0, to: h1, size: 10KB}
  - {kind: flow, group: b, from: h2, to: h3, size: 20KB}
  - {kind: flow, group: c, from: h0, to: h1, size: 10KB, after: [a, b], pause: 5us, count: 2, every: 100us}
  - {kind: ring, group: d, hosts: "0, 1", size: 20KB, rounds: 2, compute: 50us, after: [c]}
run: {until: 20ms, stop_when_done: true, flows: true}
measures:
  - {name: c, what: makespan, group: c}
  - {name: rounds, what: jobs, group: d}
  - {name: round, what: cct, group: d}
  - {name: d, what: makespan, group: d}
`)
	// A ring of two has two steps of 10 KB per round; its flows share links only with acknowledgements.
	step := alone(10)
	checkMeasures(t, got, []want{{"c", 100 + alone(10), 1e-9}, {"rounds", 2, 0}, {"round", 2 * step, 0.05}, {"d", 4*step + 50, 0.02}})
	start := map[string]float64{}
	for _, f := range o.Flows {
		if _, ok := start[f.Group]; !ok {
			start[f.Group] = f.Start.Micros()
		}
	}
	if c, d := alone(20)+5, alone(20)+5+100+alone(10); math.Abs(start["c"]-c) > 1e-6 || math.Abs(start["d"]-d) > 1e-6 {
		t.Errorf("starts %v, want c at %v and d at %v", start, c, d)
	}
}

// TestJobs: a DAG's stages wait and compute, and their flows' weights follow from the work that remains after
// them.
func TestJobs(t *testing.T) {
	got, o := measured(t, star+`
flows:
  - kind: dag
    group: job
    weight: 10
    weigh: stages
    hosts: 0-3
    stages:
      - {name: map, size: 40KB, width: 2}
      - {name: side, size: 1KB}
      - {name: shuffle, size: 40KB, width: 2, after: [map], compute: 30us}
      - {name: reduce, size: 10KB, after: [side, shuffle]}
  - {kind: tpch, group: query, query: q3, scale: 0.0001, weigh: bytes, compute: 1us, persistent: true}
run: {until: 20ms, stop_when_done: true, flows: true}
measures: [{name: job, what: cct, group: job}]
`)
	weights := map[float64]int{}
	for _, f := range o.Flows {
		if f.Group == "job" {
			weights[f.Weight]++
		}
	}
	if weights[30] < 2 || weights[20] < 3 || weights[10] != 1 {
		t.Errorf("flows by weight %v, want map's at 30, shuffle's and side's at 20, reduce's at 10", weights)
	}
	if v := got["job"].Value; !(v > 30+3*alone(1)) {
		t.Errorf("the job took %v µs, want more than its computing", v)
	}
}

// TestTrace: a CSV file gives the flows.
func TestTrace(t *testing.T) {
	dir := t.TempDir()
	parse := func(csv, keys string) (*File, error) {
		if err := os.WriteFile(filepath.Join(dir, "x.csv"), []byte(csv), 0o600); err != nil {
			t.Fatal(err)
		}
		return Parse(filepath.Join(dir, "x.yaml"), []byte(star+"flows: [{kind: trace, file: x.csv, start: 1us"+keys+"}]\nrun: {until: 1ms, flows: true}\nmeasures: [{name: cct, what: cct}, {name: heavy, what: done, group: heavy}]\n"))
	}
	f, err := parse("# a comment\nsrc, dst, start, size, class, weight, group, job\nh0, 1, 0us, 10KB, 3, 2.5, heavy, x\n2, h3, 9us, 20KB, 0, 1, , x\n", "")
	if err != nil {
		t.Fatal(err)
	}
	o, err := f.Plans[0].Run(t.Context(), "x", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Flows) != 2 || o.Flows[0] != (FlowRecord{"heavy", "h0", "h1", 3, 1, 10_000, 2.5, 1_000_000, o.Flows[0].Ideal, o.Flows[0].Ideal, 0, 0}) || o.Flows[1].Group != "flows" {
		t.Errorf("flows %+v", o.Flows)
	}
	checkMeasures(t, map[string]Value{"cct": o.Measures[0], "heavy": o.Measures[1]}, []want{{"cct", 9 + alone(20), 1e-9}, {"heavy", 1, 0}})
	for _, c := range []struct{ csv, keys, want string }{
		{"", "", "no line of column names"},
		{"start,src,dst\n", "", "no column size"},
		{"start,src,dst,size,rate\n", "", `column "rate"`},
		{"start,src,dst,size,src\n", "", `column "src"`},
		{"start,src,dst,size\n1us,h0,h1\n", "", "line 2"},
		{"start,src,dst,size\n1us,h0,h1,1KB\n\n1,h0,h1,1KB\n", "", `line 4: start: "1" is not a time`},
		{"start,src,dst,size\n1us,h0,h9,1KB\n", "", `line 2: dst: "h9" is no host`},
		{"start,src,dst,size\n1us,h0,0-1,1KB\n", "", `line 2: dst: is "0-1", want one host`},
		{"start,src,dst,size\n1us,h0,h0,1KB\n", "", "from a host to itself"},
		{"start,src,dst,size\n1us,h0,h1,big\n", "", `line 2: size: "big" is not`},
		{"start,src,dst,size,class\n1us,h0,h1,1B,8\n", "", `class: is "8", want 0 to 7`},
		{"start,src,dst,size,weight\n1us,h0,h1,1B,0\n", "", `weight: is "0"`},
		{"start,src,dst,size\n", ", classes: [1, 2]", "want the column class"},
	} {
		if _, err := parse(c.csv, c.keys); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q%s: error %v, want %q", c.csv, c.keys, err, c.want)
		}
	}
}

// TestPersistentConnections: a second message of a connection waits for the first; one of another pair does not.
func TestPersistentConnections(t *testing.T) {
	got, _ := measured(t, star+`
flows:
  - {kind: flow, group: a, from: h0, to: h1, size: 10KB, count: 2, persistent: true}
  - {kind: flow, group: b, from: h2, to: h3, size: 10KB, count: 2}
  - {kind: ring, group: r, hosts: "0, 1", size: 20KB, rounds: 1, start: 1ms, persistent: true, law: dcqcn}
run: {until: 2ms, stop_when_done: true}
measures:
  - {name: a min, what: fct, group: a, stat: min}
  - {name: a max, what: fct, group: a, stat: max}
  - {name: b min, what: fct, group: b, stat: min}
  - {name: r, what: done, group: r}
`)
	checkMeasures(t, got, []want{{"a min", alone(10), 1e-9}, {"a max", 2 * alone(10), 1e-9}, {"b min", alone(19), 0.02}, {"r", 4, 0}})
}

// TestJitter: a flow of one packet and its acknowledgement cross four links that delay each by up to 1 µs, 0.5 µs
// on average. Frames of a longer flow keep their order.
func TestJitter(t *testing.T) {
	got, _ := measured(t, `
topology: {kind: star, hosts: 4, host: {rate: 100Gbps, delay: 1us, jitter: 1us}}
flows:
  - {kind: flow, group: one, from: h0, to: h1, size: 1KB, count: 2000, every: 10us}
  - {kind: flow, group: many, from: h2, to: h3, size: 2MB}
run: {until: 30ms, stop_when_done: true}
measures:
  - {name: mean, what: fct, group: one}
  - {name: min, what: fct, group: one, stat: min}
  - {name: max, what: fct, group: one, stat: max}
  - {name: resent, what: retransmits}
  - {name: many, what: slowdown, group: many}
`)
	checkMeasures(t, got, []want{{"mean", alone(1) + 2, 0.01}, {"resent", 0, 0}, {"many", 1, 0.03}})
	if low, high := got["min"].Value, got["max"].Value; low < alone(1) || high > alone(1)+4 || high < alone(1)+3 {
		t.Errorf("from %v to %v µs, want within %v and 4 µs more", low, high, alone(1))
	}
}

// TestSpread: in each run, links have individual delays. They apply to every frame and count as part of the path.
func TestSpread(t *testing.T) {
	f, err := Parse("x.yaml", []byte(`
topology: {kind: star, hosts: 2, host: {rate: 100Gbps, delay: 1us, spread: 1us}}
flows: [{kind: flow, from: h0, to: h1, size: 1KB, count: 20, every: 10us}]
run: {until: 1ms, stop_when_done: true}
measures: [{name: min, what: fct, stat: min}, {name: max, what: fct, stat: max}, {name: slowdown, what: slowdown, stat: max}]
`))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[float64]bool{}
	for seed := range uint64(20) {
		o, err := f.Plans[0].Run(t.Context(), "x", seed, nil)
		if err != nil {
			t.Fatal(err)
		}
		least, most := o.Measures[0].Value, o.Measures[1].Value
		if least != most || o.Measures[2].Value != 1 || least < alone(1) || least > alone(1)+4 {
			t.Errorf("seed %d: from %v to %v µs, slowdown %v", seed, least, most, o.Measures[2].Value)
		}
		seen[least] = true
	}
	if len(seen) != 20 {
		t.Errorf("%d different delays in 20 runs", len(seen))
	}
}

// TestNoNoise: noise times 0 is no noise. A size distribution cannot have 0, so the noise must not be 1 ps.
func TestNoNoise(t *testing.T) {
	f, err := Parse("x.yaml", []byte(`
topology: {kind: star, hosts: 2, host: {rate: 100Gbps, delay: 1us}}
noise: {points: [{at: 0us, percent: 0}, {at: 1us, percent: 100}], factor: 0}
flows: [{kind: flow, from: h0, to: h1, size: 1KB}]
run: {until: 1ms}
measures: [{name: fct, what: fct}]
`))
	if err != nil {
		t.Fatal(err)
	}
	if f.Plans[0].Config.Noise != nil {
		t.Error("there is noise")
	}
}

// TestBuffersOfTheirOwn: switches and ports may have settings of their own.
func TestBuffersOfTheirOwn(t *testing.T) {
	f, err := Parse("x.yaml", []byte(`
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, host: {rate: 100Gbps, delay: 1us}}
buffer:
  policy: sih
  size: 4MB
  alpha: 1/2
  headroom: 40KB
  lossless: [0]
  switches: [{switch: leaf1, size: 2MB, alpha: 1}, {switch: spine0, headroom: 50KB}]
  ports: [{from: h1, to: leaf0, headroom: 45KB}, {from: leaf1, to: spine0, headroom: 60KB}]
flows: [{kind: permutation, size: 10KB}]
run: {until: 1ms}
`))
	if err != nil {
		t.Fatal(err)
	}
	p := f.Plans[0]
	ports := topo.NewPorts(p.Graph)
	got := map[string][]units.Bytes{}
	for n := p.Graph.Hosts; n < p.Graph.Nodes(); n++ {
		b, err := p.Config.NewBuffer(sim.InfoOf(p.Graph, ports, n))
		if err != nil {
			t.Fatal(err)
		}
		c := b.(*headroom.MMU).Config()
		row := []units.Bytes{c.Buffer, c.Headroom, units.Bytes(c.Alpha.Threshold(1000))}
		for _, port := range c.Ports {
			row = append(row, port.Headroom)
		}
		got[p.Graph.Names[n]] = row
	}
	const kb = units.KB
	want := map[string][]units.Bytes{
		"leaf0": {4000 * kb, 40 * kb, 500, 0, 45 * kb, 0, 0}, "leaf1": {2000 * kb, 40 * kb, 1000, 0, 0, 0, 0},
		"spine0": {4000 * kb, 50 * kb, 500, 0, 60 * kb}, "spine1": {4000 * kb, 40 * kb, 500, 0, 0},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestChanges: two flows share a link; one gets all of it in a higher class. Then its law allows one packet per
// round trip.
func TestChanges(t *testing.T) {
	got, _ := measured(t, star+`
laws: {slow: {kind: none, window: 1KB}}
flows:
  - {kind: flow, group: a, from: h0, to: h3, stop: 4ms}
  - {kind: flow, group: b, from: h1, to: h3, stop: 4ms}
events:
  - {at: 1ms, group: b, class: 1}
  - {at: 2ms, group: b, law: slow}
run: {until: 4ms}
measures:
  - {name: a before, what: goodput, group: a, from: 0.5ms, to: 1ms}
  - {name: a below, what: goodput, group: a, from: 1.5ms, to: 2ms}
  - {name: b above, what: goodput, group: b, from: 1.5ms, to: 2ms}
  - {name: b slow, what: goodput, group: b, from: 3.5ms}
`)
	checkMeasures(t, got, []want{{"a before", 47.4, 0.01}, {"a below", 0, 0}, {"b above", 94.88, 0.01}, {"b slow", 8 / alone(1), 0.05}})
}

// TestPrecedence: twelve flows of one class that share hosts and links get them one after another, the highest
// first. Each ends as early as the flows above it allow.
func TestPrecedence(t *testing.T) {
	var flows, measures strings.Builder
	var wants []want
	for i := range 12 {
		fmt.Fprintf(&flows, "  - {kind: flow, group: g%d, from: h%d, to: h3, size: 100KB, precedence: %d}\n", i, i%2, i)
		fmt.Fprintf(&measures, "  - {name: g%d, what: fct, group: g%d}\n", i, i)
		wants = append(wants, want{fmt.Sprintf("g%d", i), alone(100 * (12 - i)), 0.03})
	}
	got, _ := measured(t, star+"flows:\n"+flows.String()+"run: {until: 1ms, stop_when_done: true}\nmeasures:\n"+measures.String())
	checkMeasures(t, got, wants)
	// A flow that starts first is overtaken in the queue and in the host.
	got, _ = measured(t, star+`
flows:
  - {kind: flow, group: low, from: h0, to: h3, size: 1MB}
  - {kind: flow, group: lower, from: h1, to: h3, size: 1MB}
  - {kind: flow, group: high, from: h0, to: h3, size: 100KB, start: 50us, precedence: 15}
run: {until: 1ms, stop_when_done: true}
measures:
  - {name: high, what: fct, group: high}
  - {name: both, what: makespan}
`)
	checkMeasures(t, got, []want{{"high", alone(100), 0.03}, {"both", alone(2100), 0.01}})
}

// TestPaced: a window of ten packets leaves either in one burst or evenly over a round trip; only bursts of two
// such senders queue up. In both cases one window leaves per round trip.
func TestPaced(t *testing.T) {
	for paced, most := range map[string]float64{"false": 11, "true": 1.1} {
		got, _ := measured(t, star+`
laws: {ten: {kind: none, window: 10KB}}
flows: [{kind: incast, from: 0-1, to: h3, stop: 1ms, law: ten, paced: `+paced+`}]
run: {until: 1ms}
queues: [{name: q, from: s0, to: h3}]
measures: [{name: queue, what: queue, queue: q, stat: max}, {name: all, what: goodput, group: flows, from: 50us}]
`)
		if q := got["queue"].Value; q > most || paced == "false" && q < 8 {
			t.Errorf("paced %s: longest queue %v KB, want up to %v", paced, q, most)
		}
		checkMeasures(t, got, []want{{"all", 2 * 10 * 8 / alone(1), 0.03}})
	}
}
