package metrics

import (
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/view"
)

// featureSource shows one row of every table that a feature has.
type featureSource struct {
	source
	tables []*view.Table
}

func (s *featureSource) Tables() []*view.Table { return s.tables }

// TestFeatures holds what the real features show to Prometheus' conventions and to those of
// `headgate get status`.
func TestFeatures(t *testing.T) {
	core, err := controller.New(controller.Options{})
	if err != nil {
		t.Fatal(err)
	}
	src, seen, columns := &featureSource{tables: core.Tables()}, map[string]bool{}, 0
	sw := view.Switch{Name: "s1", State: view.Ready}
	for _, table := range src.tables {
		name := table.Feature + " " + table.Name
		if seen[name] {
			t.Errorf("two tables %q", name)
		}
		seen[name] = true
		row := view.Row{Keys: make([]string, len(table.Keys))}
		for _, c := range table.Columns {
			if c.Head == "" || c.Head != strings.ToUpper(c.Head) {
				t.Errorf("%s: heading %q, want capitals", name, c.Head)
			}
			if c.Metric != "" {
				columns++
			}
			if seen[c.Metric] && c.Metric != "" {
				t.Errorf("two metrics %q", c.Metric)
			}
			seen[c.Metric] = true
			row.Values = append(row.Values, 1)
		}
		sw.Status = append(sw.Status, view.Status{Table: table, Rows: []view.Row{row}})
	}
	src.switches = []view.Switch{sw}
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(NewCollector(Options{Source: src})); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := promlint.NewWithMetricFamilies(families).Lint(); err != nil || len(problems) != 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
	form := regexp.MustCompile(`^headgate_[a-z_]+$`)
	for _, f := range families {
		if base := strings.TrimSuffix(f.GetName(), "_total"); !form.MatchString(base) || !strings.HasSuffix(f.GetHelp(), ".") {
			t.Errorf("%s: %q, want small letters, and a sentence", f.GetName(), f.GetHelp())
		}
		if seen[strings.TrimPrefix(strings.TrimSuffix(f.GetName(), "_total"), Namespace+"_")] {
			columns--
		}
	}
	if columns != 0 {
		t.Errorf("%d metrics of features are not shown", columns)
	}
}
