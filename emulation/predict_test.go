package emulation

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

// TestPredict: the simulator predicts measurements of real packets: DSH's fan-in on an embedded switch
// at 20 Mb/s, from a valid run.
func TestPredict(t *testing.T) {
	s, err := Find("dsh")
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.Select([]string{"sih", "dsh"}); err != nil {
		t.Fatal(err)
	}
	phases := func(during float64) []PhaseResult {
		return []PhaseResult{{Flows: []FlowPhase{{Name: "F0", Measured: 46.8e9}}}, {Flows: []FlowPhase{{Name: "F0", Measured: during}}}}
	}
	measured := []*Result{{
		Variant: "sih", Pause: Pause{Frames: 30, TimeUS: 936}, Victim: &Victim{Flow: "F0"}, Phases: phases(29.573e9),
		Pools: map[string]Pools{"right": {Headroom: 390_400}, "left": {}}, Flows: []FlowTotal{{Flows: 24, Done: 24, LastUS: 140.81}},
	}, {
		Variant: "dsh", Pause: Pause{Frames: 2, TimeUS: 11.04}, Victim: &Victim{Flow: "F0"}, Phases: phases(45.307e9),
		Flows: []FlowTotal{{Flows: 24, Done: 23}}, // which is no completion time
	}, {Variant: "static"}} // which measured no victim
	for i, r := range measured {
		v := s.Variants[i%2]
		c, err := s.Configure(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.predict(t.Context(), c, v, r); err != nil {
			t.Fatal(err)
		}
		if want := []int{7, 6, 0}[i]; len(r.Predicted) != want {
			t.Errorf("%s: %d predictions, want %d", r.Variant, len(r.Predicted), want)
		}
		for _, p := range r.Predicted {
			if p.Predicted.Mean == nil || p.Measured == 0 && *p.Predicted.Mean != 0 || p.Error != nil && math.Abs(*p.Error) > 5 {
				t.Errorf("%s: %s: predicted %v, measured %v", r.Variant, p.What, p.Predicted, p.Measured)
			}
		}
	}
	var table bytes.Buffer
	predictedTable(&table, &Report{Variants: measured})
	for _, want := range []string{"pause time µs\t935.", "sih\tPAUSE frames\t29\t30\t-3 %", "lossless drops\t0\t0\t–\tyes"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, table.String())
		}
	}
}

// TestPredictCompletions: completed flows are scored by size, relative to their completion time on an idle fabric.
func TestPredictCompletions(t *testing.T) {
	s, err := Find("bursts")
	if err != nil {
		t.Fatal(err)
	}
	v := s.Variants[1]
	c, err := s.Configure(v)
	if err != nil {
		t.Fatal(err)
	}
	r := &Result{Victim: &Victim{Before: 46.8e9, During: 46.8e9}, Flows: []FlowTotal{
		{Name: "F0", Flows: 1},
		{Name: "small", Flows: 16, Done: 2, Ended: []Completion{{"h3", 8000, 10}, {"h4", 8000, 20}}},
		{Name: "middle", Flows: 4, Done: 1, Ended: []Completion{{"h7", 64_000, 30}}},
		{Name: "large", Flows: 3, Done: 1, Ended: []Completion{{"h1", 256_000, 80}}},
	}}
	if err := s.predict(t.Context(), c, v, r); err != nil {
		t.Fatal(err)
	}
	got := map[string]Predicted{}
	for _, p := range r.Predicted {
		got[p.What] = p
	}
	for name, want := range map[string]float64{"fct_to_10KB": 15, "fct_p99_to_10KB": 20, "fct_to_100KB": 30, "fct_to_1MB": 80} {
		if p, ok := got[name]; !ok || math.Abs(p.Measured-want) > 1e-9 || p.Predicted.Mean == nil || p.Error == nil {
			t.Errorf("%s: %+v, want %g measured", name, p, want)
		}
	}
	// A flow of 8 KB has 9 packets. Alone at 100 Gb/s over four hops it takes 9 packets' time, three more hops and
	// 8 µs.
	if p := got["slowdown_p99_to_10KB"]; math.Abs(20/p.Measured-9.2) > 0.4 {
		t.Errorf("slowdown %v for 20 µs: alone a flow takes %v µs", p.Measured, 20/p.Measured)
	}
	if _, ok := got["fct_from_1MB"]; ok {
		t.Error("flows that were not measured are scored")
	}
}

func TestBurstFaults(t *testing.T) {
	for _, tc := range []struct {
		c    Command
		want string
	}{
		{Command{Scenario: "dsh", Burst: "much"}, `--burst "much": want an amount from 1B to 1MB, such as 64KB`},
		{Command{Scenario: "dsh", Burst: "2MB"}, `--burst "2MB": want`},
		{Command{Scenario: "soze", Burst: "2KB"}, "--burst and --predict: scenario soze has neither: want one of dsh, spfc, spfc-12, incast, permutation, bursts"},
		{Command{Scenario: "soze", Predict: true}, "--burst and --predict"},
		{Command{Scenario: "pacc", Predict: true}, "--predict: scenario pacc is not predicted"},
	} {
		if _, err := tc.c.options(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %q", tc.c, err, tc.want)
		}
	}
	o, err := Command{Scenario: "spfc", Burst: "32KB", Predict: true}.options()
	if flows := o.Scenario.Flows(); err != nil || !o.Predict || flows[len(flows)-1].Size != 32_000 || flows[0].Size != 0 {
		t.Errorf("%+v, %v", o.Scenario, err)
	}
}
