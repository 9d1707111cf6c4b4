package controller

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/p4src"
)

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
		if !strings.Contains(r.Error, "backup") {
			t.Errorf("result = %+v", r)
		}
	}
	all := func(c *Controller, state pb.SwitchStatus_State) func() bool {
		return func() bool {
			return !slices.ContainsFunc(c.Switches(), func(s *pb.SwitchStatus) bool { return s.State != state })
		}
	}
	eventually(t, "the second is backup", all(second, pb.SwitchStatus_STATE_BACKUP))
	if f.state("leaf1").State != pb.SwitchStatus_STATE_READY {
		t.Errorf("the first is %+v", f.state("leaf1"))
	}
	f.stop()
	eventually(t, "the second is primary", all(second, pb.SwitchStatus_STATE_READY))
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
	said := func(err string) bool {
		return strings.Contains(err, "no room") && strings.Contains(err, "ingress.routing.ecmp group 3")
	}
	if r := f.apply()[0]; !said(r.Error) {
		t.Errorf("result = %+v", r)
	}
	// The session may have sent it again with fewer updates.
	if v := f.state("leaf1"); v.State != pb.SwitchStatus_STATE_DEGRADED || !said(v.Error) {
		t.Errorf("leaf1 is in state %v: %s", v.State, v.Error)
	}
	s.SetRefuse(nil)
	f.becomes("leaf1", pb.SwitchStatus_STATE_READY)
}

// flaky fails every fifth unary call, as a bad network would.
func flaky() grpc.ServerOption {
	var mu sync.Mutex
	n := 0
	fail := func() error {
		mu.Lock()
		defer mu.Unlock()
		if n++; n%5 == 0 {
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
	f.becomes("leaf1", pb.SwitchStatus_STATE_READY)
	if got := f.switches["leaf1"].Entities(); got != int(f.state("leaf1").Entries) {
		t.Errorf("%d entries, want %d", got, f.state("leaf1").Entries)
	}
}

func TestDriftIsRepaired(t *testing.T) {
	f := newFabric(t)
	f.edit("resync_interval: 60s", "resync_interval: 1s")
	f.startAll()
	f.apply()
	s := f.switches["leaf1"]
	want := s.Describe()
	if err := s.Delete(func(line string) bool { return strings.Contains(line, "ipv4_lpm") }); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the repair", func() bool { return slices.Equal(s.Describe(), want) })
}

func TestWrongPipelineIsReplaced(t *testing.T) {
	f := newFabric(t)
	other, err := pipeline.New(f.pipe().Info(), append(slices.Clone(p4src.JSON()), '\n')) // other bytes, the same program
	if err != nil {
		t.Fatal(err)
	}
	f.startAll()
	o := options()
	o.Pipelines = func(*config.Config, config.Switch) (*pipeline.Pipeline, error) { return other, nil }
	c, stop := f.controller(o)
	if _, _, err := c.Apply(context.Background(), "f", f.yaml); err != nil {
		t.Fatal(err)
	}
	stop()
	plan, err := f.c.Plan(context.Background(), "f", f.yaml, 0)
	if err != nil || !strings.Contains(plan.Switches[0].Changes[0].Line(), "pipeline: another program, whose entries are lost → ") {
		t.Errorf("plan = %+v, %v", plan.Switches[0], err)
	}
	for _, r := range f.apply() {
		if r.Error != "" {
			t.Errorf("result = %+v", r)
		}
	}
	if _, _, pushes := f.switches["leaf1"].Counts(); pushes != 2 {
		t.Errorf("%d pushes, want 2", pushes)
	}
}
