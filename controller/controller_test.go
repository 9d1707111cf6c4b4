package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/serving/events"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
)

func TestApply(t *testing.T) {
	f := newFabric(t)
	f.switches["leaf2"].BMv2 = true
	f.startAll()
	if got := f.c.Fabric(); got.Name != "" || f.c.Switches() != nil {
		t.Errorf("fabric before the first apply = %+v", got)
	}
	plan, err := f.c.Plan(context.Background(), "fabric.yaml", f.yaml, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Switches) != 6 || len(plan.Controller) == 0 || plan.Switches[0].Unreachable != "" || !strings.HasPrefix(plan.Switches[0].Changes[0].Line(), "pipeline → program ") {
		t.Errorf("plan = %+v", plan.Switches[0])
	}
	if writes, _, pushes := f.switches["leaf1"].Counts(); writes != 0 || pushes != 0 {
		t.Error("a plan writes")
	}
	for _, r := range f.apply() {
		if r.Error != "" || r.Inserted == 0 {
			t.Errorf("result = %+v", r)
		}
	}
	want := []string{
		fmt.Sprintf("clone session %d → ports %d", ids.PollCloneSession, ids.CPUPort),
		"ingress.routing.ecmp member 1 → set_next_hop(port=1, src_mac=02:00:00:01:00:01, dst_mac=06:00:0a:00:01:01)",
		"ingress.routing.ecmp member 3 → set_next_hop(port=3, src_mac=02:00:00:01:00:03, dst_mac=02:00:00:05:00:01)",
		"ingress.routing.ecmp group 3 → members 3, 4, while their ports are up",
		"ingress.routing.ipv4_lpm dst_addr=10.0.1.1/32 → member 1",
		"ingress.routing.ipv4_lpm dst_addr=10.0.3.0/30 → group 3",
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
	if fab.Generation != 1 || len(fab.Hosts) != 8 || len(fab.Links) != 16 || fab.Links[0].State != pb.PortStatus_STATE_UNKNOWN || fab.Links[0].Delay.AsDuration() != 2*time.Millisecond || fab.Config != string(f.yaml) {
		t.Errorf("fabric = %+v", fab)
	}
	leaf := f.state("leaf1")
	if leaf.State != pb.SwitchStatus_STATE_READY || int(leaf.Entries) != len(lines) || len(leaf.Ports) != 4 || leaf.Ports[2].Peer != "spine1" {
		t.Errorf("leaf1 = %+v, it has %d entries", leaf, len(lines))
	}
	for sw, detail := range map[string]string{"leaf1": "tried", "leaf2": "poll packets"} {
		for _, c := range f.state(sw).Capabilities {
			if c.Name == "register_read" && (c.Supported != (sw == "leaf1") || !strings.Contains(c.Detail, detail)) {
				t.Errorf("capability of %s = %+v", sw, c)
			}
		}
	}
	before, _, _ := f.switches["leaf1"].Counts()
	for _, r := range f.apply() {
		if r.Error != "" || r.Inserted+r.Modified+r.Deleted != 0 {
			t.Errorf("second apply = %+v", r)
		}
	}
	plan, err = f.c.Plan(context.Background(), "fabric.yaml", f.yaml, 0)
	if err != nil || len(plan.Switches) != 6 || len(plan.Controller)+len(plan.Switches[0].Changes) != 0 {
		t.Errorf("plan of what is = %+v, %v", plan, err)
	}
	if after, _, _ := f.switches["leaf1"].Counts(); after != before {
		t.Errorf("%d writes for nothing", after-before)
	}
	fewer := strings.Replace(string(f.yaml), "  - {name: h8, ipv4: 10.0.4.2}\n", "", 1)
	fewer = strings.Replace(fewer, "  - {a: \"leaf4:2\", b: h8, rate: 50Mbps, delay: 1us}\n", "", 1)
	plan, err = f.c.Plan(context.Background(), "fabric.yaml", []byte(fewer), 0)
	shorter := []*pb.Change{ // one host is its rack's prefix
		{Kind: pb.Change_KIND_INSERT, Table: "ingress.routing.ipv4_lpm", Key: "dst_addr=10.0.4.1/32", New: "group 4"},
		{Kind: pb.Change_KIND_DELETE, Table: "ingress.routing.ipv4_lpm", Key: "dst_addr=10.0.4.0/30", Old: "group 4"},
	}
	if err != nil || !slices.EqualFunc(plan.Switches[0].Changes, shorter, sameChange) {
		t.Errorf("plan without h8 = %+v, %v", plan, err)
	}
	generation, results, err := f.c.Apply(context.Background(), "fabric.yaml", []byte(fewer))
	if err != nil || generation != 3 || results[0].Inserted != 1 || results[0].Deleted != 1 || results[3].Deleted != 9 {
		t.Errorf("apply without h8 = %d, %+v, %v", generation, results, err)
	}
}

func TestFaultsApplyNothing(t *testing.T) {
	f := newFabric(t)
	f.startAll()
	bad := strings.Replace(string(f.yaml), "scale: 2000", "scale: 0", 1)
	_, _, err := f.c.Apply(context.Background(), "fabric.yaml", []byte(bad))
	var faults *yamlnode.Error
	if !errors.As(err, &faults) || faults.Faults[0].Field != "scale" {
		t.Errorf("error = %v", err)
	}
	if _, err := f.c.Plan(context.Background(), "fabric.yaml", []byte(bad), 0); err == nil {
		t.Error("a plan of a faulty configuration")
	}
	if f.c.Config() != nil || f.c.Fabric().Generation != 0 {
		t.Error("something was applied")
	}
}

// ledger is a participant that records its calls.
type ledger struct {
	lines  *[]string
	name   string
	refuse error
}

func (l ledger) Check(*config.Config) error { return nil }

func (l ledger) Configure(*config.Config) (func(), error) {
	*l.lines = append(*l.lines, l.name)
	return func() { *l.lines = append(*l.lines, "not "+l.name) }, l.refuse
}

// TestParticipantsAreUndone: if a later participant refuses, or the configuration cannot be saved,
// apply undoes the earlier participants in reverse order.
func TestParticipantsAreUndone(t *testing.T) {
	var lines []string
	for want, last := range map[string]ledger{
		"[a b c not b not a]":       {name: "c", refuse: yamlnode.Fault{Field: "scale", Text: "is wrong"}},
		"[a b c not c not b not a]": {name: "c"},
	} {
		lines, last.lines = nil, &lines
		o := options()
		o.Participants = []Participant{ledger{&lines, "a", nil}, ledger{&lines, "b", nil}, last}
		o.Save = func(context.Context, *config.Config, uint64) error { return errors.New("disk full") }
		c, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = c.Apply(context.Background(), "f", example(t, func(i int) string { return fmt.Sprintf("127.0.0.1:%d", i+1) }))
		var faulty *yamlnode.Error
		if errors.As(err, &faulty) != (last.refuse != nil) || faulty != nil && faulty.Faults[0].Line == 0 {
			t.Errorf("error = %v", err)
		}
		if fmt.Sprint(lines) != want || c.Config() != nil {
			t.Errorf("%v, want %v", lines, want)
		}
	}
}

func TestSaveFails(t *testing.T) {
	f := newFabric(t)
	o := options()
	o.Generation = 41
	o.Save = func(context.Context, *config.Config, uint64) error { return errors.New("disk full") }
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
		if (r.Error != "") != (r.Name == "spine2") {
			t.Errorf("result = %+v", r)
		}
	}
	plan, err := f.c.Plan(context.Background(), "f", f.yaml, 0)
	if err != nil || !strings.Contains(plan.Switches[5].Unreachable, "refused") || len(plan.Switches[5].Changes) == 0 {
		t.Errorf("plan of spine2 = %+v, %v", plan.Switches[5], err)
	}
	eventually(t, "routes around spine2", func() bool { return f.group() == "3" })
	// The switch is back but accepts no entries, so packets to it would be lost.
	f.switches["spine2"].SetRefuse(func(*p4v1.Update) (codes.Code, string) { return codes.ResourceExhausted, "no room" })
	f.switches["spine2"].Start()
	f.becomes("spine2", pb.SwitchStatus_STATE_DEGRADED)
	for range 10 {
		f.c.checkHealth(time.Now())
		f.c.recompute()
		if f.c.links.state().SuspectSwitches["spine2"] != true || f.group() != "3" {
			t.Fatalf("routes over a switch without entries: %s", f.group())
		}
	}
	f.switches["spine2"].SetRefuse(nil)
	f.becomes("spine2", pb.SwitchStatus_STATE_READY)
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
			f.becomes("leaf1", pb.SwitchStatus_STATE_DISCONNECTED)
			s.Lose()
			s.Start()
			f.becomes("leaf1", pb.SwitchStatus_STATE_READY)
			if got := s.Describe(); !slices.Equal(got, want) {
				t.Errorf("it has %d entries, had %d", len(got), len(want))
			}
			if _, _, pushes := s.Counts(); pushes != 2 {
				t.Errorf("%d pushes, want 2", pushes)
			}
			// A switch that restarts with its state gets neither pipeline nor entries.
			_, before, _ := s.Counts()
			s.Stop()
			f.becomes("leaf1", pb.SwitchStatus_STATE_DISCONNECTED)
			s.Start()
			f.becomes("leaf1", pb.SwitchStatus_STATE_READY)
			if _, after, pushes := s.Counts(); pushes != 2 || after != before {
				t.Errorf("%d pushes, %d more updates", pushes, after-before)
			}
		})
	}
}

