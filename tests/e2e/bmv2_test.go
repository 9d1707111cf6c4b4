package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/daemon"
	"github.com/headgate/headgate/tests/dataplane/bmv2"
)

// A simple_switch_grpc that is killed and restarted is restored completely: program, entries, groups, clone
// session, and rates and depths of its queues.
func TestKilledBMv2ComesBack(t *testing.T) {
	bmv2.Need(t)
	ports := freePorts(t, 3)
	yaml := fmt.Sprintf(`
name: one
switches:
  - {name: s1, device_id: 7, address: "127.0.0.1:%d", target: bmv2, thrift: "127.0.0.1:%d"}
hosts:
  - {name: h1, ipv4: 10.0.1.1}
  - {name: h2, ipv4: 10.0.2.1}
links:
  - {a: "s1:1", b: h1, rate: 10Mbps}
  - {a: "s1:2", b: h2, rate: 10Mbps}
controller: {listen: "127.0.0.1:%d", metrics: "off"}
`, ports[0], ports[2], ports[1])
	cfg, err := config.Parse("one.yaml", []byte(yaml), nil, controller.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	kill := startSwitch(t, ports[0], ports[2])

	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := daemon.Run(ctx, daemon.Options{Config: cfg, Loopback: authz.Admin}); err != nil {
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
	startSwitch(t, ports[0], ports[2])
	eventually(t, "the switch is ready again", ready)
	if after := status(); after.Entries != before.Entries {
		t.Errorf("the restarted switch holds %d entries, want %d", after.Entries, before.Entries)
	}
	// The test reads the switch itself, not only the controller's view of it.
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

// startSwitch runs simple_switch_grpc without interfaces, and returns a function that kills it.
func startSwitch(t *testing.T, port, thrift int) (kill func()) {
	t.Helper()
	p, err := bmv2.Run(bmv2.Options{
		Dir: t.TempDir(), DeviceID: 7, Address: fmt.Sprintf("127.0.0.1:%d", port), Thrift: fmt.Sprintf("127.0.0.1:%d", thrift),
		Target: []string{"--cpu-port", "510", "--priority-queues", "8"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Log(p.Explain(errors.New("its output")))
		}
	})
	return p.Kill
}
