package experiment

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// star is four hosts at one switch. On its links, frames of 1054 B with 1000 B of payload take 84.32 ns plus 1
// µs.
const star = `
topology: {kind: star, hosts: 4, host: {rate: 100Gbps, delay: 1us}}
`

// measured runs a file's first variant with seed 1 and returns its values by measure.
func measured(t *testing.T, text string) (map[string]Value, *Outcome) {
	t.Helper()
	f, err := Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o, err := f.Plans[0].Run(context.Background(), "x", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Value{}
	for _, v := range o.Measures {
		got[v.Name] = v
	}
	return got, o
}

// want is the expected value of a measure, within a fraction of it.
type want struct {
	name        string
	value, near float64
}

func checkMeasures(t *testing.T, got map[string]Value, wants []want) {
	t.Helper()
	for _, w := range wants {
		v, ok := got[w.name]
		if !ok || !(math.Abs(v.Value-w.value) <= w.near*math.Max(math.Abs(w.value), 1e-9)) {
			t.Errorf("%s = %v, want %v to within a part of %v", w.name, v.Value, w.value, w.near)
		}
	}
}

// TestMeasuresOfFlows: flows without contention take their ideal time: for 10 packets 2·(84.32 ns + 1 µs) +
// 9·84.32 ns, and 2·(5.12 ns + 1 µs) for the ACK.
func TestMeasuresOfFlows(t *testing.T) {
	got, o := measured(t, star+`
flows:
  - {kind: flow, group: small, from: h0, to: h1, size: 10KB}
  - {kind: flow, group: small, from: h0, to: h1, size: 10KB, start: 100us}
  - {kind: flow, group: large, from: h2, to: h3, size: 200KB}
  - {kind: flow, group: endless, from: h2, to: h3, start: 190us, stop: 195us}
run: {until: 200us, flows: true}
measures:
  - {name: small, what: fct, sizes: 1B-100KB}
  - {name: early, what: done, sizes: 0-100KB, to: 50us}
  - {name: large, what: done, sizes: 100KB-}
  - {name: middle, what: done, sizes: 10001B-100KB}
  - {name: slowdown, what: slowdown, group: large, stat: max, cdf: true}
  - {name: goodput, what: flow_goodput, group: large}
`)
	large := 2*(0.08432+1) + 199*0.08432 + 2*(0.00512+1)
	checkMeasures(t, got, []want{
		{"small", 2*(0.08432+1) + 9*0.08432 + 2*(0.00512+1), 1e-9}, {"early", 1, 0}, {"large", 1, 0}, {"middle", 0, 0},
		{"slowdown", 1, 0}, {"goodput", 200e3 * 8 / large / 1e3, 1e-9},
	})
	if q := got["slowdown"].Quantiles; len(q) != 101 || q[0] != 1 || q[100] != 1 {
		t.Errorf("quantiles %v, want 101 of 1", q)
	}
	if len(o.Flows) != 4 || o.Flows[0].Src != "h0" || o.Flows[0].FCT != o.Flows[0].Ideal || o.Flows[3].FCT != 0 {
		t.Errorf("flows %+v", o.Flows)
	}
	rep := &Report{Experiment: "x", Shards: 2, Outcomes: []*Outcome{o}}
	dir := t.TempDir()
	if _, err := rep.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "x", "flows-seed1.csv"))
	if lines := strings.Split(strings.TrimSpace(string(text)), "\n"); err != nil || len(lines) != 5 ||
		lines[1] != "small,0,h0,h1,0,1,10000,0,4.93776,4.93776,1,0,0" || lines[4] != "endless,0,h2,h3,0,1,0,190,,0,,0,0" {
		t.Errorf("error %v, flows-seed1.csv:\n%s", err, text)
	}
}

