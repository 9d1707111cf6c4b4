// Package remote attaches a host agent to the controller over api/headgate/v1's HostService. It
// reports the host's flows, applies the weights and channels that come back, and attaches again after
// a lost connection. Start at Run.
package remote

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	headgatev1 "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/units"
)

// Agent runs the flows that start at an attached host. *agent.Agent has its methods' comments.
type Agent interface {
	Report() []agent.FlowReport
	Stats() agent.Stats
	SetWeight(now units.Time, key agent.FlowKey, w float64) error
	Hold(now units.Time, key agent.FlowKey, held bool) error
	// SetChannel moves a flow to a channel; DropChannel holds it until it has another.
	SetChannel(now units.Time, key agent.FlowKey, c channel.Channel) error
	DropChannel(now units.Time, key agent.FlowKey) error
}

// Do runs fn with the agent on the goroutine that owns it, and then does what fn made due.
type Do func(ctx context.Context, fn func(a Agent, now units.Time)) error

// DoFrom returns the Do of agent.Host and nic.NIC as this package takes it.
func DoFrom(do func(context.Context, func(*agent.Agent, units.Time)) error) Do {
	return func(ctx context.Context, fn func(Agent, units.Time)) error {
		return do(ctx, func(a *agent.Agent, now units.Time) { fn(a, now) })
	}
}

// Options name the controller and the way to attach. Do and Host must be set.
type Options struct {
	Host string // name of the host in the fabric's configuration
	Do   Do

	// BaseRTT is the round trip of an empty path of the host's flows. Channels are counted from it; 0
	// takes the controller's value for the fabric.
	BaseRTT units.Time

	// Adopt takes the parameters that all hosts of the fabric share, when the host attaches and when they
	// change. Its error is logged. nil means that the host has them already.
	Adopt func(ctx context.Context, p []*headgatev1.HostParameter) error

	Interval time.Duration // between reports, 500 ms by default
	// MinBackoff and MaxBackoff bound the pause before attaching again, 100 ms and 5 s by default. The
	// pause doubles while attaching fails, and half of it is random.
	MinBackoff, MaxBackoff time.Duration
	Log                    *slog.Logger // none by default
}

// attachment is the state that outlives one stream. Run's goroutine owns it.
type attachment struct {
	opts   Options
	client headgatev1.HostServiceClient
	wanted map[agent.FlowKey]float64 // the controller's last answer for each flow
	seen   map[agent.FlowKey]units.Bytes
	at     units.Time // time of the last report

	channels map[agent.FlowKey]*headgatev1.Channel // channels that the controller gave to flows
}

