package emulation

import (
	"context"
	"fmt"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/emulation/network"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/dcqcn"
	"github.com/headgate/headgate/hosts/law/none"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// frameBytes is a full data packet of RoCEv2 on the wire.
const frameBytes = packet.DataOverhead - maxqd.Len + int64(network.MSS)

// patience is the lowest retransmission timeout, at line rate. A lossless fabric needs none. If a packet is lost
// all the same, a NAK reports it.
const patience = 5 * units.Millisecond

// host adapts an agent's configuration to the scenario. Package network sets Söze by default.
func (s *Scenario) host(c *agent.Config, cfg *config.Config, v Variant, deliver func(agent.FlowKey, []byte)) {
	c.Deliver = deliver
	if s.Law == Soze {
		return
	}
	line := units.Rate(float64(c.Rate) * float64(network.MSS) / float64(frameBytes))
	limit := s.Limits[c.Name]
	c.Law = string(s.Law)
	c.NewLaw = func(agent.FlowSpec) (law.Law, error) {
		switch {
		case limit > 0:
			return none.New(units.Rate(float64(line)*limit), 0)
		case s.Law == LineRate:
			return none.New(line, 0)
		case s.Law == DCQCN:
			return dcqcn.New(dcqcn.Vendor(law.Flow{Rate: line, Scale: float64(cfg.Scale)}))
		}
		return nil, fmt.Errorf("law %q: want %s, %s or %s", s.Law, Soze, LineRate, DCQCN)
	}
	c.CNPGap = cfg.Scaled(v.CNPGap)
	c.InitialRTO, c.MinRTO, c.MaxRTO = cfg.Scaled(patience), cfg.Scaled(patience), cfg.Scaled(8*patience)
}

// application owns the weights of a scenario's flows.
const application = "default"

// host performs the hosts' part of an action. It runs on the loop.
func (r *Run) host(a Action) error {
	switch {
	case a.Start != nil:
		t := r.recorder.track(a.Start.Name)
		for _, from := range t.From {
			gap := r.fabric.Hosts[from].Config().Rate.TxTime((t.Size + network.MSS - 1) / network.MSS * units.Bytes(frameBytes))
			for k := range max(t.Rounds, 1) {
				r.fabric.Loop.Schedule(r.fabric.Loop.Now()+units.Time(k)*gap, func() {
					if err := r.start(t, from); err != nil && r.failed == nil {
						r.failed = fmt.Errorf("flow %s: %w", t.Name, err)
					}
				})
			}
		}
	case a.Stop != "":
		t := r.recorder.track(a.Stop)
		t.stopped, t.running = t.reports(), false
		last := t.sent[0]
		t.sent = nil
		return last.host.StopFlow(last.key)
	}
	return nil
}

// start starts a host's flow of a track. It runs on the loop. Only Söze's packets carry the shim.
func (r *Run) start(t *track, from string) error {
	h := r.fabric.Hosts[from]
	spec := agent.FlowSpec{Dst: r.fabric.Hosts[t.To].Config().IP, SrcPort: t.SrcPort, Weight: t.Weight, Size: t.Size, App: application}
	if r.Scenario.Law != Soze {
		spec.DstPort = packet.RoCEv2Port
	}
	key, err := h.StartFlow(spec)
	if err != nil {
		return err
	}
	r.recorder.follow(t, h, key)
	return nil
}

// operator performs the operator's part of an action, through the API.
func (r *Run) operator(ctx context.Context, a Action) error {
	switch {
	case a.Link != nil:
		_, err := r.control.Admin.SetLink(ctx, &pb.SetLinkRequest{A: a.Link.A, B: a.Link.B, Up: a.Link.Up})
		return err
	case a.Weight != nil:
		var key agent.FlowKey
		t := r.recorder.track(a.Weight.Flow)
		if err := r.fabric.Loop.Do(ctx, func() { key = t.sent[0].key }); err != nil {
			return err
		}
		_, err := r.control.Weights.SetWeight(ctx, &pb.SetWeightRequest{Flow: flowKey(key), Weight: a.Weight.Value})
		return err
	}
	return nil
}

func flowKey(k agent.FlowKey) *pb.FlowKey {
	return &pb.FlowKey{SrcIpv4: k.Src.String(), DstIpv4: k.Dst.String(), SrcPort: uint32(k.SrcPort), DstPort: uint32(k.DstPort)}
}
