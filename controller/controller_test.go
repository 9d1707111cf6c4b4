package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/events"
	"github.com/headgate/headgate/controller/internal/fakeswitch"
	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fabric is the example's fabric on fake switches.
type fabric struct {
	t        *testing.T
	c        *Controller
	yaml     []byte
	config   *config.Config
	switches map[string]*fakeswitch.Switch
	stop     func()

	mu  sync.Mutex
	cut map[string]bool // wires, by link
}

// example returns the example with other times and addresses.
func example(t *testing.T, address func(i int) string) []byte {
	t.Helper()
	raw, err := os.ReadFile("../examples/leaf-spine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for i := range 6 {
		text = strings.ReplaceAll(text, fmt.Sprintf("127.0.0.1:955%d", i+1), address(i))
	}
	for old, fresh := range map[string]string{
		"poll_interval: 100ms": "poll_interval: 20ms", "probe_interval: 500ms": "probe_interval: 20ms",
		"probe_timeout: 3s": "probe_timeout: 60s", "unreachable_after: 5s": "unreachable_after: 1s",
		"resync_interval: 60s": "resync_interval: 1s",
	} {
		text = strings.ReplaceAll(text, old, fresh)
	}
	return []byte(text)
}

func options() Options {
	return Options{RetryMin: 5 * time.Millisecond, RetryMax: 50 * time.Millisecond, Settle: 10 * time.Second}
}

// newFabric makes the switches, and a controller that runs until the test ends.
func newFabric(t *testing.T) *fabric {
	t.Helper()
	f := &fabric{t: t, switches: map[string]*fakeswitch.Switch{}, cut: map[string]bool{}}
	var list []*fakeswitch.Switch
	for i := range 6 {
		list = append(list, fakeswitch.New(t, uint64(i+1)))
	}
	f.yaml = example(t, func(i int) string { return list[i].Address() })
	cfg, err := config.Parse("fabric.yaml", f.yaml)
	if err != nil {
		t.Fatal(err)
	}
	f.config = cfg
	for i, s := range cfg.Switches {
		f.switches[s.Name] = list[i]
	}
	f.c, f.stop = f.controller(options())
	f.wire()
	return f
}

// controller runs a controller until the test, or the returned function, ends it.
func (f *fabric) controller(o Options) (*Controller, func()) {
	f.t.Helper()
	c, err := New(o)
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Run(ctx) }()
	for running := false; !running; time.Sleep(time.Millisecond) {
		c.mu.RLock()
		running = c.running != nil
		c.mu.RUnlock()
	}
	var once sync.Once
	stop := func() { once.Do(func() { cancel(); <-done }) }
	f.t.Cleanup(stop)
	return c, stop
}

func (f *fabric) startAll() {
	for _, s := range f.switches {
		s.Start()
	}
}

// wire makes the switches answer polls and carry probes to each other.
func (f *fabric) wire() {
	for _, sw := range f.config.Switches {
		s := f.switches[sw.Name]
		s.OnPacket(func(out *p4v1.PacketOut) {
			m := out.GetMetadata()
			port, mode := uint32(pipeline.Number(m[0].GetValue())), pipeline.Number(m[2].GetValue())
			switch mode {
			case ids.PacketOutPoll:
				r := pollreport.Report{Port: port, LastDelay: 5, DepartedBytes: 1000, DepartedPackets: 10, AdmissionDrops: 1}
				r.QueueBytes[3] = 77
				s.PacketIn(packetIn(port, ids.PacketInPoll, append(r.Append(nil), out.GetPayload()...)))
			case ids.PacketOutPort:
				f.carry(sw.Name, port, out.GetPayload())
			}
		})
	}
}

func packetIn(port uint32, reason uint64, payload []byte) *p4v1.PacketIn {
	return &p4v1.PacketIn{Payload: payload, Metadata: []*p4v1.PacketMetadata{
		{MetadataId: ids.MetaPacketInIngressPort, Value: pipeline.Uint(uint64(port))},
		{MetadataId: ids.MetaPacketInQueue, Value: pipeline.Uint(0)},
		{MetadataId: ids.MetaPacketInReason, Value: pipeline.Uint(reason)},
	}}
}