// Run keeps the host attached until ctx ends and returns ctx's error. It returns the controller's
// error if the controller says, before it took any report, that it has no such host.
func Run(ctx context.Context, client headgatev1.HostServiceClient, opts Options) error {
	if opts.Interval <= 0 {
		opts.Interval = 500 * time.Millisecond
	}
	if opts.MinBackoff <= 0 {
		opts.MinBackoff = 100 * time.Millisecond
	}
	if opts.MaxBackoff < opts.MinBackoff {
		opts.MaxBackoff = max(5*time.Second, opts.MinBackoff)
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	a := &attachment{opts: opts, client: client, channels: map[agent.FlowKey]*headgatev1.Channel{}, wanted: map[agent.FlowKey]float64{}, seen: map[agent.FlowKey]units.Bytes{}}
	backoff, known := opts.MinBackoff, false
	for {
		worked, err := a.attach(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if worked {
			backoff, known = opts.MinBackoff, true
		}
		if refused := status.Convert(err); refused.Code() == codes.InvalidArgument && !known {
			return fmt.Errorf("the controller refuses %q: %s", opts.Host, refused.Message())
		}
		pause := backoff/2 + rand.N(backoff/2+1)
		opts.Log.Warn("not attached to the controller", "host", opts.Host, "error", err, "again_in", pause)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		backoff = min(2*backoff, opts.MaxBackoff)
	}
}

// attach holds one stream until it ends. worked reports whether the controller took a report.
func (a *attachment) attach(ctx context.Context) (worked bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := a.client.Attach(ctx)
	if err != nil {
		return false, err
	}
	commands := make(chan *headgatev1.HostCommand)
	ended := make(chan error, 1)
	go func() {
		for {
			c, err := stream.Recv()
			if err != nil {
				ended <- err
				return
			}
			headgatev1.FillDurations(c) // a controller of an earlier version
			select {
			case commands <- c:
			case <-ctx.Done():
				ended <- ctx.Err()
				return
			}
		}
	}()
	tick := time.NewTicker(a.opts.Interval)
	defer tick.Stop()
	for {
		report, err := a.report(ctx)
		if err == nil {
			headgatev1.FillDurations(report) // a controller of an earlier version needs these fields
			err = stream.Send(report)
		}
		if err != nil {
			cancel()
			return worked, cmp.Or(<-ended, err) // the stream's own status in place of the io.EOF of Send
		}
	wait:
		for {
			select {
			case <-tick.C:
				worked = true // a whole interval without an end
				break wait
			case c := <-commands:
				worked = true
				if err := a.obey(ctx, c); err != nil {
					a.opts.Log.Warn("command not obeyed", "host", a.opts.Host, "error", err)
				}
			case err := <-ended:
				return worked, err
			}
		}
	}
}

// obey applies a command: the fabric's parameters, or a channel or weight, now or when the flow
// starts. A flow whose weight was refused is held until the weight is granted, because otherwise hosts
// could ignore budgets.
func (a *attachment) obey(ctx context.Context, c *headgatev1.HostCommand) error {
	if p := c.GetParameters(); p != nil {
		if a.opts.Adopt == nil {
			return nil
		}
		return a.opts.Adopt(ctx, p.GetParameters())
	}
	if c.GetChannel() != nil {
		return a.obeyChannel(ctx, c.GetChannel())
	}
	if reason := c.GetRefused(); reason != "" {
		key, err := keyFromWire(c.GetWeight().GetFlow())
		if err != nil {
			return err
		}
		delete(a.wanted, key)
		a.opts.Log.Warn("flow held: its weight was refused", "host", a.opts.Host, "flow", key, "reason", reason)
		return a.opts.Do(ctx, func(ag Agent, now units.Time) {
			_ = ag.Hold(now, key, true) // the flow may have ended meanwhile
		})
	}
	key, weight, err := fromWire(c.GetWeight())
	if err != nil {
		return err
	}
	a.wanted[key] = weight
	return a.opts.Do(ctx, func(ag Agent, now units.Time) {
		// A flow that has not started gets its weight with a later report.
		if ag.SetWeight(now, key, weight) == nil {
			_ = ag.Hold(now, key, false)
		}
	})
}

// report collects the host's report, after giving flows the weights they should have.
func (a *attachment) report(ctx context.Context) (*headgatev1.HostReport, error) {
	var flows []agent.FlowReport
	var ended [len(agent.SizeBounds) + 1]agent.Completions
	var at units.Time
	err := a.opts.Do(ctx, func(ag Agent, now units.Time) {
		at = now
		flows, ended = ag.Report(), ag.Stats().Completions
		for i := range flows {
			f := &flows[i]
			if w, ok := a.wanted[f.Key]; ok && w != f.Weight && ag.SetWeight(now, f.Key, w) == nil {
				f.Weight = w
			}
		}
	})
	if err != nil {
		return nil, err
	}
	out := toWire(a.opts.Host, flows, ended, a.seen, a.channels, at-a.at)
	out.Sent = timestamppb.Now()
	a.at = at
	clear(a.seen)
	for _, f := range flows {
		a.seen[f.Key] = f.Acked
	}
	return out, nil
}
