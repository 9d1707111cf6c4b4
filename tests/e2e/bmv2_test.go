package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/daemon"
)

// needBMv2 skips unless the test was asked for and its tools are there.
func needBMv2(t *testing.T, tools ...string) {
	t.Helper()
	if os.Getenv("HEADGATE_BMV2") != "1" {
		t.Skip("runs on simple_switch_grpc with HEADGATE_BMV2=1 (make test-bmv2)")
	}
	for _, tool := range append(tools, "simple_switch_grpc") {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not on the PATH", tool)
		}
	}
}

// Three real hosts send to a fourth over two switches in Mininet, with weights 1, 2 and 4
// that the daemon hands out.
func TestMininet(t *testing.T) {
	needBMv2(t, "mn")
	if os.Geteuid() != 0 {
		t.Skip("Mininet makes network namespaces, which needs root")
	}
	for _, kind := range []string{"headgate", "bmv2"} {
		t.Run(kind, func(t *testing.T) {
			out, err := exec.Command("/usr/bin/python3", "../../mininet/line.py", "--switch", kind,
				"--weights", "1,2,4", "--seconds", "30", "--logs", t.TempDir()).Output()
			if err != nil {
				text := ""
				if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
					text = string(exit.Stderr)
				}
				t.Fatalf("%v\n%s", err, text)
			}
			checkShares(t, out)
		})
	}
}

// checkShares reads what mininet/line.py measured. Real interfaces and a shared machine
// are no virtual clock: 10 % is what distinguishes weights from chance here.
func checkShares(t *testing.T, out []byte) {
	t.Helper()
	var measured struct {
		PingLoss float64 `json:"ping_loss_percent"`
		Senders  []struct {
			Host    string  `json:"host"`
			Weight  float64 `json:"weight"`
			Summary struct {
				Flows []struct {
					Goodput float64 `json:"goodput_bps"`
				} `json:"flows"`
			} `json:"summary"`
		} `json:"senders"`
	}
	if err := json.Unmarshal(out, &measured); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	if measured.PingLoss != 0 {
		t.Errorf("h1 ping h4 lost %v %%", measured.PingLoss)
	}
	var sum, weights float64
	for _, s := range measured.Senders {
		if len(s.Summary.Flows) != 1 {
			t.Fatalf("%s reports %d flows, want 1", s.Host, len(s.Summary.Flows))
		}
		sum += s.Summary.Flows[0].Goodput
		weights += s.Weight
	}
	// 5 Mb/s of frames, of which 1000 of 1062 bytes are payload; BMv2 counts packets of 1078.
	if sum < 4.3e6 || sum > 4.8e6 {
		t.Errorf("together %.2f Mb/s, want about 4.7", sum/1e6)
	}
	for _, s := range measured.Senders {
		got, want := s.Summary.Flows[0].Goodput, sum*s.Weight/weights
		t.Logf("%s weight %g: %.3f Mb/s, share %.3f", s.Host, s.Weight, got/1e6, want/1e6)
		if math.Abs(got/want-1) > 0.1 {
			t.Errorf("%s with weight %g has %.3f Mb/s, want %.3f within 10 %%", s.Host, s.Weight, got/1e6, want/1e6)
		}
	}
}

// A simple_switch_grpc that is killed and started again comes back whole: program, entries,
// groups, clone session.
func TestKilledBMv2ComesBack(t *testing.T) {
	needBMv2(t)
	ports := freePorts(t, 4)
	yaml := fmt.Sprintf(`
name: one
switches:
  - {name: s1, device_id: 7, address: "127.0.0.1:%d", target: bmv2}
hosts:
  - {name: h1, ipv4: 10.0.1.1}
  - {name: h2, ipv4: 10.0.2.1}
links:
  - {a: "s1:1", b: h1, rate: 10Mbps}
  - {a: "s1:2", b: h2, rate: 10Mbps}
controller: {listen: "127.0.0.1:%d", metrics: "off"}
`, ports[0], ports[1])
	cfg, err := config.Reparse("one.yaml", []byte(yaml), nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	kill := startSwitch(t, dir, 7, ports[0], ports[2])

	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := daemon.Run(ctx, daemon.Options{Config: cfg}); err != nil {
			t.Error(err)
		}
	})
	defer wg.Wait()
	defer cancel()
	conn, err := grpc.NewClient(cfg.Controller.Listen, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	api := pb.NewFabricServiceClient(conn)
	status := func() *pb.SwitchStatus {
		list, err := api.ListSwitches(ctx, &pb.ListSwitchesRequest{}, grpc.WaitForReady(true))
		if err != nil || len(list.Switches) != 1 {
			t.Fatalf("%v, %v", list, err)
		}
		return list.Switches[0]
	}
	ready := func() bool { return status().State == pb.SwitchStatus_STATE_READY }
	eventually(t, "the switch is ready", ready)
	before := status()
	if before.Entries == 0 {
		t.Fatal("a ready switch holds no entries")
	}

	kill()
	eventually(t, "the controller notices", func() bool { return status().State == pb.SwitchStatus_STATE_DISCONNECTED })
	startSwitch(t, dir, 7, ports[0], ports[3])
	eventually(t, "the switch is ready again", ready)
	if after := status(); after.Entries != before.Entries {
		t.Errorf("the restarted switch holds %d entries, want %d", after.Entries, before.Entries)
	}
	// What the controller believes is one thing, what the switch holds another.
	plan, err := api.PlanConfig(ctx, &pb.PlanConfigRequest{Config: yaml, File: "one.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plan.Switches {
		if p.Unreachable != "" || len(p.Changes) > 0 {
			t.Errorf("after the restart a plan wants %v %v", p.Unreachable, p.Changes)
		}
	}
}

// startSwitch runs simple_switch_grpc without interfaces, and returns what kills it.
func startSwitch(t *testing.T, dir string, device, grpcPort, thriftPort int) (kill func()) {
	t.Helper()
	c := exec.Command("simple_switch_grpc", "--device-id", fmt.Sprint(device), "--no-p4", "--thrift-port", fmt.Sprint(thriftPort),
		"--log-file", filepath.Join(dir, fmt.Sprint("bmv2-", thriftPort)), "--",
		"--grpc-server-addr", fmt.Sprintf("127.0.0.1:%d", grpcPort), "--cpu-port", "510", "--priority-queues", "8")
	var out strings.Builder
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	kill = func() {
		once.Do(func() {
			_ = c.Process.Kill()
			_ = c.Wait()
		})
	}
	t.Cleanup(func() {
		kill()
		if t.Failed() {
			t.Log(out.String())
		}
	})
	return kill
}
