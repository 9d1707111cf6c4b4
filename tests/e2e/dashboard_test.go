package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/emulation"
	"github.com/headgate/headgate/tests/lag"
	"github.com/headgate/headgate/tests/race"
)

// unseen are the dashboard's panels that stay empty on a fabric without their feature.
var unseen = map[string]bool{
	"Share of time paused": true, "PAUSE frames": true, "Pools": true, "Victim": true, "PFC storm": true,
	"Notifications": true, "Watched queue": true, "Flow table": true,
}

// TestDashboard: a Prometheus scrapes a running fabric, and the test runs each query of the Grafana dashboard on
// it, with Grafana's variables filled in.
func TestDashboard(t *testing.T) {
	race.SkipRealTime(t)
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Skip("prometheus is not on the PATH: it is in Debian's package prometheus")
	}
	text, err := os.ReadFile("../../deploy/grafana/headgate.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	cfg := pair(t, "")
	address := fmt.Sprintf("127.0.0.1:%d", freePorts(t, 1)[0])
	dir := t.TempDir()
	scrape := fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs: [{job_name: headgate, static_configs: [{targets: [%q]}]}]\n", cfg.Controller.Metrics)
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(scrape), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	server := exec.CommandContext(ctx, "prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+dir, "--web.listen-address="+address, "--log.level=error")
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	wg.Go(func() { server.Wait() }) // it ends with the context
	shares := emulation.Shares("test", "test", emulation.Phase{Name: "a flow", Actions: []emulation.Action{start("A", "h1", "h4", 20001, 1)}})
	played := make(chan error, 1)
	wg.Go(func() {
		_, err := emulation.Play(ctx, emulation.Options{Scenario: shares, Config: cfg, For: time.Minute, Log: slog.New(slog.DiscardHandler)})
		played <- err
	})

	lag.Await(t, "ten scrapes", func() bool {
		n, err := query(address, "count_over_time(up[1m]) >= 10 and up == 1")
		return err == nil && n > 0
	})
	for _, p := range board.Panels {
		for _, q := range p.Targets {
			expr := strings.NewReplacer("$switch", ".*", "$__rate_interval", "10s").Replace(q.Expr)
			n, err := query(address, expr)
			if err != nil {
				t.Errorf("%s: %s: %v", p.Title, expr, err)
			} else if (n == 0) != unseen[p.Title] {
				t.Errorf("%s: %s gives %d series", p.Title, expr, n)
			}
		}
	}
	cancel()
	<-played
}

// query returns the number of series of an instant query.
func query(address, expr string) (int, error) {
	r, err := http.Get("http://" + address + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct{ Result []any }
	}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		return 0, err
	}
	if answer.Status != "success" {
		return 0, fmt.Errorf("Prometheus answers %q", answer.Error)
	}
	return len(answer.Data.Result), nil
}
