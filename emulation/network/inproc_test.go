package network

import (
	"context"
	"errors"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/examples"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/units"
)

// TestBuild compares a fabric with its file: wires in the order of links, rates of ports, classes
// of DSCPs, and the changes of Options.Host.
func TestBuild(t *testing.T) {
	cfg, err := config.Parse("leaf-spine.yaml", examples.LeafSpine, nil, controller.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Build(cfg, Options{Host: func(c *agent.Config) { c.CNPGap = 7 * units.Millisecond }})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if len(f.Wires) != 2*len(cfg.Links) || len(f.Hosts) != len(cfg.Hosts) {
		t.Fatalf("%d wires and %d hosts, want %d and %d", len(f.Wires), len(f.Hosts), 2*len(cfg.Links), len(cfg.Hosts))
	}
	for i, l := range cfg.Links {
		a, b := f.Wires[2*i], f.Wires[2*i+1]
		if a.From != l.A || a.To != l.B || b.From != l.B || b.To != l.A || a.Rate != l.Rate {
			t.Errorf("link %s is %+v and %+v", l.Name, a, b)
		}
	}
	for _, s := range cfg.Switches {
		if f.Switch(s.Name) == nil {
			t.Errorf("there is no switch %s", s.Name)
		}
	}
	if f.Switch("leaf9") != nil {
		t.Error("there is a switch leaf9")
	}
	c := f.Hosts["h1"].Config()
	if c.CNPGap != 7*units.Millisecond {
		t.Errorf("the hosts' gap is %v, want 7 ms", c.CNPGap)
	}
	if c.Classes[48] != 6 || c.Classes[8] != 0 || len(c.Classes) != 64 {
		t.Errorf("DSCP 48 and 8 are of class %d and %d of %d, want 6 and 0 of 64", c.Classes[48], c.Classes[8], len(c.Classes))
	}
}

// admin is a controller that answers with its lists in turn, and then with the last one.
type admin struct {
	pb.FabricServiceClient
	lists [][]*pb.SwitchStatus
	asked int
}

func (a *admin) ListSwitches(context.Context, *pb.ListSwitchesRequest, ...grpc.CallOption) (*pb.ListSwitchesResponse, error) {
	a.asked++
	return &pb.ListSwitchesResponse{Switches: a.lists[min(a.asked, len(a.lists))-1]}, nil
}

// TestWaitReady waits until the controller lists every switch of the fabric with entries. A
// controller that has not applied its file yet lists none.
func TestWaitReady(t *testing.T) {
	sw := func(name string, state pb.SwitchStatus_State, entries uint64) *pb.SwitchStatus {
		return &pb.SwitchStatus{Name: name, State: state, Entries: entries}
	}
	const ready = pb.SwitchStatus_STATE_READY
	a := &admin{lists: [][]*pb.SwitchStatus{
		nil,
		{sw("a", ready, 9)},
		{sw("a", ready, 9), sw("b", pb.SwitchStatus_STATE_RECONCILING, 9)},
		{sw("a", ready, 9), sw("b", ready, 0)},
		{sw("b", ready, 9), sw("a", ready, 9)},
	}}
	c := &Control{Admin: a, switches: []string{"a", "b"}}
	if err := c.WaitReady(t.Context()); err != nil || a.asked != len(a.lists) {
		t.Errorf("ready after %d answers, %v; want after %d", a.asked, err, len(a.lists))
	}
	for i, want := range []string{"a is not known to the controller yet", "b is not known to the controller yet", "b is reconciling: ", "b holds no entries", ""} {
		if got := notReady(c.switches, a.lists[i]); got != want {
			t.Errorf("of %v is missing %q, want %q", a.lists[i], got, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&Control{Admin: &admin{lists: [][]*pb.SwitchStatus{nil}}, switches: []string{"a"}}).WaitReady(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that was stopped waits with %v", err)
	}
}

func TestLosses(t *testing.T) {
	before := Losses{Queues: 1, Links: 2, Switches: 3}
	after := before
	after.add(Losses{Queues: 4, Admission: 1})
	if d := after.Since(before); d != (Losses{Queues: 4, Admission: 1}) || d.Dropped() != 1 || d.Faults() != 4 {
		t.Errorf("since then %+v was lost", d)
	}
	if l := (Losses{Retransmits: 3}); l.Dropped()+l.Faults() != 0 {
		t.Error("what was sent again counts as lost")
	}
	var l Losses
	for i, cell := range []struct {
		counter uint32
		index   int64
	}{
		{ids.CounterDrops, ids.DropAdmission}, {ids.CounterDrops, ids.DropBuffer}, {ids.CounterDrops, ids.DropNoRoute},
		{ids.CounterDrops, ids.DropMACControl}, {ids.CounterLosslessDrops, 17},
	} {
		l.count(&p4v1.CounterEntry{CounterId: cell.counter, Index: &p4v1.Index{Index: cell.index}, Data: &p4v1.CounterData{PacketCount: 1 << i}})
	}
	if want := (Losses{Admission: 1, Buffer: 2, Pipelines: 4, Lossless: 16}); l != want {
		t.Errorf("the counters read as %+v, want %+v", l, want)
	}
}

// sent counts the frames that a host sends on one link.
type sent int

func (s *sent) Send([]byte, units.Time) { *s++ }

// TestSeveralLinks: a host sends on the first of its links that is up.
func TestSeveralLinks(t *testing.T) {
	n, out := &nic{rate: units.Gbps}, [2]sent{}
	for i := range out {
		p := n.port()
		p.Attach(&out[i])
		p.SetUp(true)
	}
	n.send(nil, 0)
	n.ports[0].SetUp(false)
	n.send(nil, 0)
	n.send(nil, 0)
	n.ports[0].SetUp(true)
	n.send(nil, 0)
	if out != [2]sent{2, 2} {
		t.Errorf("the links had %v frames, want 2 each", out)
	}
}
