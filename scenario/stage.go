package scenario

import (
	"context"
	"fmt"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/scenario/inproc"
)

// application owns the weights of a script's flows.
const application = "default"

// stage is a running fabric with its controller, on which a script plays. Operators'
// actions go through the API, hosts' actions to the hosts.
type stage struct {
	*inproc.Control
	fabric  *inproc.Fabric
	tracer  tracer
	samples *sampler
	weights pb.WeightServiceClient
	hosts   pb.HostServiceClient
}

func newStage(f *inproc.Fabric, c *inproc.Control, t tracer, s *sampler) *stage {
	return &stage{
		Control: c, fabric: f, tracer: t, samples: s,
		weights: pb.NewWeightServiceClient(c.Conn), hosts: pb.NewHostServiceClient(c.Conn),
	}
}

// act performs one action.
func (s *stage) act(ctx context.Context, a Action) error {
	switch {
	case a.Start != nil:
		return s.start(ctx, *a.Start)
	case a.Weight != nil:
		return s.weigh(ctx, *a.Weight)
	case a.Stop != "":
		return s.stop(ctx, a.Stop)
	case a.Link != nil:
		_, err := s.Admin.SetLink(ctx, &pb.SetLinkRequest{A: a.Link.A, B: a.Link.B, Up: a.Link.Up})
		return err
	}
	return nil
}

func (s *stage) start(ctx context.Context, f Flow) error {
	from, to := s.fabric.Hosts[f.From], s.fabric.Hosts[f.To]
	if from == nil || to == nil {
		return fmt.Errorf("flow %s: from %q to %q: want two hosts of the fabric", f.Name, f.From, f.To)
	}
	var failed error
	err := s.fabric.Loop.Do(ctx, func() {
		key, err := from.StartFlow(agent.FlowSpec{Dst: to.Config().IP, SrcPort: f.SrcPort, Weight: f.Weight, App: application})
		if err != nil {
			failed = fmt.Errorf("flow %s: %w", f.Name, err)
			return
		}
		s.tracer.start(key.Src, key.SrcPort)
		s.samples.watch(f, key, from)
	})
	if err != nil {
		return err
	}
	return failed
}

// weigh changes a weight as an operator does; the controller tells the host.
func (s *stage) weigh(ctx context.Context, w Weight) error {
	f, ok := s.samples.get(w.Flow)
	if !ok {
		return fmt.Errorf("weight of flow %s: no such flow is running", w.Flow)
	}
	if _, err := s.weights.SetWeight(ctx, &pb.SetWeightRequest{Flow: flowKey(f.key), Weight: w.Value}); err != nil {
		return fmt.Errorf("weight of flow %s: %w", w.Flow, err)
	}
	s.samples.setWeight(w.Flow, w.Value)
	return nil
}

func (s *stage) stop(ctx context.Context, name string) error {
	f, ok := s.samples.get(name)
	if !ok {
		return fmt.Errorf("stop of flow %s: no such flow is running", name)
	}
	var failed error
	if err := s.fabric.Loop.Do(ctx, func() {
		s.samples.sample() // its last retransmissions
		failed = f.host.StopFlow(f.key)
	}); err != nil {
		return err
	}
	s.samples.forget(name)
	return failed
}

func flowKey(k agent.FlowKey) *pb.FlowKey {
	return &pb.FlowKey{SrcIpv4: k.Src.String(), DstIpv4: k.Dst.String(), SrcPort: uint32(k.SrcPort), DstPort: maxqd.Port}
}
