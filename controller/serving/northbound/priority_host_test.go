package northbound

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/agent/remote"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/prioplus"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/hosts/law/swift"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/units"
)

// A real host agent with PrioPlus uses the API: its flow waits for a channel, uses it, follows a
// new plan, and stops when another application gets its priority.
func TestHostFollowsChannels(t *testing.T) {
	r := start(t)
	unit, err := maxqd.NewUnit(units.Microsecond)
	if err != nil {
		t.Fatal(err)
	}
	const base = 12 * units.Microsecond
	sent := 0
	a, err := agent.New(agent.Config{
		Name: "h1", IP: netip.MustParseAddr("10.0.0.1"), Rate: units.Gbps, Unit: unit,
		NewLaw: func(f agent.FlowSpec) (law.Law, error) {
			under, err := swift.New(param.For[swift.Params](law.Flow{Rate: units.Gbps, BaseRTT: base, MSS: 1000}))
			if err != nil {
				return nil, err
			}
			p := param.For[prioplus.Params](law.Flow{
				Rate: units.Gbps, BaseRTT: base, MSS: 1000, Target: f.Channel.Target, Limit: f.Channel.Limit, Rand: rand.New(rand.NewPCG(1, 2)),
			})
			p.StartNow = true
			return prioplus.New(under, p)
		},
	}, func([]byte) { sent++ })
	if err != nil {
		t.Fatal(err)
	}
	placeholder := channel.Channel{Target: 2 * base, Limit: 3 * base}
	if _, err := a.StartFlow(0, agent.FlowSpec{Dst: netip.MustParseAddr("10.0.0.2"), App: "batch", Priority: 2, Channel: placeholder, AwaitChannel: true}); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	now := units.Time(0)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = remote.Run(ctx, r.host(), remote.Options{Host: "h1", Interval: 5 * time.Millisecond, Do: func(ctx context.Context, fn func(remote.Agent, units.Time)) error {
			mu.Lock()
			defer mu.Unlock()
			now += units.Millisecond
			fn(a, now)
			a.Wake(now)
			return ctx.Err()
		}})
	})
	defer wg.Wait()
	defer cancel()
	until := func(what string, ok func(agent.FlowReport) bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			mu.Lock()
			f := a.Report()[0]
			mu.Unlock()
			if ok(f) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %+v", what, f)
			}
		}
	}
	time.Sleep(20 * time.Millisecond) // several reports
	mu.Lock()
	if sent != 0 {
		t.Errorf("%d frames left before there was a channel", sent)
	}
	mu.Unlock()
	configure(t, r, plan(t, paperNoise))
	until("the paper's plan", func(f agent.FlowReport) bool {
		return !f.Waiting && f.Channel.Target == 20*units.Microsecond && f.Sent > 0
	})
	configure(t, r, plan(t, 2*units.Microsecond))
	until("more noise", func(f agent.FlowReport) bool {
		return f.Channel == channel.Channel{Target: 22400 * units.Nanosecond, Limit: 26 * units.Microsecond}
	})
	if _, err := r.priorities.Allocate(nil, "web", 2); err != nil {
		t.Fatal(err)
	}
	until("web's priority", func(f agent.FlowReport) bool { return f.Waiting })
	if err := r.priorities.Release(nil, "web", 2); err != nil {
		t.Fatal(err)
	}
	until("anybody's again", func(f agent.FlowReport) bool { return !f.Waiting })
	configure(t, r, &config.Config{})
	until("no virtual priorities", func(f agent.FlowReport) bool { return f.Waiting })
}
