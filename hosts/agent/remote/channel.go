package remote

import (
	"context"
	"fmt"

	headgatev1 "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/units"
)

// maxDelay bounds the times of a channel that a host accepts.
const maxDelay = 1000 * units.Second

// channelFromWire translates a channel for a path with a base round trip of its own; 0 takes
// the fabric's.
func channelFromWire(c *headgatev1.Channel, own units.Time) (channel.Channel, error) {
	for _, f := range []struct {
		name string
		ns   uint64
	}{{"target_ns", c.GetTargetNs()}, {"limit_ns", c.GetLimitNs()}, {"base_ns", c.GetBaseNs()}} {
		if f.ns == 0 || f.ns > uint64(maxDelay/units.Nanosecond) {
			return channel.Channel{}, fmt.Errorf("channel.%s %d: want more than 0 and at most %v", f.name, f.ns, maxDelay)
		}
	}
	base := units.Time(c.GetBaseNs()) * units.Nanosecond
	shift := units.Time(0)
	if own > 0 {
		shift = own - base
	}
	return channel.Channel{
		Target: units.Time(c.GetTargetNs())*units.Nanosecond + shift,
		Limit:  units.Time(c.GetLimitNs())*units.Nanosecond + shift,
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
			_ = ag.DropChannel(now, key) // it may have stopped meanwhile
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
