package standalone

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law/prioplus"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/hosts/law/registry"
	"github.com/headgate/headgate/units"
)

func (o *Options) printChannels() string {
	if o.Channels == (channel.Plan{}) {
		return ""
	}
	return fmt.Sprintf("fluctuation=%v,noise=%v", o.Channels.Fluctuation, o.Channels.Noise)
}

// setChannels reads a plan such as "fluctuation=6.4ms,noise=1.6ms".
func (o *Options) setChannels(s string) error {
	var plan channel.Plan
	for field := range strings.SplitSeq(s, ",") {
		key, value, _ := strings.Cut(field, "=")
		t, err := units.ParseTime(value)
		switch {
		case key != "fluctuation" && key != "noise":
			return fmt.Errorf("%q: want fluctuation=TIME,noise=TIME", field)
		case err != nil:
			return fmt.Errorf("%s: %w", key, err)
		case key == "fluctuation":
			plan.Fluctuation = t
		default:
			plan.Noise = t
		}
	}
	if err := plan.Check(); err != nil {
		return err
	}
	o.Channels = plan
	return nil
}

// checkChannels fills in the flows' channels and reports faults. Channels come from --target and
// --limit, or from a priority and the plan of --channels (the paper's by default), or from the
// controller.
func (o *Options) checkChannels(k *registry.Kind) error {
	if !k.Needs.Channel {
		for _, f := range []struct {
			flag  string
			given bool
		}{{"--priority", o.Priority != 0}, {"--channels", o.Channels != channel.Plan{}}, {"--target", o.Target != 0}, {"--limit", o.Limit != 0}, {"--level", o.Level != "low"}} {
			if f.given {
				return fmt.Errorf("%s: want --law prioplus-swift or prioplus-ledbat with it, not %s", f.flag, o.Law)
			}
		}
		for _, f := range o.Flows {
			if f.Priority != 0 {
				return fmt.Errorf("--flow priority=%d: want --law prioplus-swift or prioplus-ledbat with it, not %s", f.Priority, o.Law)
			}
		}
		return nil
	}
	if o.Priority < 0 || o.Priority > channel.MaxPriority {
		return fmt.Errorf("--priority %d: want 1 to %d", o.Priority, channel.MaxPriority)
	}
	if o.Target != 0 {
		return o.checkTarget()
	}
	if o.Limit != 0 {
		return fmt.Errorf("--limit %v: want --target with it", o.Limit)
	}
	plan := o.plan()
	if err := plan.Check(); err != nil {
		return fmt.Errorf("--channels: %w", err)
	}
	for _, f := range o.Flows {
		if f.Priority == 0 && o.Priority == 0 {
			return fmt.Errorf("--priority 0: --law %s wants 1 to %d, or priority= in each --flow, or --target and --limit", o.Law, channel.MaxPriority)
		}
	}
	return nil
}

func (o *Options) checkTarget() error {
	switch {
	case o.Priority != 0 || o.Channels != channel.Plan{}:
		return fmt.Errorf("--target %v: want it or --priority and --channels, not both", o.Target)
	case o.Controller != "":
		return fmt.Errorf("--target %v: want it or --controller, which gives channels, not both", o.Target)
	case o.Target <= o.BaseRTT:
		return fmt.Errorf("--target %v: want more than --base-rtt, %v", o.Target, o.BaseRTT)
	case o.Limit != 0 && o.Limit <= o.Target:
		return fmt.Errorf("--limit %v: want more than --target, %v, or 0 for none", o.Limit, o.Target)
	}
	for _, f := range o.Flows {
		if f.Priority != 0 {
			return fmt.Errorf("--flow priority=%d: want it or --target %v, not both", f.Priority, o.Target)
		}
	}
	return nil
}

func (o *Options) plan() channel.Plan {
	p := o.Channels
	if p == (channel.Plan{}) {
		paper := channel.Paper(0)
		p.Fluctuation, p.Noise = o.scaled(paper.Fluctuation), o.scaled(paper.Noise)
	}
	p.Base = o.BaseRTT
	return p
}

// withChannel gives a flow its channel. If the options name a controller but no channels, the flow waits for a channel
// from the controller.
func (o *Options) withChannel(f agent.FlowSpec) (agent.FlowSpec, error) {
	if k, err := o.lawKind(); err != nil || !k.Needs.Channel {
		return f, err
	}
	if o.Target != 0 {
		f.Channel = channel.Channel{Target: o.Target, Limit: o.Limit}
		if o.Limit == 0 {
			f.Channel.Limit = prioplus.NoLimit
		}
		return f, nil
	}
	if f.Priority == 0 {
		f.Priority = o.Priority
	}
	var err error
	f.Channel, err = o.plan().Channel(f.Priority)
	f.AwaitChannel = o.Controller != "" && o.Channels == channel.Plan{}
	return f, err
}