// TestMeasuresOfPorts: two hosts send to a third at line rate. PFC stops each for half of the time, and each has
// half of the receiver's link. A static threshold has its configured value.
func TestMeasuresOfPorts(t *testing.T) {
	got, o := measured(t, star+`
buffer: {policy: static, size: 4MB, threshold: 100KB, lossless: [0], lossy_private: 3KB}
flows:
  - {kind: flow, group: a, from: h0, to: h3, stop: 3ms}
  - {kind: flow, group: b, from: h1, to: h3, stop: 3ms}
run: {until: 3ms, interval: 1ms}
queues: [{name: q, from: s0, to: h3}]
gauges:
  - {name: threshold, what: threshold, switch: s0}
  - {name: shared, what: shared, switch: all}
  - {name: headroom, what: headroom, port: {from: h0, to: s0}}
  - {name: both, what: xoff_queues, switch: s0}
  - {name: off while, what: xoff_queues, port: {from: h0, to: s0}, class: 0, while: headroom}
  - {name: link, what: throughput, port: {from: s0, to: h3}}
  - {name: stopped, what: paused, port: {from: h0, to: s0}}
  - {name: idle, what: paused, port: {from: h2, to: s0}}
  - {name: everything, what: buffer, switch: s0}
measures:
  - {name: stopped, what: pause_time, port: {from: h0, to: s0}, from: 1ms, to: 3ms}
  - {name: class 0, what: pause_time, port: {from: h0, to: s0}, class: 0, from: 1ms, to: 3ms}
  - {name: class 1, what: pause_time, port: {from: h0, to: s0}, class: 1}
  - {name: all pauses, what: pauses}
  - {name: h0, what: pauses, port: {from: h0, to: s0}}
  - {name: h1, what: pauses, port: {from: h1, to: s0}, class: 0}
  - {name: in 2 ms, what: pauses, port: {from: h0, to: s0}, from: 1ms, to: 3ms}
  - {name: rate, what: pause_rate, port: {from: h0, to: s0}, from: 1ms, to: 3ms}
  - {name: port pauses, what: port_pauses}
  - {name: share, what: share, group: a, from: 1ms}
  - {name: a, what: goodput, group: a, from: 1ms}
  - {name: others, what: others, group: b, from: 1ms}
  - {name: link, what: throughput, port: {from: s0, to: h3}, from: 1ms}
  - {name: threshold, what: gauge, gauge: threshold, stat: min}
  - {name: off while, what: gauge, gauge: off while, stat: min, from: 1ms}
  - {name: sampled, what: gauge, gauge: stopped, stat: max}
  - {name: queue, what: queue, queue: q, from: 1ms}
  - {name: everything, what: gauge, gauge: everything, from: 1ms}
  - {name: least at pause, what: at_pause, switch: s0, stat: min}
  - {name: most at pause, what: at_pause, switch: s0, stat: max, hosts: 0-1}
  - {name: idle at pause, what: at_pause, switch: s0, hosts: h2}
  - {name: arrival, what: xoff_arrival, switch: s0, from: 1ms}
  - {name: departure, what: xoff_departure, switch: all, from: 1ms, stat: p50}
`)
	checkMeasures(t, got, []want{
		{"stopped", 1000, 0.05}, {"class 0", got["stopped"].Value, 0}, {"class 1", 0, 0},
		{"h0", got["h1"].Value, 0.1}, {"all pauses", got["h0"].Value + got["h1"].Value, 0.05}, {"port pauses", 0, 0},
		{"rate", got["in 2 ms"].Value / 2, 1e-12},
		{"share", 50, 0.05}, {"others", got["a"].Value, 0}, {"link", 100, 1e-3},
		{"threshold", 100, 0}, {"off while", 1, 0}, {"sampled", 50, 0.2}, {"everything", got["queue"].Value, 1e-3},
		// A host sends at line rate until the PAUSE takes effect; until then both share the drain rate. A port
		// sends a PAUSE with the frame that exceeds 100 KB.
		{"least at pause", 100 + 1.054/2, 0.01}, {"most at pause", 100 + 1.054/2, 0.01},
		{"arrival", 100, 0.01}, {"departure", 50, 0.1},
	})
	if v := got["idle at pause"].Value; !math.IsNaN(v) {
		t.Errorf("a port that sends no PAUSE held %v KB at it", v)
	}
	if got["all pauses"].Value < 10 || got["threshold"].Unit != "KB" {
		t.Errorf("all pauses %v, threshold in %q", got["all pauses"], got["threshold"].Unit)
	}
	s := &o.Series
	if len(s.Gauge) != 9 || s.Gauges[0] != "threshold (KB)" || s.Gauge[0][2] != 100 || math.Abs(s.Gauge[5][1]-100) > 0.1 || s.Gauge[7][2] != 0 {
		t.Errorf("series of gauges %v: %v", s.Gauges, s.Gauge)
	}
}