// carry takes a frame over the link on a port, unless its wire is cut.
func (f *fabric) carry(sw string, port uint32, frame []byte) {
	for _, l := range f.config.Links {
		far := l.B
		if l.B == (config.Endpoint{Node: sw, Port: port}) {
			far = l.A
		} else if l.A != (config.Endpoint{Node: sw, Port: port}) {
			continue
		}
		f.mu.Lock()
		cut := f.cut[l.Name]
		f.mu.Unlock()
		if s := f.switches[far.Node]; s != nil && !cut {
			s.PacketIn(packetIn(far.Port, 2, frame))
		}
	}
}

func (f *fabric) setWire(link string, up bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut[link] = !up
}

func (f *fabric) apply() []view.Result {
	f.t.Helper()
	_, results, err := f.c.Apply(context.Background(), "fabric.yaml", f.yaml)
	if err != nil {
		f.t.Fatal(err)
	}
	return results
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never came: %s", what)
		}
	}
}

func (f *fabric) state(sw string) view.Switch {
	for _, s := range f.c.Switches() {
		if s.Name == sw {
			return s
		}
	}
	f.t.Fatalf("no switch %s", sw)
	return view.Switch{}
}

func (f *fabric) becomes(sw string, state view.SwitchState) {
	f.t.Helper()
	eventually(f.t, fmt.Sprintf("%s in state %d", sw, state), func() bool { return f.state(sw).State == state })
}

// group returns the members of leaf1's group towards leaf2.
func (f *fabric) group() string {
	for _, line := range f.switches["leaf1"].Describe() {
		if text, ok := strings.CutPrefix(line, "ingress.routing.ecmp group 2 → members "); ok {
			return text
		}
	}
	return "none"
}

