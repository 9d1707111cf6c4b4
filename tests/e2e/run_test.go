// Package e2e runs whole fabrics: the compiled P4 program on embedded switches, the controller
// over P4Runtime, hosts, and the API between them.
package e2e

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/emulation"
	"github.com/headgate/headgate/tests/lag"
	"github.com/headgate/headgate/tests/race"
)

// pair is two leaves and a spine at 20 Mb/s with two hosts per leaf, on free ports, and further sections.
func pair(t *testing.T, more string) *config.Config {
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
	cfg, err := config.Parse("pair.yaml", []byte(yaml+more), nil, controller.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// freePorts returns TCP ports of loopback that were free a moment ago.
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

// play plays phases on a fabric. It fails with the logs if the run fails or is invalid for another reason than a
// busy machine. A run that the machine disturbed is repeated once; then the test is skipped, because the run
// proves nothing.
func play(t *testing.T, length time.Duration, restarts []emulation.Restart, phases ...emulation.Phase) *emulation.Report {
	t.Helper()
	race.SkipRealTime(t)
	var report *emulation.Report
	invalid := lag.Repeat(t, 2, func() string {
		var logs, table bytes.Buffer
		var err error
		report, err = emulation.Play(t.Context(), emulation.Options{
			Scenario: emulation.Shares("test", "test", phases...), Config: pair(t, ""), For: length, Restarts: restarts,
			Log: slog.New(slog.NewTextHandler(&logs, nil)),
		})
		if err != nil {
			t.Fatalf("%v\n%s", err, logs.String())
		}
		if err := report.WriteTable(&table); err != nil {
			t.Fatal(err)
		}
		t.Log("\n" + table.String())
		if report.Valid {
			return ""
		}
		invalid := fmt.Sprintf("the run is invalid: %q", report.Variants[0].Invalid)
		if !report.Disturbed() {
			t.Fatalf("%s\n%s", invalid, logs.String())
		}
		return invalid
	})
	if invalid != "" {
		t.Skip("the machine was too busy for a fabric in real time, twice: " + invalid)
	}
	return report
}

func start(name, from, to string, port uint16, weight float64) emulation.Action {
	return emulation.Action{Start: &emulation.Flow{Name: name, From: []string{from}, To: to, SrcPort: port, Weight: weight}}
}

func TestFlowsShareByWeight(t *testing.T) {
	report := play(t, 12*time.Second, nil,
		emulation.Phase{Name: "1:2", Actions: []emulation.Action{start("A", "h1", "h4", 20001, 1), start("B", "h2", "h3", 20002, 2)}},
		emulation.Phase{Name: "3:2", Actions: []emulation.Action{{Weight: &emulation.Weight{Flow: "A", Value: 3}}}},
	)
	if !report.Within {
		t.Errorf("not every flow is within its share without loss: %+v", report.Checks)
	}
	for _, p := range report.Variants[0].Phases {
		for _, f := range p.Flows {
			if want := "leaf1:3"; f.Bottleneck != want {
				t.Errorf("phase %s: the bottleneck of %s is %s, want %s", p.Name, f.Name, f.Bottleneck, want)
			}
		}
	}
}

func TestRestartedSwitchComesBack(t *testing.T) {
	report := play(t, 20*time.Second, []emulation.Restart{{Switch: "spine", At: 2 * time.Second}},
		emulation.Phase{Name: "the spine restarts empty", Actions: []emulation.Action{start("A", "h1", "h4", 20001, 1), start("B", "h2", "h3", 20002, 1)}},
		emulation.Phase{Name: "afterwards"},
	)
	run := report.Variants[0]
	if run.Losses.Switches == 0 {
		t.Error("the restarted switch lost nothing: it was not away")
	}
	for _, f := range run.Phases[1].Flows {
		if f.Error < -5 || f.Error > 5 {
			t.Errorf("after the restart %s is %.1f %% from its share, want at most 5 %%", f.Name, f.Error)
		}
	}
}
