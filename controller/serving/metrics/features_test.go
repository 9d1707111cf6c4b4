package metrics

import (
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"google.golang.org/protobuf/encoding/protojson"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/serving/tables"
)

// everyRow adds a row to every table.
const everyRow = `{
	"buffer": {"switch": {"threshold_bytes": 1, "polled": "2026-01-01T00:00:00Z"}, "pools": [{}], "ports": [{"late": "1s", "most_late": "1s"}],
		"classes": [{"paused": true, "paused_time": "1s", "lossless_drops": 1}], "watchdog": [{}], "alarms": [{}]},
	"pfcwatchdog": {"switch": {"read": "2026-01-01T00:00:00Z"}, "classes": [{}], "roots": [{}]},
	"pacc": {"loop": {"lateness": "1s", "most_late": "1s"}, "ports": [{}]},
	"telemetry": {"ports": [{"delay": "1s", "polled": "2026-01-01T00:00:00Z"}], "queues": [{}]}
}`

// TestFeatures checks that the features' tables follow the conventions of Prometheus and of
// `headgate get status`.
func TestFeatures(t *testing.T) {
	status := &pb.FeatureStatus{}
	if err := protojson.Unmarshal([]byte(everyRow), status); err != nil {
		t.Fatal(err)
	}
	seen, columns := map[string]bool{}, 0
	for _, table := range tables.All {
		name := table.Feature + " " + table.Name
		if seen[name] {
			t.Errorf("two tables %q", name)
		}
		seen[name] = true
		if len(table.Rows(status)) != 1 {
			t.Errorf("%s has no row", name)
		}
		for _, c := range table.Columns {
			if c.GetHead() == "" || c.GetHead() != strings.ToUpper(c.GetHead()) {
				t.Errorf("%s: heading %q, want capitals", name, c.GetHead())
			}
			if c.GetMetric() != "" {
				columns++
			}
			if seen[c.GetMetric()] && c.GetMetric() != "" {
				t.Errorf("two metrics %q", c.GetMetric())
			}
			seen[c.GetMetric()] = true
		}
	}
	src := &source{switches: []*pb.SwitchStatus{{Name: "s1", State: pb.SwitchStatus_STATE_READY, Features: status}}}
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
