// Package e2e runs whole fabrics: the compiled P4 program on embedded switches, the
// controller over P4Runtime, hosts, and the API in between.
package e2e

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/scenario"
)

// pair is two leaves and a spine at 20 Mb/s with two hosts each, on free ports.
func pair(t *testing.T) *config.Config {
	t.Helper()
	ports := freePorts(t, 5)
	yaml := fmt.Sprintf(`
name: pair
scale: 5000
switches:
  - {name: leaf1, device_id: 1, address: "127.0.0.1:%d", target: embedded}
  - {name: leaf2, device_id: 2, address: "127.0.0.1:%d", target: embedded}
  - {name: spine, device_id: 3, address: "127.0.0.1:%d", target: embedded}
hosts:
  - {name: h1, ipv4: 10.0.1.1}
  - {name: h2, ipv4: 10.0.1.2}
  - {name: h3, ipv4: 10.0.2.1}
  - {name: h4, ipv4: 10.0.2.2}
links:
  - {a: "leaf1:1", b: h1, rate: 20Mbps, delay: 1us}
  - {a: "leaf1:2", b: h2, rate: 20Mbps, delay: 1us}
  - {a: "leaf2:1", b: h3, rate: 20Mbps, delay: 1us}
  - {a: "leaf2:2", b: h4, rate: 20Mbps, delay: 1us}
  - {a: "leaf1:3", b: "spine:1", rate: 20Mbps, delay: 1us}
  - {a: "leaf2:3", b: "spine:2", rate: 20Mbps, delay: 1us}
qos:
  queue_limit: 1MB
  classes:
    - {dscp: 0, class: 0, queue: 0}
    - {dscp: 48, class: 6, queue: 6}
applications:
  - {name: default, budget: 100}
controller: {listen: "127.0.0.1:%d", metrics: "127.0.0.1:%d"}
`, ports[0], ports[1], ports[2], ports[3], ports[4])
	cfg, err := config.Reparse("pair.yaml", []byte(yaml), nil)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// freePorts returns TCP ports of loopback that nobody listened on a moment ago.
func freePorts(t *testing.T, n int) []int {
	t.Helper()
	ports := make([]int, 0, n)
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// play runs a script and fails with the logs when the run does.
func play(t *testing.T, o scenario.Options) *scenario.Report {
	t.Helper()
	var logs bytes.Buffer
	o.Log = slog.New(slog.NewTextHandler(&logs, nil))
	report, _, err := scenario.Play(context.Background(), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, logs.String())
	}
	var table bytes.Buffer
	if err := report.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
	if t.Failed() {
		t.Log(logs.String())
	}
	return report
}

func TestFlowsShareByWeight(t *testing.T) {
	report := play(t, scenario.Options{
		Config: pair(t),
		For:    12 * time.Second,
		Script: scenario.Script{Name: "test", Phases: []scenario.Phase{
			{Name: "1:2", Actions: []scenario.Action{
				{Start: &scenario.Flow{Name: "A", From: "h1", To: "h4", SrcPort: 20001, Weight: 1}},
				{Start: &scenario.Flow{Name: "B", From: "h2", To: "h3", SrcPort: 20002, Weight: 2}},
			}},
			{Name: "3:2", Actions: []scenario.Action{
				{Weight: &scenario.Weight{Flow: "A", Value: 3}},
			}},
		}},
	})
	if !report.Within {
		t.Errorf("not every flow is within its share without loss")
	}
	for _, p := range report.Phases {
		for _, f := range p.Flows {
			if want := "leaf1:3"; f.Bottleneck != want {
				t.Errorf("phase %s: the bottleneck of %s is %s, want %s", p.Name, f.Name, f.Bottleneck, want)
			}
		}
	}
}

func TestRestartedSwitchComesBack(t *testing.T) {
	report := play(t, scenario.Options{
		Config:   pair(t),
		For:      20 * time.Second,
		Restarts: []scenario.Restart{{Switch: "spine", At: 2 * time.Second}},
		Script: scenario.Script{Name: "test", Phases: []scenario.Phase{
			{Name: "the spine restarts empty", Actions: []scenario.Action{
				{Start: &scenario.Flow{Name: "A", From: "h1", To: "h4", SrcPort: 20001, Weight: 1}},
				{Start: &scenario.Flow{Name: "B", From: "h2", To: "h3", SrcPort: 20002, Weight: 1}},
			}},
			{Name: "afterwards"},
		}},
	})
	if report.Losses.Switches == 0 {
		t.Error("the restarted switch lost nothing: it was not away")
	}
	for _, f := range report.Phases[1].Flows {
		if f.Error < -5 || f.Error > 5 {
			t.Errorf("after the restart %s is %.1f %% from its share, want at most 5 %%", f.Name, f.Error)
		}
	}
}
