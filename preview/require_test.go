package preview

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/preview/observed"
)

// predicted is a preview with some predicted values of a measure.
func predicted(name string, low, mean, high float64) *Preview {
	r := &Range{Low: low, High: high, text: "about that"}
	if !math.IsNaN(mean) {
		r.Mean = &mean
	}
	return &Preview{Seeds: 3, Measures: []Measure{{Name: "other", Sides: Sides[Range]{After: &Range{}}}, {Name: name, Sides: Sides[Range]{After: r}}}}
}

func TestRequirements(t *testing.T) {
	for _, tc := range []struct {
		text  string
		value [3]float64
		want  string // of the refusal; "" keeps to it
	}{
		{"pause_time<1%", [3]float64{0, 0.5, 0.99}, ""},
		{"pause_time<1%", [3]float64{0, 0.5, 1}, "pause_time is predicted as about that %, in the worst of 3 seeds 1 %: want pause_time<1%"},
		{"pause_time <= 1 %", [3]float64{0, 0.5, 1}, ""},
		{"fct_p99<0.1ms", [3]float64{1, 2, 99}, ""},
		{"fct_p99<100us", [3]float64{1, 2, 101}, "in the worst of 3 seeds 101 µs"},
		{"stopped<1µs", [3]float64{1, 2, 3}, "3 µs"},
		{"headroom<=64KB", [3]float64{1, 2, 64}, ""},
		{"headroom<64KB", [3]float64{1, 2, 64}, "64 KB"},
		{"victim_flows<=0", [3]float64{0, 0, 0}, ""},
		{"drops<1", [3]float64{0, 0, 2}, "seeds 2: want drops<1"},
		{"slowdown>=1", [3]float64{0.9, 2, 3}, "0.9"},
		{"slowdown>1", [3]float64{1.1, 2, 3}, ""},
		{"slowdown<9", [3]float64{0, math.NaN(), 0}, "has no value"},
	} {
		r, err := ParseRequirement(tc.text)
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		err = r.Check(predicted(r.name, tc.value[0], tc.value[1], tc.value[2]))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s of %v: %v, want %q", tc.text, tc.value, err, tc.want)
		}
	}
}

func TestRequirementFaults(t *testing.T) {
	for text, want := range map[string]string{
		"pause_time":            "want a measure, one of < <= > >= and a limit",
		"pause_time=1%":         "want a measure, one of",
		"pause_time<":           "want a measure, one of",
		"hope<1":                `there is no measure "hope": want one of pause_time, pause_mean, stopped`,
		"pause_time<1":          `the limit is "1", want percent such as 1%`,
		"pause_time<1us":        "want percent",
		"fct<10":                "want a time such as 100us",
		"fct<1.2.3us":           "want a time",
		"headroom<1%":           "want an amount such as 64KB",
		"victim_flows<1KB":      "want a number without a unit",
		"drops<.":               "want a number",
		"":                      `"" is not allowed: want a measure`,
		"pause_time<-1%":        `"pause_time<-1%" is not allowed: want a measure`,
		"pause_time<1%%":        `the limit is "1%%", want percent`,
		"pause_time<1%,drops<1": "want a measure, one of",
		"fct<99999999999999s":   "want a time such as 100us",
	} {
		if _, err := ParseRequirement(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestUnits: requirements have the units of the simulator's measures.
func TestUnits(t *testing.T) {
	p, err := Run(t.Context(), Options{After: parse(t, "a", fan(sih)), Traffic: Traffic{File: "t.yaml", Text: []byte(fanIn)}, Seed: 1, Seeds: 1})
	if err != nil {
		t.Fatal(err)
	}
	names, unit := Measures()
	if len(names) != len(p.Measures) {
		t.Errorf("%d measures, %d were measured", len(names), len(p.Measures))
	}
	for i, m := range p.Measures {
		if m.Name != names[i] || m.Unit != unit[m.Name] {
			t.Errorf("%s in %q, want %s in %q", m.Name, m.Unit, names[i], unit[names[i]])
		}
	}
}

// TestSizesAreReported: hosts count flows by the sizes that previews predict, and the controller gives them the
// same names.
func TestSizesAreReported(t *testing.T) {
	var want, got []string
	for i := range len(agent.SizeBounds) + 1 {
		var s observed.Sizes
		from, below := "0", ""
		if i > 0 {
			s.From, from = uint64(agent.SizeBounds[i-1]), agent.SizeBounds[i-1].String()
		}
		if i < len(agent.SizeBounds) {
			s.Below, below = uint64(agent.SizeBounds[i]), agent.SizeBounds[i].String()
		}
		for _, what := range []string{"fct", "slowdown"} {
			want = append(want, what+observed.SizeName(s)+" of "+from+"-"+below)
		}
	}
	for _, m := range list() {
		if m.Sizes != "" && m.Stat == "mean" {
			got = append(got, m.Name+" of "+m.Sizes)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("predicted are %q, counted %q", got, want)
	}
}
