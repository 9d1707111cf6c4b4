package remote

import (
	"fmt"
	"maps"
	"net/netip"

	headgatev1 "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/units"
)

// toWire translates reports, ended by their size; before holds what each flow had acknowledged an interval ago,
// channels those that the controller gave them. Channels of flows that are gone are dropped.
func toWire(host string, flows []agent.FlowReport, ended [len(agent.SizeBounds) + 1]agent.Completions, before map[agent.FlowKey]units.Bytes, channels map[agent.FlowKey]*headgatev1.Channel, interval units.Time) *headgatev1.HostReport {
	out := &headgatev1.HostReport{Host: host}
	running := map[agent.FlowKey]bool{}
	for _, f := range flows {
		if f.Finished != 0 {
			continue
		}
		running[f.Key] = true
		given := channels[f.Key]
		if f.Waiting { // another flow had this key before
			given = nil
		}
		out.Flows = append(out.Flows, &headgatev1.FlowReport{
			Flow: &headgatev1.FlowKey{
				SrcIpv4: f.Key.Src.String(), DstIpv4: f.Key.Dst.String(),
				SrcPort: uint32(f.Key.SrcPort), DstPort: uint32(f.Key.DstPort),
			},
			Weight:      f.Weight,
			AckedBytes:  uint64(f.Acked),
			RateBps:     uint64(units.RateOf(f.Acked-before[f.Key], interval)),
			MaxQdNs:     uint64(f.MaxQD / units.Nanosecond),
			RttNs:       uint64(f.SRTT / units.Nanosecond),
			Retransmits: f.Retransmits,
			Application: f.App,
			Law:         f.Law,

			VirtualPriority: uint32(f.Priority),
			Channel:         given,
		})
	}
	for i, c := range ended {
		if c.Flows == 0 {
			continue
		}
		one := &headgatev1.Completions{Flows: c.Flows, FctNs: c.FCT, Slowdown: c.Slowdown}
		if i > 0 {
			one.FromBytes = uint64(agent.SizeBounds[i-1])
		}
		if i < len(agent.SizeBounds) {
			one.BelowBytes = uint64(agent.SizeBounds[i])
		}
		out.Completions = append(out.Completions, one)
	}
	maps.DeleteFunc(channels, func(k agent.FlowKey, _ *headgatev1.Channel) bool { return !running[k] })
	return out
}

// fromWire translates a weight and refuses what makes no sense.
func fromWire(w *headgatev1.FlowWeight) (agent.FlowKey, float64, error) {
	key, err := keyFromWire(w.GetFlow())
	if err != nil {
		return key, 0, err
	}
	return key, w.GetWeight(), soze.CheckWeight(w.GetWeight())
}

func keyFromWire(k *headgatev1.FlowKey) (agent.FlowKey, error) {
	src, err := netip.ParseAddr(k.GetSrcIpv4())
	if err != nil {
		return agent.FlowKey{}, fmt.Errorf("flow.src_ipv4: %w", err)
	}
	dst, err := netip.ParseAddr(k.GetDstIpv4())
	if err != nil {
		return agent.FlowKey{}, fmt.Errorf("flow.dst_ipv4: %w", err)
	}
	if k.GetSrcPort() == 0 || k.GetSrcPort() > 65535 {
		return agent.FlowKey{}, fmt.Errorf("flow.src_port %d: want 1 to 65535", k.GetSrcPort())
	}
	port := k.GetDstPort()
	if port == 0 {
		port = maxqd.Port
	}
	if port > 65535 {
		return agent.FlowKey{}, fmt.Errorf("flow.dst_port %d: want at most 65535", port)
	}
	return agent.FlowKey{Src: src, Dst: dst, SrcPort: uint16(k.GetSrcPort()), DstPort: uint16(port)}, nil
}