// TestMeasuresOfPolicies: SPFC treats a port as a victim if its flow departs at line rate, unless its state is fixed in
// the file. DSH stops whole ports, and τ of its queues is within Φ.
func TestMeasuresOfPolicies(t *testing.T) {
	got, _ := measured(t, star+`
buffer: {policy: spfc, size: 4MB, headroom: 100KB, alpha: 1/2, lossless: [0]}
flows: [{kind: flow, from: h0, to: h3, stop: 1ms}]
run: {until: 1ms}
gauges:
  - {name: victim, what: victims, port: {from: h0, to: s0}}
  - {name: victims, what: victims, switch: s0}
  - {name: limit, what: limit, port: {from: h0, to: s0}, class: 0}
  - {name: idle limit, what: limit, port: {from: h1, to: s0}, class: 0}
measures:
  - {name: limit, what: gauge, gauge: limit, from: 0.5ms}
  - {name: idle limit, what: gauge, gauge: idle limit, from: 0.5ms}
  - {name: victim, what: gauge, gauge: victim, from: 0.5ms}
  - {name: victims, what: gauge, gauge: victims, from: 0.5ms, stat: max}
`)
	checkMeasures(t, got, []want{
		{"victim", 1, 0}, {"victims", 1, 0}, {"limit", 3600, 0}, {"idle limit", 1800, 1e-3},
	})
	got, _ = measured(t, star+`
buffer: {policy: spfc, size: 4MB, headroom: 100KB, alpha: 1/2, lossless: [0], ports: [{from: h1, to: s0, victim: true}]}
flows: [{kind: flow, from: h0, to: h3, stop: 1ms}, {kind: flow, from: h1, to: h2, size: 10KB}]
run: {until: 1ms}
gauges:
  - {name: found, what: victims, port: {from: h0, to: s0}}
  - {name: told, what: limit, port: {from: h1, to: s0}, class: 0}
measures:
  - {name: found, what: gauge, gauge: found, stat: max}
  - {name: told, what: gauge, gauge: told, stat: max}
`)
	checkMeasures(t, got, []want{{"found", 0, 0}, {"told", 3600, 0}})
	got, _ = measured(t, star+`
buffer: {policy: dsh, size: 600KB, headroom: 60KB, alpha: 16, lossless: [0, 1]}
flows: [{kind: incast, to: h3, size: 1MB}]
run: {until: 1ms}
gauges:
  - {name: tau, what: tau, port: {from: h0, to: s0}, class: 0}
  - {name: insured, what: insurance, switch: s0}
  - {name: ports, what: xoff_ports, switch: s0}
measures:
  - {name: tau, what: gauge, gauge: tau, stat: max}
  - {name: insured, what: gauge, gauge: insured, stat: max}
  - {name: ports, what: gauge, gauge: ports, stat: max}
  - {name: frames, what: port_pauses}
  - {name: to h0, what: port_pauses, port: {from: h0, to: s0}}
`)
	if tau := got["tau"].Value; tau <= 0 || tau > 60 {
		t.Errorf("τ up to %v KB, want above 0 and at most Φ, 60 KB", tau)
	}
	if got["ports"].Value != 3 || got["frames"].Value < 3 || got["to h0"].Value < 1 || got["to h0"].Value >= got["frames"].Value {
		t.Errorf("%v ports off, %v port-level PAUSEs, %v of them to h0", got["ports"], got["frames"], got["to h0"])
	}
}

// TestConverge: two flows share a link in halves. The second starts 100 µs after the first, and its
// acknowledgements begin a round trip later. So the second sample of 50 µs is the first in which both have their
// share.
func TestConverge(t *testing.T) {
	got, _ := measured(t, star+`
flows:
  - {kind: flow, group: first, from: h0, to: h3, stop: 1ms}
  - {kind: flow, group: second, from: h1, to: h3, start: 100us, stop: 1ms}
run: {until: 600us}
measures:
  - {name: to 5 %, what: converge, from: 100us, every: 50us}
  - {name: never, what: converge, from: 100us, to: 150us, every: 50us}
  - {name: alone, what: converge, to: 100us, every: 50us, within: 1}
  - {name: the first, what: flow_converge, group: first, every: 50us, stat: max}
  - {name: the second, what: flow_converge, group: second, every: 50us}
  - {name: in the mean, what: flow_converge, from: 100us, to: 600us, every: 50us}
  - {name: none, what: flow_converge, from: 100us, to: 150us, every: 50us}
  - {name: rates, what: flow_rate, from: 300us, to: 600us, stat: min}
  - {name: first, what: flow_rate, to: 100us, every: 50us, stat: max}
  - {name: jain, what: fairness, from: 300us}
  - {name: far, what: unfairness, from: 300us, every: 100us, stat: max}
`)
	checkMeasures(t, got, []want{
		{"to 5 %", 100, 1e-9}, {"alone", 100, 1e-9}, {"the first", 200, 1e-9}, {"the second", 200, 1e-9}, {"in the mean", 100, 1e-9}, {"rates", 47.4, 0.02}, {"first", 94.9, 0.01}, {"jain", 1, 1e-3},
	})
	for _, name := range []string{"never", "none"} {
		if v := got[name].Value; !math.IsNaN(v) {
			t.Errorf("%s: converged after %v µs, want never", name, v)
		}
	}
	if v := got["far"].Value; v > 2 {
		t.Errorf("up to %v %% off the fair rate, want less than 2", v)
	}
}

