package remote

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	headgatev1 "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/units"
)

// toWire translates reports of flows, and the counts of ended flows by their size. before holds the bytes of each flow
// that were acknowledged an interval ago. channels holds the channels that the controller gave to flows; those of flows
// that are gone are dropped.
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
			MaxQd:       durationpb.New(f.MaxQD.Duration()),
			Rtt:         durationpb.New(f.SRTT.Duration()),
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
		one := &headgatev1.Completions{Flows: c.Flows, Fct: headgatev1.OfNanoseconds(c.FCT), Slowdown: c.Slowdown}
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

// maxDelay bounds the times of a channel that a host accepts.
const maxDelay = 1000 * units.Second

// channelFromWire translates a channel for a path with a base round trip of its own; 0 takes
// the fabric's.
func channelFromWire(c *headgatev1.Channel, own units.Time) (channel.Channel, error) {
	for _, f := range []struct {
		name string
		time time.Duration
	}{{"target", c.GetTarget().AsDuration()}, {"limit", c.GetLimit().AsDuration()}, {"base", c.GetBase().AsDuration()}} {
		if f.time <= 0 || f.time > maxDelay.Duration() {
			return channel.Channel{}, fmt.Errorf("channel.%s %v: want more than 0 and at most %v", f.name, f.time, maxDelay)
		}
	}
	shift := units.Time(0)
	if own > 0 {
		shift = own - units.FromDuration(c.GetBase().AsDuration())
	}
	return channel.Channel{
		Target: units.FromDuration(c.GetTarget().AsDuration()) + shift,
		Limit:  units.FromDuration(c.GetLimit().AsDuration()) + shift,
	}, nil
}

// obeyChannel moves a flow to the channel of its virtual priority. A flow whose channel is refused is
// held, because it must not use another priority's delays.
func (a *attachment) obeyChannel(ctx context.Context, c *headgatev1.FlowChannel) error {
	key, err := keyFromWire(c.GetFlow())
	if err != nil {
		return err
	}
	if reason := c.GetRefused(); reason != "" {
		delete(a.channels, key)
		a.opts.Log.Warn("flow held: it has no channel", "host", a.opts.Host, "flow", key, "reason", reason)
		return a.opts.Do(ctx, func(ag Agent, now units.Time) {
			_ = ag.DropChannel(now, key) // the flow may have ended meanwhile
		})
	}
	ch, err := channelFromWire(c.GetChannel(), a.opts.BaseRTT)
	if err != nil {
		return fmt.Errorf("%v: %w", key, err)
	}
	var refused error
	if err := a.opts.Do(ctx, func(ag Agent, now units.Time) { refused = ag.SetChannel(now, key, ch) }); err != nil {
		return err
	}
	if refused == nil {
		a.channels[key] = c.GetChannel()
	}
	return refused
}
