package metrics

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestDeploy checks that the dashboard and the alerting rules use only existing metrics.
func TestDeploy(t *testing.T) {
	known := map[string]bool{}
	name := regexp.MustCompile(`fqName: "([a-z_]+)"`)
	descs := make(chan *prometheus.Desc, 1000)
	NewCollector(Options{Source: &source{}}).Describe(descs)
	close(descs)
	for d := range descs {
		known[name.FindStringSubmatch(d.String())[1]] = true
	}
	for _, file := range []string{"prometheus/headgate.rules.yaml", "prometheus/headgate.rules.test.yaml", "grafana/headgate.json"} {
		text, err := os.ReadFile(filepath.Join("../../../deploy", file))
		if err != nil {
			t.Fatal(err)
		}
		used := regexp.MustCompile(Namespace+`_[a-z_]+`).FindAllString(string(text), -1)
		if len(used) < 5 {
			t.Errorf("%s names only %d metrics", file, len(used))
		}
		for _, m := range used {
			if !known[m] {
				t.Errorf("%s: %s is no metric", file, m)
			}
		}
	}
}

func TestRules(t *testing.T) {
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("promtool is not on the PATH: it is in Debian's package prometheus")
	}
	for _, args := range []string{"check rules headgate.rules.yaml", "test rules headgate.rules.test.yaml"} {
		cmd := exec.Command("promtool", strings.Fields(args)...)
		cmd.Dir = "../../../deploy/prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", args, err, out)
		}
	}
}
