package compare

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/units"
)

// TestScenariosFit holds every comparison against its fabric under every variant.
func TestScenariosFit(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range All() {
		if seen[s.Name] {
			t.Errorf("two scenarios are named %s", s.Name)
		}
		seen[s.Name] = true
		names := map[string]bool{}
		for _, v := range s.Variants {
			if names[v.Name] {
				t.Errorf("%s has two variants %s", s.Name, v.Name)
			}
			names[v.Name] = true
			c, err := s.configure(v)
			if err != nil {
				t.Errorf("%s: %v", s.Name, err)
				continue
			}
			if c.Scaled(s.Sample) < 5*units.Millisecond {
				t.Errorf("%s: samples come every %v of wall clock, want at least 5 ms", s.Name, c.Scaled(s.Sample))
			}
			if run := c.Scaled(s.End); run > 12*units.Second {
				t.Errorf("%s: a variant runs for %v, want at most 12 s", s.Name, run)
			}
		}
		for _, w := range []Window{s.Before, s.During} {
			if w.From%s.Sample != 0 || w.To%s.Sample != 0 || w.From >= w.To || w.To > s.End {
				t.Errorf("%s: the window %v to %v, want whole samples of %v within %v", s.Name, w.From, w.To, s.Sample, s.End)
			}
		}
		for _, b := range s.Bursts {
			if b.At != s.During.From {
				t.Errorf("%s: the burst begins at %v and its window at %v", s.Name, b.At, s.During.From)
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
		{"flow", func(s *Scenario) { s.Flows[0].To = "r7" }, `scenario dsh: flow F0: no host "r7" in its fabric`},
		{"burst", func(s *Scenario) { s.Bursts[0].To = "r7" }, `scenario dsh: burst fan-in: no host "r7" in its fabric`},
		{"limit", func(s *Scenario) { s.Limits = map[string]float64{"h77": 1} }, `scenario dsh: limit: no host "h77" in its fabric`},
		{"port", func(s *Scenario) { s.Port.Node = "up" }, `scenario dsh: port up:3: no such switch in its fabric`},
		{"variant", func(s *Scenario) { s.Variants[0].Config = "buffer: {policy: best}" }, `variant sih: built-in dsh.yaml, sih:`},
	}
	for _, tt := range tests {
		s, _ := Find("dsh")
		tt.change(&s)
		if _, err := s.configure(s.Variants[0]); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
}

func TestSelect(t *testing.T) {
	s, ok := Find("spfc")
	if !ok {
		t.Fatal("there is no spfc")
	}
	if _, ok := Find("soze"); ok {
		t.Error("soze is no comparison")
	}
	two, err := s.Select([]string{"spfc", "dt"})
	if err != nil || len(two.Variants) != 2 || two.Variants[0].Name != "spfc" || two.Variants[1].Name != "dt" {
		t.Errorf("spfc,dt selects %v, %v", two.Variants, err)
	}
	if all, err := s.Select(nil); err != nil || len(all.Variants) != len(s.Variants) {
		t.Errorf("no names select %d variants, %v", len(all.Variants), err)
	}
	if _, err := s.Select([]string{"dsh"}); err == nil || err.Error() != `variant "dsh" of scenario spfc: want one of dt, static, spfc, dsh+spfc` {
		t.Errorf("dsh of spfc: %v", err)
	}
}