func TestApply(t *testing.T) {
	f := newFabric(t)
	f.startAll()
	if got := f.c.Fabric(); got.Name != "" || f.c.Switches() != nil {
		t.Errorf("fabric before the first apply = %+v", got)
	}
	plans, err := f.c.Plan(context.Background(), "fabric.yaml", f.yaml)
	if err != nil {
		t.Fatal(err)
	}
	if len(plans) != 6 || plans[0].Unreachable != "" || plans[0].Changes[0].Text != "pipeline: push" {
		t.Errorf("plan = %+v", plans[0])
	}
	if writes, _, pushes := f.switches["leaf1"].Counts(); writes != 0 || pushes != 0 {
		t.Error("a plan writes")
	}
	for _, r := range f.apply() {
		if r.Err != "" || r.Inserted == 0 {
			t.Errorf("result = %+v", r)
		}
	}
	want := []string{
		"clone session 510 → ports 510",
		"ingress.routing.ecmp member 1 → set_next_hop(port=1, src_mac=02:00:00:01:00:01, dst_mac=06:00:0a:00:01:01)",
		"ingress.routing.ecmp member 3 → set_next_hop(port=3, src_mac=02:00:00:01:00:03, dst_mac=02:00:00:05:00:01)",
		"ingress.routing.ecmp group 3 → members 3, 4",
		"ingress.routing.ipv4_lpm dst_addr=10.0.1.1/32 → member 1",
		"ingress.routing.ipv4_lpm dst_addr=10.0.3.2/32 → group 3",
		"ingress.classify.dscp_to_class dscp=48 → set_class(class=6, queue=6)",
		"ingress.admission.queue_limit default → set_queue_limit(bytes=1000000)",
		"egress.maxqd.maxqd_scale default → set_scale(shift=3)",
		"ingress.punt.punt_table ether_type=0x88cc&0xffff priority 10 → punt_to_cpu(reason=2)",
	}
	lines := f.switches["leaf1"].Describe()
	for _, w := range want {
		if !slices.Contains(lines, w) {
			t.Errorf("leaf1 lacks %s\nit has:\n%s", w, strings.Join(lines, "\n"))
		}
	}
	fab := f.c.Fabric()
	if fab.Generation != 1 || len(fab.Hosts) != 8 || len(fab.Links) != 16 || !fab.Links[0].Up || fab.Links[0].Delay != 2*time.Millisecond || fab.Config != string(f.yaml) {
		t.Errorf("fabric = %+v", fab)
	}
	leaf := f.state("leaf1")
	if leaf.State != view.Ready || leaf.Entries != len(lines) || len(leaf.Ports) != 4 || leaf.Ports[2].Peer != "spine1" {
		t.Errorf("leaf1 = %+v, it has %d entries", leaf, len(lines))
	}
	for _, c := range leaf.Capabilities {
		if c.Name == "register_read" && (c.Supported || !strings.Contains(c.Detail, "poll packets")) {
			t.Errorf("capability = %+v", c)
		}
	}
	before, _, _ := f.switches["leaf1"].Counts()
	for _, r := range f.apply() {
		if r.Err != "" || r.Inserted+r.Modified+r.Deleted != 0 {
			t.Errorf("second apply = %+v", r)
		}
	}
	plans, err = f.c.Plan(context.Background(), "fabric.yaml", f.yaml)
	if err != nil || len(plans[0].Changes) != 0 {
		t.Errorf("plan of what is = %+v, %v", plans, err)
	}
	if after, _, _ := f.switches["leaf1"].Counts(); after != before {
		t.Errorf("%d writes for nothing", after-before)
	}
	fewer := strings.Replace(string(f.yaml), "  - {name: h8, ipv4: 10.0.4.2}\n", "", 1)
	fewer = strings.Replace(fewer, "  - {a: \"leaf4:2\", b: h8, rate: 50Mbps, delay: 1us}\n", "", 1)
	plans, err = f.c.Plan(context.Background(), "fabric.yaml", []byte(fewer))
	if err != nil || len(plans[0].Changes) != 1 || plans[0].Changes[0] != (view.Change{Kind: view.Delete, Text: "ingress.routing.ipv4_lpm dst_addr=10.0.4.2/32 → group 4"}) {
		t.Errorf("plan without h8 = %+v, %v", plans, err)
	}
	generation, results, err := f.c.Apply(context.Background(), "fabric.yaml", []byte(fewer))
	if err != nil || generation != 3 || results[0].Deleted != 1 || results[3].Deleted != 2 {
		t.Errorf("apply without h8 = %d, %+v, %v", generation, results, err)
	}
}

func TestFaultsApplyNothing(t *testing.T) {
	f := newFabric(t)
	f.startAll()
	bad := strings.Replace(string(f.yaml), "scale: 2000", "scale: 0", 1)
	_, _, err := f.c.Apply(context.Background(), "fabric.yaml", []byte(bad))
	var faults interface{ Faults() []view.Fault }
	if !errors.As(err, &faults) || faults.Faults()[0].Field != "scale" {
		t.Errorf("error = %v", err)
	}
	if _, err := f.c.Plan(context.Background(), "fabric.yaml", []byte(bad)); err == nil {
		t.Error("a plan of a faulty configuration")
	}
	if f.c.Config() != nil || f.c.Fabric().Generation != 0 {
		t.Error("something was applied")
	}
}

func TestSaveFails(t *testing.T) {
	f := newFabric(t)
	o := options()
	o.Generation = 41
	o.Save = func(string, []byte, uint64) error { return errors.New("disk full") }
	c, _ := f.controller(o)
	if _, _, err := c.Apply(context.Background(), "f", f.yaml); err == nil || c.Config() != nil || c.Fabric().Generation != 41 {
		t.Errorf("error = %v, generation %d", err, c.Fabric().Generation)
	}
}

func TestUnreachableSwitch(t *testing.T) {
	f := newFabric(t)
	for name, s := range f.switches {
		if name != "spine2" {
			s.Start()
		}
	}
	for _, r := range f.apply() {
		if (r.Err != "") != (r.Switch == "spine2") {
			t.Errorf("result = %+v", r)
		}
	}
	plans, err := f.c.Plan(context.Background(), "f", f.yaml)
	if err != nil || !strings.Contains(plans[5].Unreachable, "refused") || len(plans[5].Changes) == 0 {
		t.Errorf("plan of spine2 = %+v, %v", plans[5], err)
	}
	eventually(t, "routes around spine2", func() bool { return f.group() == "3" })
	f.switches["spine2"].Start()
	f.becomes("spine2", view.Ready)
	eventually(t, "routes over spine2", func() bool { return f.group() == "3, 4" })
}

