package bmv2_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/tests/lag"
	"github.com/headgate/headgate/tests/switchtest"
)

// TestThrift: apply sets rate and depth of a BMv2's queues, and sets them again after a restart of
// the switch. A plan shows them first. An unreachable Thrift service degrades the switch.
func TestThrift(t *testing.T) {
	sw, service := switchtest.New(t, 1), newServer(t)
	sw.BMv2 = true
	sw.Start()
	c, err := controller.New(controller.Options{RetryMin: 5 * time.Millisecond, RetryMax: 50 * time.Millisecond, ApplyTimeout: time.Minute, Heartbeat: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = c.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	// Two queues at 2 Mb/s are 250 packets/s of 1000 B; 6 kB are 100 of the shortest frames.
	text := func(rate string) []byte {
		return fmt.Appendf(nil, `
name: one
switches:
  - {name: s1, device_id: 1, address: %q, target: bmv2, thrift: %q, packet_size: 1000B, ports: [{number: 2, queue_limit: 12KB}]}
hosts: [{name: h1, ipv4: 10.0.0.1}, {name: h2, ipv4: 10.0.0.2}]
links: [{a: "s1:1", b: h1, rate: 2Mbps}, {a: "s1:2", b: h2, rate: %s}]
qos: {queue_limit: 6KB}
`, sw.Address(), service.Addr(), rate)
	}
	both := func(second int64) map[int32]queues {
		return map[int32]queues{1: {Rate: 250, Depth: 164}, 2: {Rate: second, Depth: 264}}
	}
	yaml := text("4Mbps")
	plan := func() (lines []string, unreachable string) {
		t.Helper()
		planned, err := c.Plan(ctx, "f.yaml", yaml, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range planned.Switches[0].Changes {
			if strings.HasPrefix(c.Table, "traffic manager ") {
				lines = append(lines, c.Line())
			}
		}
		return lines, planned.Switches[0].Unreachable
	}
	apply := func() *pb.SwitchResult {
		t.Helper()
		_, results, err := c.Apply(ctx, "f.yaml", yaml)
		if err != nil {
			t.Fatal(err)
		}
		return results[0]
	}
	holds := func(what string, second int64) {
		t.Helper()
		lag.Await(t, what, func() bool { return maps.Equal(service.Ports(), both(second)) })
	}
	if lines, _ := plan(); len(lines) != 4 || lines[1] != "traffic manager set_egress_queue_rate port 1: unknown → 250 packets/s" {
		t.Errorf("plan = %q", lines)
	}
	lag.Await(t, "a controller that runs", func() bool { return apply().Error == "" })
	holds("all queues", 500)
	yaml = text("8Mbps")
	if lines, _ := plan(); len(lines) != 1 || lines[0] != "traffic manager set_egress_queue_rate port 2: 500 packets/s → 1000 packets/s" {
		t.Errorf("plan of another rate = %q", lines)
	}
	if r := apply(); r.Error != "" {
		t.Fatal(r.Error)
	}
	holds("the other rate", 1000)

	sw.Stop()
	service.Stop()
	sw.Lose()
	sw.Start()
	lag.Await(t, "degraded", func() bool {
		s, _ := c.Switch("s1")
		return s.State == pb.SwitchStatus_STATE_DEGRADED && strings.Contains(s.Error, "traffic manager: thrift: dial tcp "+service.Addr()+": connect: connection refused")
	})
	if lines, unreachable := plan(); len(lines) != 4 || !strings.Contains(unreachable, "connection refused") {
		t.Errorf("plan without the service = %q, unreachable %q", lines, unreachable)
	}
	service.Start()
	holds("the restarted switch", 1000)
	lag.Await(t, "ready", func() bool {
		s, _ := c.Switch("s1")
		return s.State == pb.SwitchStatus_STATE_READY
	})

	yaml = []byte(strings.Replace(string(text("8Mbps")), "rate: 2Mbps", "rate: 7Kbps", 1))
	_, _, err = c.Apply(ctx, "f.yaml", yaml)
	const slow = `f.yaml:4: switches[0]: makes ports[0].rate 7Kbps for the traffic manager of the switch "s1", want a packet of 1KB a second or more`
	if err == nil || !strings.Contains(err.Error(), slow) {
		t.Errorf("less than a packet a second: %v", err)
	}
}