// TestFairBesideAcks: two flows in opposite directions share their links with each other's acknowledgements: 94.9
// Gb/s of payload, and 5.4 Gb/s of acknowledgements. Both then count as being at the fair rate, not 6 % off it.
func TestFairBesideAcks(t *testing.T) {
	got, _ := measured(t, star+`
flows:
  - {kind: flow, group: there, from: h0, to: h3, stop: 1ms}
  - {kind: flow, group: back, from: h3, to: h0, stop: 1ms}
run: {until: 600us}
measures:
  - {name: rate, what: flow_rate, from: 200us, to: 600us, stat: min}
  - {name: far, what: unfairness, from: 200us, to: 600us, every: 100us, stat: max}
`)
	checkMeasures(t, got, []want{{"rate", 100 * 1000. / (1054 + 64), 0.01}})
	if v := got["far"].Value; v > 1 {
		t.Errorf("up to %v %% off the fair rate, want less than 1", v)
	}
}

// TestNotificationsAndDrops: two groups share a marked queue, and each has its own CNPs. Lossy packets without
// memory are counted by class. DWRR serves two classes by their quanta.
func TestNotificationsAndDrops(t *testing.T) {
	got, o := measured(t, star+`
classes: {strict: [7], quanta: [3200B, 1600B]}
buffer: {policy: dt, size: 1MB, alpha: 1, lossless: [2], lossy_private: 3KB}
ecn: [{classes: [0, 1], kmin: 5KB, kmax: 5KB, pmax: 1}]
cnp_gap: 50us
flows:
  - {kind: flow, group: two, from: h0, to: h3, stop: 1ms}
  - {kind: flow, group: one, from: h1, to: h3, stop: 1ms, class: 1}
run: {until: 1ms, flows: true}
measures:
  - {name: two, what: goodput, group: two, from: 0.5ms}
  - {name: one, what: goodput, group: one, from: 0.5ms}
  - {name: cnps, what: cnps}
  - {name: cnps of two, what: cnps, group: two}
  - {name: cnps of one, what: cnps, group: one}
  - {name: drops, what: drops}
  - {name: drops 0, what: drops, class: 0}
  - {name: drops 1, what: drops, class: 1}
  - {name: drops 2, what: drops, class: 2}
`)
	rest := got["drops"].Value - got["drops 0"].Value
	checkMeasures(t, got, []want{
		{"two", 2 * got["one"].Value, 0.1}, {"drops 1", rest, 0}, {"drops 2", 0, 0},
		{"cnps of two", float64(o.Flows[0].CNPs), 0}, {"cnps", got["cnps of one"].Value + got["cnps of two"].Value, 0.06},
	})
	if got["cnps of one"].Value < 10 || rest == 0 || got["drops 0"].Value == 0 {
		t.Errorf("%v", got)
	}
}

// TestConvergeWantsAll: the flow that is farthest off decides. A sample without flows does not count.
func TestConvergeWantsAll(t *testing.T) {
	tr := &track{times: []float64{1, 2, 3, 4}, off: [][]float64{{0.2, 0.01}, {0.01, 0.04}, {0.01, 0.06}, {0, 0.03}}}
	for _, c := range []struct{ part, want float64 }{{0.1, 2}, {0.05, 4}, {0.5, 1}, {0.01, math.NaN()}} {
		if got := tr.within(c.part); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("within %v after %v, want %v", c.part, got, c.want)
		}
	}
	tr.off[3] = nil
	if got := tr.within(0.5); !math.IsNaN(got) {
		t.Errorf("without flows after %v", got)
	}
}