func TestKilledSwitchComesBackWhole(t *testing.T) {
	for _, bmv2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("bmv2=%v", bmv2), func(t *testing.T) {
			f := newFabric(t)
			s := f.switches["leaf1"]
			s.BMv2 = bmv2
			f.startAll()
			f.apply()
			want := s.Describe()
			s.Stop()
			f.becomes("leaf1", view.Disconnected)
			s.Lose()
			s.Start()
			f.becomes("leaf1", view.Ready)
			if got := s.Describe(); !slices.Equal(got, want) {
				t.Errorf("it has %d entries, had %d", len(got), len(want))
			}
			if _, _, pushes := s.Counts(); pushes != 2 {
				t.Errorf("%d pushes, want 2", pushes)
			}
			// A restart that kept its state gets neither pipeline nor entries.
			_, before, _ := s.Counts()
			s.Stop()
			f.becomes("leaf1", view.Disconnected)
			s.Start()
			f.becomes("leaf1", view.Ready)
			if _, after, pushes := s.Counts(); pushes != 2 || after != before {
				t.Errorf("%d pushes, %d more updates", pushes, after-before)
			}
		})
	}
}

func TestLinks(t *testing.T) {
	f := newFabric(t)
	f.yaml = []byte(strings.Replace(string(f.yaml), "probe_timeout: 60s", "probe_timeout: 500ms", 1))
	f.startAll()
	f.apply()
	ctx := context.Background()
	eventually(t, "both ways", func() bool { return f.group() == "3, 4" })
	if err := f.c.SetLink(ctx, "leaf1", "spine1", false); err != nil {
		t.Fatal(err)
	}
	eventually(t, "routes without the link", func() bool { return f.group() == "4" })
	if p := f.state("leaf1").Ports[2]; p.Up {
		t.Errorf("port = %+v", p)
	}
	if err := f.c.SetLink(ctx, "spine1", "leaf1:3", true); err != nil {
		t.Fatal(err)
	}
	eventually(t, "routes with the link", func() bool { return f.group() == "3, 4" })
	if err := f.c.SetLink(ctx, "leaf1", "leaf2", false); err == nil {
		t.Error("a link that is not there was set")
	}

	sub := f.c.Events().Subscribe(events.Options[view.Event]{})
	defer sub.Close()
	f.setWire("leaf1:4-spine2:1", false)
	eventually(t, "routes without the dead link", func() bool { return f.group() == "3" })
	f.setWire("leaf1:4-spine2:1", true)
	eventually(t, "routes with the link", func() bool { return f.group() == "3, 4" })
	// Both ways dead: a suspect way is better than none.
	f.setWire("leaf1:3-spine1:1", false)
	f.setWire("leaf1:4-spine2:1", false)
	eventually(t, "both suspect", func() bool { p := f.state("leaf1").Ports; return !p[2].Up && !p[3].Up })
	eventually(t, "routes over both", func() bool { return f.group() == "3, 4" })
	var kinds []string
	for !slices.Contains(kinds, "link.up") {
		list, _, err := sub.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			kinds = append(kinds, e.Kind)
		}
	}
	if !slices.Contains(kinds, "link.down") {
		t.Errorf("events = %v", kinds)
	}
}

func TestTelemetry(t *testing.T) {
	f := newFabric(t)
	sub := f.c.Samples().Subscribe(events.Options[view.Sample]{Match: func(s view.Sample) bool { return s.Switch == "leaf1" && s.Port == 3 }})
	defer sub.Close()
	f.startAll()
	f.apply()
	list, _, err := sub.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	s := list[0]
	// The unit is 8 µs: see config.TestExample.
	if s.Peer != "spine1" || s.QueueingDelay != 40*time.Microsecond || s.DepartureBytes != 1000 || s.QueueBytes[3] != 77 || s.Drops != 1 || s.Time.IsZero() {
		t.Errorf("sample = %+v", s)
	}
}