// TestLinksWhileSaving: a link dies while a new configuration is not yet saved, and routes avoid it.
func TestLinksWhileSaving(t *testing.T) {
	f := newFabric(t)
	f.edit("probe_interval: 200ms", "probe_interval: 50ms")
	f.edit("probe_timeout: 60s", "probe_timeout: 500ms")
	f.startAll()
	f.apply()
	eventually(t, "both ways", func() bool { return f.group() == "3, 4" })
	asked, answer, applied := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	f.c.opts.Save = func(context.Context, *config.Config, uint64) error {
		close(asked)
		<-answer
		return nil
	}
	go func() {
		_, _, err := f.c.Apply(context.Background(), "fabric.yaml", f.yaml)
		applied <- err
	}()
	<-asked
	var once sync.Once
	save := func() { once.Do(func() { close(answer) }) }
	t.Cleanup(save) // otherwise the controller does not end
	f.setWire("leaf1:4-spine2:1", false)
	eventually(t, "routes without the dead link", func() bool { return f.group() == "3" })
	save()
	if err := <-applied; err != nil {
		t.Fatal(err)
	}
	eventually(t, "routes of the new configuration without the dead link", func() bool { return f.group() == "3" })
}

func TestLinks(t *testing.T) {
	f := newFabric(t)
	f.edit("probe_interval: 200ms", "probe_interval: 50ms")
	f.edit("probe_timeout: 60s", "probe_timeout: 500ms")
	f.startAll()
	f.apply()
	ctx := context.Background()
	eventually(t, "both ways", func() bool { return f.group() == "3, 4" })
	if err := f.c.SetLink(ctx, "leaf1", "spine1", false); err != nil {
		t.Fatal(err)
	}
	eventually(t, "routes without the link", func() bool { return f.group() == "4" })
	if p := f.state("leaf1").Ports[2]; p.State != pb.PortStatus_STATE_DOWN {
		t.Errorf("port = %+v", p)
	}
	if err := f.c.SetLink(ctx, "spine1", "leaf1:3", true); err != nil {
		t.Fatal(err)
	}
	eventually(t, "routes with the link", func() bool { return f.group() == "3, 4" })
	if err := f.c.SetLink(ctx, "leaf1", "leaf2", false); err == nil {
		t.Error("a link that is not there was set")
	}

	sub := f.c.Events().Subscribe(events.Options[*pb.Event]{})
	defer sub.Close()
	f.setWire("leaf1:4-spine2:1", false)
	eventually(t, "routes without the dead link", func() bool { return f.group() == "3" })
	f.setWire("leaf1:4-spine2:1", true)
	eventually(t, "routes with the link", func() bool { return f.group() == "3, 4" })
	// Both ways are dead: a suspect way is better than none.
	f.setWire("leaf1:3-spine1:1", false)
	f.setWire("leaf1:4-spine2:1", false)
	eventually(t, "both suspect", func() bool {
		p := f.state("leaf1").Ports
		return p[2].State == pb.PortStatus_STATE_DOWN && p[3].State == pb.PortStatus_STATE_DOWN
	})
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
	sub := f.c.Samples().Subscribe(events.Options[feature.Sample]{Match: func(s feature.Sample) bool { return s.Switch == "leaf1" && s.Port == 3 }})
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
