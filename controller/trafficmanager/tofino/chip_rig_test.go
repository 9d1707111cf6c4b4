package tofino_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/encoding/prototext"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/reconcile"
	"github.com/headgate/headgate/controller/p4runtime/session"
	"github.com/headgate/headgate/controller/trafficmanager/tofino"
	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/softswitch"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/tests/lag"
	"github.com/headgate/headgate/tests/switchtest"
	"github.com/headgate/headgate/units"
)

// chipRig is a fabric of two switches. s1 is an embedded switch with the v1model program. s2 serves
// a chip's P4Info, with a BF Runtime server beside it: it is an embedded switch's P4Runtime server
// with a stand-in program, which does everything except packets.
type chipRig struct {
	*fabric
	chip   string
	cpu    uint32
	s2     served
	bfrt   *tofino.Server
	device string // file with s2's device configuration
	at     string // address of s2
}

// chipInfo returns the P4Info of a chip's program.
func chipInfo(t *testing.T, chip string) (*p4configv1.P4Info, p4src.Program) {
	t.Helper()
	program, err := p4src.Tofino(chip)
	if err != nil {
		t.Fatal(err)
	}
	info := &p4configv1.P4Info{}
	if err := (prototext.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(program.P4Info, info); err != nil {
		t.Fatal(err)
	}
	return info, program
}

func newChipRig(t *testing.T, chip string, cpu uint32) *chipRig {
	t.Helper()
	info, program := chipInfo(t, chip)
	r := &chipRig{fabric: &fabric{t: t}, chip: chip, cpu: cpu, device: filepath.Join(t.TempDir(), "device.bin")}
	if err := os.WriteFile(r.device, standIn(t, info), 0o644); err != nil {
		t.Fatal(err)
	}
	r.bfrt = tofino.NewServer(t, chip)
	r.bfrt.Load(program.BFRT)
	s1 := r.start(1, 510, switchtest.Loopback())
	r.s2 = r.start(2, serverPort(cpu), switchtest.Loopback())
	r.at = r.s2.addr
	t.Cleanup(func() { s1.end(); r.s2.end() })
	r.c = running(t)
	r.yaml = fmt.Appendf(nil, `
name: two
scale: 1000
switches:
  - {name: s1, device_id: 1, address: %q, target: embedded}
  - {name: s2, device_id: 2, address: %q, target: %s, cpu_port: %d, device_config: %q, bf_runtime: %q, buffer: {policy: dsh}}
hosts: [{name: h1, ipv4: 10.0.0.1}, {name: h2, ipv4: 10.0.0.2}]
links:
  - {a: "s1:1", b: "s2:1", rate: 100Mbps}
  - {a: "s1:3", b: h1, rate: 100Mbps}
  - {a: "s2:3", b: h2, rate: 100Mbps}
qos:
  queue_limit: 8MB
  classes: [{dscp: 26, class: 3}, {dscp: 48, class: 6}]
  ecn: [{queue: 3, kmin: 10KB, kmax: 100KB, pmax: 0.5}]
soze: {shift: 2}
buffer: {policy: sih, size: 4MB, lossless: [3], allow_class_change: true}
pacc: {enabled: true, queue: 3}
controller: {poll_interval: "off", probe_interval: "off", resync_interval: 1s}
`, s1.addr, r.at, chip, cpu, r.device, r.bfrt.Addr())
	return r
}

// served is an embedded switch and its address.
type served struct {
	*softswitch.Switch
	addr string
	end  func()
}

// start makes a switch without a program, on a loop of its own.
func (r *chipRig) start(id uint64, cpu uint32, address string) served {
	r.t.Helper()
	loop := clock.NewLoop()
	s, err := softswitch.NewOnLoop(loop, softswitch.Config{Name: fmt.Sprintf("s%d", id), DeviceID: id, CPUPort: cpu, Traffic: tm.Config{Queues: 8}})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, p := range []uint32{1, 3} {
		if _, err := s.AddPort(p, 100*units.Mbps); err != nil {
			r.t.Fatal(err)
		}
	}
	addr, err := s.ServeGRPC(address, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = loop.RunReal(ctx) }()
	return served{s, addr.String(), func() { cancel(); <-done; s.Close() }}
}

// serverPort is the CPU port for a stand-in's P4Runtime server. 0 means none there, but Tofino 2's
// CPU port is 0.
func serverPort(cpu uint32) uint32 {
	if cpu == 0 {
		return 510
	}
	return cpu
}

// holds returns the entries of s2 as lines, read by another client.
func (r *chipRig) holds() []string {
	r.t.Helper()
	_, program := chipInfo(r.t, r.chip)
	p, err := pipeline.LoadChip(program.P4Info, program.BFRT, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	c, done, err := session.Dial(r.at, 2)
	if err != nil {
		r.t.Fatal(err)
	}
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	have, unreadable, err := reconcile.Read(ctx, c, p)
	if err != nil || len(unreadable) > 0 {
		r.t.Fatalf("%v, unreadable %v", err, unreadable)
	}
	var lines []string
	for _, e := range have.Entities() {
		lines = append(lines, p.Describe(e))
	}
	return lines
}

// plan returns the planned changes of s2.
func (r *chipRig) plan() []string {
	r.t.Helper()
	plan, err := r.c.Plan(context.Background(), "fabric.yaml", r.yaml, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	var lines []string
	if plan.Switches[1].Unreachable != "" {
		lines = append(lines, "unreachable: "+plan.Switches[1].Unreachable)
	}
	for _, c := range plan.Switches[1].Changes {
		lines = append(lines, c.Line())
	}
	return lines
}

// with returns the lines that begin with a text.
func with(lines []string, prefix string) []string {
	var list []string
	for _, l := range lines {
		if strings.HasPrefix(l, prefix) {
			list = append(list, l)
		}
	}
	return list
}

// fabric is a controller with its configuration.
type fabric struct {
	t    *testing.T
	c    *controller.Controller
	yaml []byte
}

// running returns a controller that runs until the test ends.
func running(t *testing.T) *controller.Controller {
	t.Helper()
	c, err := controller.New(controller.Options{
		RetryMin: 5 * time.Millisecond, RetryMax: 50 * time.Millisecond, ApplyTimeout: time.Minute,
		Heartbeat: time.Hour, // switches of tests without a data plane answer no polls
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = c.Run(ctx) })
	t.Cleanup(func() {
		stop()
		wg.Wait()
	})
	const nobody = `{name: none, switches: [{name: s0, device_id: 9, address: "127.0.0.1:1", target: embedded}]}`
	lag.Await(t, "a controller that runs", func() bool {
		_, results, err := c.Apply(ctx, "none.yaml", []byte(nobody))
		if err != nil {
			t.Fatal(err)
		}
		return results[0].Error != "the controller does not run yet"
	})
	return c
}

func (f *fabric) edit(old, fresh string) {
	f.t.Helper()
	if !strings.Contains(string(f.yaml), old) {
		f.t.Fatalf("no %q in the configuration", old)
	}
	f.yaml = []byte(strings.ReplaceAll(string(f.yaml), old, fresh))
}

func (f *fabric) apply() []*pb.SwitchResult {
	f.t.Helper()
	_, results, err := f.c.Apply(context.Background(), "fabric.yaml", f.yaml)
	if err != nil {
		f.t.Fatal(err)
	}
	return results
}

func (f *fabric) state(sw string) *pb.SwitchStatus {
	s, ok := f.c.Switch(sw)
	if !ok {
		f.t.Fatalf("no switch %s", sw)
	}
	return s
}

func (f *fabric) becomes(sw string, state pb.SwitchStatus_State) {
	f.t.Helper()
	lag.Await(f.t, fmt.Sprintf("%s in state %d", sw, state), func() bool { return f.state(sw).State == state })
}

// pushes returns how often s2 was given a program.
func (f *fabric) pushes() int {
	return len(f.c.Events().Recent(1000, func(e *pb.Event) bool { return e.Kind == "pipeline.pushed" && e.Subject == "s2" }))
}
