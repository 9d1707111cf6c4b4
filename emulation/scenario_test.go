package emulation

import (
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/examples"
	"github.com/headgate/headgate/units"
)

// leafSpine is the fabric of `headgate run` without -f.
func leafSpine(t *testing.T) *config.Config {
	t.Helper()
	c, err := config.Parse("leaf-spine.yaml", examples.LeafSpine, nil, controller.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestScenariosFit checks that every scenario fits its fabric in every variant.
func TestScenariosFit(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range All() {
		if seen[s.Name] {
			t.Errorf("two scenarios are named %s", s.Name)
		}
		seen[s.Name] = true
		if s.Fabric == nil {
			if err := s.check(leafSpine(t)); err != nil {
				t.Error(err)
			}
			continue
		}
		names := map[string]bool{}
		times := s.Times(0)
		if _, err := s.claims(); err != nil {
			t.Error(err)
		}
		for _, m := range s.Measures {
			if meters[m.What].of == nil {
				t.Errorf("%s: measure %s is of %q, want one of meters", s.Name, m.Name, m.What)
			}
		}
		for _, v := range s.Variants {
			if names[v.Name] {
				t.Errorf("%s has two variants %s", s.Name, v.Name)
			}
			names[v.Name] = true
			c, err := s.Configure(v)
			if err == nil {
				err = s.check(c)
			}
			if err != nil {
				t.Errorf("%s: %v", s.Name, err)
				continue
			}
			if c.Scaled(s.Sample) < 5*units.Millisecond {
				t.Errorf("%s: samples come every %v of wall clock, want at least 5 ms", s.Name, c.Scaled(s.Sample))
			}
			if run := c.Scaled(times[len(times)-1]); run > 12*units.Second {
				t.Errorf("%s: a variant runs for %v, want at most 12 s", s.Name, run)
			}
			if lag := maxLag(c); lag < 10*units.Millisecond {
				t.Errorf("%s, %s: may be at most %v late, which no machine is", s.Name, v.Name, lag)
			}
		}
		for _, at := range times {
			if at%s.Sample != 0 {
				t.Errorf("%s: a phase begins at %v, want a whole number of samples of %v", s.Name, at, s.Sample)
			}
		}
	}
}

func TestFaultsOfAScenario(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Scenario)
		want   string
	}{
		{"flow", func(s *Scenario) { s.Phases[0].Actions[0].Start.To = "r7" }, `scenario dsh: flow F0: no host "r7" in built-in dsh.yaml, sih`},
		{"burst", func(s *Scenario) { s.Phases[1].Actions[0].Start.To = "r7" }, `scenario dsh: flow fan-in: no host "r7" in`},
		{"limit", func(s *Scenario) { s.Limits = map[string]float64{"h77": 1} }, `scenario dsh: limit: no host "h77" in`},
		{"port", func(s *Scenario) { s.Port.Node = "up" }, `scenario dsh: port up:3: no such switch in`},
		{"stop", func(s *Scenario) { s.Phases[2].Actions = []Action{{Stop: "F7"}} }, `scenario dsh: F7 leaves: no such flow has begun`},
		{"weight", func(s *Scenario) { s.Phases[0].Actions = []Action{{Weight: &Weight{"F0", 2}}} }, `scenario dsh: F0's weight becomes 2: no such flow has begun`},
		{"variant", func(s *Scenario) { s.Variants[0].Config = "buffer: {policy: best}" }, `variant sih: built-in dsh.yaml, sih:`},
	}
	for _, tt := range tests {
		s, _ := Find("dsh")
		tt.change(&s)
		if _, err := (&Options{Scenario: s}).validate(); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
}

func TestSelect(t *testing.T) {
	s, err := Find("spfc")
	if err != nil {
		t.Fatal(err)
	}
	two, err := s.Select([]string{"spfc", "dt"})
	if err != nil || !slices.Equal(two.VariantNames(), []string{"spfc", "dt"}) {
		t.Errorf("spfc,dt selects %v, %v", two.VariantNames(), err)
	}
	if all, err := s.Select(nil); err != nil || len(all.Variants) != len(s.Variants) {
		t.Errorf("no names select %d variants, %v", len(all.Variants), err)
	}
	if _, err := s.Select([]string{"dsh"}); err == nil || err.Error() != `--variant: variant "dsh" of scenario spfc: want one of dt, static, spfc, dsh+spfc` {
		t.Errorf("dsh of spfc: %v", err)
	}
}

func TestTimes(t *testing.T) {
	s := Scenario{Phases: []Phase{{For: 2 * units.Second}, {}, {For: units.Second}, {}}}
	var got []float64
	for _, at := range s.Times(9 * units.Second) {
		got = append(got, at.Seconds())
	}
	if want := []float64{0, 2, 5, 6, 9}; !slices.Equal(got, want) {
		t.Errorf("phases begin at %v s, want %v", got, want)
	}
}

func TestActionsReadAs(t *testing.T) {
	for want, a := range map[string]Action{
		"F0 joins: h0 → r0":                   {Start: &Flow{Name: "F0", From: []string{"h0"}, To: "r0"}},
		"A joins: h1 → h8, weight 2":          {Start: &Flow{Name: "A", From: []string{"h1"}, To: "h8", Weight: 2}},
		"b: 2 hosts send 8 × 64 KB each to r": {Start: &Flow{Name: "b", From: []string{"h1", "h2"}, To: "r", Size: 64 * units.KB, Rounds: 8}},
		"A leaves":                            {Stop: "A"},
		"A's weight becomes 0.5":              {Weight: &Weight{"A", 0.5}},
		"l1–s1 is taken out of the routes":    {Link: &LinkChange{"l1", "s1", false}},
		"l1–s1 returns to the routes":         {Link: &LinkChange{"l1", "s1", true}},
	} {
		if got := a.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
