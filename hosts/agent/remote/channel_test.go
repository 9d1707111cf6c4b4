package remote

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	headgatev1 "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/units"
)

// channelLaw stores the channel that it gets.
type channelLaw struct{ given channel.Channel }

func (l *channelLaw) OnAck(*law.Ack)                {}
func (l *channelLaw) OnEvent(law.Event, units.Time) {}
func (l *channelLaw) Timer() units.Time             { return units.MaxTime }
func (l *channelLaw) Allowance() law.Allowance      { return law.Allowance{Rate: units.Mbps, Window: 1000} }
func (l *channelLaw) SetChannel(t, lim units.Time) error {
	l.given = channel.Channel{Target: t, Limit: lim}
	return nil
}

// A flow that waits for a channel reports its priority until it has one. It moves to each new
// channel, and is held when a channel is refused.
func TestChannels(t *testing.T) {
	unit, err := maxqd.NewUnit(units.Microsecond)
	if err != nil {
		t.Fatal(err)
	}
	l := &channelLaw{}
	a, err := agent.New(agent.Config{
		Name: "h1", IP: netip.MustParseAddr("10.0.1.1"), Rate: units.Gbps, Unit: unit,
		NewLaw: func(agent.FlowSpec) (law.Law, error) { return l, nil },
	}, func([]byte) {})
	if err != nil {
		t.Fatal(err)
	}
	key, err := a.StartFlow(0, agent.FlowSpec{Dst: netip.MustParseAddr("10.0.2.1"), Priority: 2, AwaitChannel: true})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	do := func(ctx context.Context, fn func(*agent.Agent, units.Time)) error {
		mu.Lock()
		defer mu.Unlock()
		fn(a, units.Second)
		return ctx.Err()
	}
	const ms = units.Millisecond
	first := &headgatev1.Channel{Priority: 2, Target: durationpb.New((40 * ms).Duration()), Limit: durationpb.New((45 * ms).Duration()), Base: durationpb.New((24 * ms).Duration())}
	second := &headgatev1.Channel{Priority: 2, Target: durationpb.New((50 * ms).Duration()), Limit: durationpb.New((55 * ms).Duration()), Base: durationpb.New((24 * ms).Duration())}
	type state struct {
		given   channel.Channel
		waiting bool
	}
	states := make(chan state)
	client := serve(t, func(s grpc.BidiStreamingServer[headgatev1.HostReport, headgatev1.HostCommand]) error {
		step := 0
		for {
			r, err := s.Recv()
			if err != nil {
				return err
			}
			f := r.Flows[0]
			if f.VirtualPriority != 2 {
				t.Errorf("priority %d reported", f.VirtualPriority)
			}
			answer := &headgatev1.FlowChannel{Flow: f.Flow}
			has := f.GetChannel().GetTarget().AsDuration()
			switch {
			case step == 0 && has == 0:
				answer.Channel = first
			case step == 1 && has == first.Target.AsDuration():
				answer.Channel = second
			case step == 2 && has == second.Target.AsDuration():
				answer.Refused = "another has it"
			default:
				continue
			}
			step++
			if err := s.Send(&headgatev1.HostCommand{Channel: answer}); err != nil {
				return err
			}
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = Run(ctx, client, Options{Host: "h1", BaseRTT: 9 * ms, Interval: 2 * time.Millisecond, Do: func(ctx context.Context, fn func(Agent, units.Time)) error {
			err := DoFrom(do)(ctx, fn)
			mu.Lock()
			now := state{l.given, a.Report()[0].Waiting}
			mu.Unlock()
			select {
			case states <- now:
			case <-ctx.Done():
			}
			return err
		}})
	})
	defer wg.Wait()
	defer cancel()
	// The host's path is 15 ms shorter than the controller assumes.
	want := []state{
		{channel.Channel{}, true},
		{channel.Channel{Target: 25 * ms, Limit: 30 * ms}, false},
		{channel.Channel{Target: 35 * ms, Limit: 40 * ms}, false},
		{channel.Channel{Target: 35 * ms, Limit: 40 * ms}, true},
	}
	for timeout := time.After(time.Minute); len(want) > 0; {
		select {
		case s := <-states:
			if s == want[0] {
				want = want[1:]
			}
		case <-timeout:
			t.Fatalf("flow %v: did not come to %+v", key, want[0])
		}
	}
}

func TestChannelFromWire(t *testing.T) {
	good := func() *headgatev1.Channel {
		return &headgatev1.Channel{Target: durationpb.New(2000), Limit: durationpb.New(3000), Base: durationpb.New(1000)}
	}
	if c, err := channelFromWire(good(), 0); err != nil || c != (channel.Channel{Target: 2 * units.Microsecond, Limit: 3 * units.Microsecond}) {
		t.Errorf("%+v, %v", c, err)
	}
	for want, change := range map[string]func(*headgatev1.Channel){
		"channel.target 0s: want more than 0": func(c *headgatev1.Channel) { c.Target = nil },
		"channel.limit 16m40.000000001s":      func(c *headgatev1.Channel) { c.Limit = durationpb.New(1000*time.Second + 1) },
		"channel.base -1ns":                   func(c *headgatev1.Channel) { c.Base = durationpb.New(-1) },
	} {
		c := good()
		change(c)
		if _, err := channelFromWire(c, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