// TestCoflowCompletion: a coflow of one mapper and one reducer is a flow, and has the flow's completion time.
func TestCoflowCompletion(t *testing.T) {
	got, o := measured(t, star+`
flows:
  - {kind: coflows, group: one, mappers: 1, reducers: 1, size: 10KB, every: 100us, stop: 1ms}
  - {kind: poisson, group: many, size: 100KB, fan_in: 3, load: 0.1, stop: 1ms}
  - {kind: coflows, group: drawn, mappers: [1, 2], reducers: 1, size: 10KB, size_of: coflow, every: 20us, stop: 1ms}
run: {until: 2ms, stop_when_done: true, flows: true}
measures:
  - {name: one, what: cct, group: one, stat: min, cdf: true}
  - {name: flow, what: fct, group: one, stat: min}
  - {name: many, what: cct, group: many, sizes: 300KB-300001B, stat: min}
  - {name: parts, what: cct, group: many, sizes: 0-300KB}
`)
	checkMeasures(t, got, []want{{"one", got["flow"].Value, 0}})
	// Three times 100 packets through one link, and the path of the last.
	if least := 299 * 0.08432; got["many"].Value < least || !math.IsNaN(got["parts"].Value) {
		t.Errorf("fan-in of 300 KB in %v µs, want at least %v; fan-ins below 300 KB: %v", got["many"].Value, least, got["parts"].Value)
	}
	if o.Groups[0].Flows == 0 || o.Groups[1].Flows%3 != 0 {
		t.Errorf("groups %+v", o.Groups)
	}
	// Coflows of one mapper and of two have the same total size.
	sizes := map[int64]int{}
	for _, f := range o.Flows {
		if f.Group == "drawn" {
			sizes[f.Size]++
		}
	}
	if len(sizes) != 2 || sizes[10_000] == 0 || sizes[5_000] == 0 || sizes[5_000]%2 != 0 {
		t.Errorf("flows of drawn coflows by size: %v", sizes)
	}
}

// TestSummaries: over 1, 2, 3 and 4 the mean is 2.5, the standard error 0.6455 and Student's t
// for three degrees of freedom 3.182; a run without a value is counted and left out.
func TestSummaries(t *testing.T) {
	r := &Report{}
	for _, v := range []float64{3, 1, math.NaN(), 4, 2} {
		r.Outcomes = append(r.Outcomes, &Outcome{Measures: []Value{{Name: "onset", Value: v, Unit: "µs"}, {Name: "none", Value: math.NaN()}}})
	}
	s := r.Summaries()
	if len(s) != 2 || s[0].Runs != 5 || s[0].Mean() != 2.5 || math.Abs(s[0].Half()-3.1824*0.645497) > 1e-4 || s[0].Quantile(0.5) != 2 {
		t.Errorf("summaries %+v", s)
	}
	if len(s[1].Values) != 0 || !math.IsNaN(s[1].Mean()) || !math.IsNaN(s[1].Half()) || !math.IsNaN(s[1].Quantile(1)) {
		t.Errorf("a measure without values: %+v", s[1])
	}
	for i, want := range []string{"2.5 ± 2.0543 (1…4) in 4 of 5", "– in 0 of 5"} {
		if got := s[i].String(); got != want {
			t.Errorf("%s prints as %q, want %q", s[i].Measure, got, want)
		}
	}
}

// TestEachFlowConverges: a flow that is off its rate in its own last sample has not converged, even if it ends before
// the others.
func TestEachFlowConverges(t *testing.T) {
	of := func(offs ...[]float64) []float64 { // of two flows, by sample; NaN where a flow does not count
		tr := &track{}
		for i, list := range offs {
			var who []int
			var off []float64
			for flow, x := range list {
				if !math.IsNaN(x) {
					who, off = append(who, flow), append(off, x)
				}
			}
			tr.times, tr.who, tr.off = append(tr.times, float64(i+1)), append(tr.who, who), append(tr.off, off)
		}
		all := tr.each(0.1)
		slices.Sort(all)
		return all
	}
	none := math.NaN()
	for name, tc := range map[string]struct{ got, want []float64 }{
		"both":                      {of([]float64{0.5, 0.1}, []float64{0.1, 0.5}, []float64{0, 0}), []float64{2, 3}},
		"one ends at its rate":      {of([]float64{0.5, 0.5}, []float64{0.1, 0.5}, []float64{none, 0}), []float64{2, 3}},
		"one ends off its rate":     {of([]float64{0, 0.5}, []float64{0.5, 0.5}, []float64{none, 0}), nil},
		"one is off at the end":     {of([]float64{0, 0}, []float64{0, 0.5}), nil},
		"one leaves it and is back": {of([]float64{0, 0}, []float64{0.5, 0}, []float64{0, 0}), []float64{1, 3}},
	} {
		if !slices.Equal(tc.got, tc.want) {
			t.Errorf("%s: %v, want %v", name, tc.got, tc.want)
		}
	}
}