func TestTwoControllers(t *testing.T) {
	f := newFabric(t)
	f.startAll()
	f.apply()
	second, _ := f.controller(options())
	_, results, err := second.Apply(context.Background(), "fabric.yaml", f.yaml)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if !strings.Contains(r.Err, "backup") {
			t.Errorf("result = %+v", r)
		}
	}
	all := func(c *Controller, state view.SwitchState) func() bool {
		return func() bool {
			return !slices.ContainsFunc(c.Switches(), func(s view.Switch) bool { return s.State != state })
		}
	}
	eventually(t, "the second is backup", all(second, view.Backup))
	if f.state("leaf1").State != view.Ready {
		t.Errorf("the first is %+v", f.state("leaf1"))
	}
	f.stop()
	eventually(t, "the second is primary", all(second, view.Ready))
}

func TestRefusedUpdates(t *testing.T) {
	f := newFabric(t)
	s := f.switches["leaf1"]
	s.SetRefuse(func(u *p4v1.Update) (codes.Code, string) {
		if u.GetEntity().GetActionProfileGroup().GetGroupId() == 3 {
			return codes.ResourceExhausted, "no room"
		}
		return codes.OK, ""
	})
	f.startAll()
	r := f.apply()[0]
	if !strings.Contains(r.Err, "no room") || !strings.Contains(r.Err, "ingress.routing.ecmp group 3") {
		t.Errorf("result = %+v", r)
	}
	if v := f.state("leaf1"); v.State != view.Degraded || v.Err != r.Err {
		t.Errorf("leaf1 = %+v", v)
	}
	s.SetRefuse(nil)
	f.becomes("leaf1", view.Ready)
}

// flaky fails every third unary call, as a bad network would.
func flaky() grpc.ServerOption {
	var mu sync.Mutex
	n := 0
	fail := func() error {
		mu.Lock()
		defer mu.Unlock()
		if n++; n%3 == 0 {
			return status.Error(codes.Unavailable, "injected")
		}
		return nil
	}
	return grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if err := fail(); err != nil {
			return nil, err
		}
		return next(ctx, req)
	})
}

func TestFlakySwitch(t *testing.T) {
	f := newFabric(t)
	for name, s := range f.switches {
		if name == "leaf1" {
			s.Start(flaky())
		} else {
			s.Start()
		}
	}
	f.apply()
	f.becomes("leaf1", view.Ready)
	if got := f.switches["leaf1"].Entities(); got != f.state("leaf1").Entries {
		t.Errorf("%d entries, want %d", got, f.state("leaf1").Entries)
	}
}

func TestDriftIsRepaired(t *testing.T) {
	f := newFabric(t)
	f.startAll()
	f.apply()
	s := f.switches["leaf1"]
	want := s.Describe()
	if err := s.Corrupt(func(line string) bool { return strings.Contains(line, "ipv4_lpm") }); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the repair", func() bool { return slices.Equal(s.Describe(), want) })
}

func TestWrongPipelineIsReplaced(t *testing.T) {
	f := newFabric(t)
	other, err := pipeline.New(f.c.pipe.Info(), []byte(`{"another":"program"}`))
	if err != nil {
		t.Fatal(err)
	}
	f.startAll()
	o := options()
	o.Pipeline = other
	c, stop := f.controller(o)
	if _, _, err := c.Apply(context.Background(), "f", f.yaml); err != nil {
		t.Fatal(err)
	}
	stop()
	plans, err := f.c.Plan(context.Background(), "f", f.yaml)
	if err != nil || !strings.Contains(plans[0].Changes[0].Text, "replace") {
		t.Errorf("plan = %+v, %v", plans[0], err)
	}
	for _, r := range f.apply() {
		if r.Err != "" {
			t.Errorf("result = %+v", r)
		}
	}
	if _, _, pushes := f.switches["leaf1"].Counts(); pushes != 2 {
		t.Errorf("%d pushes, want 2", pushes)
	}
}
