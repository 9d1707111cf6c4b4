package agent_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/dctcp"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/prioplus"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/hosts/law/swift"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// channelled makes each flow PrioPlus in its own channel.
func channelled(c *agent.Config) {
	rng := rand.New(rand.NewPCG(1, 2))
	rate := c.Rate
	c.NewLaw = func(f agent.FlowSpec) (law.Law, error) {
		under, err := swift.New(param.For[swift.Params](law.Flow{Rate: rate, BaseRTT: starRTT, MSS: 1000}))
		if err != nil {
			return nil, err
		}
		p := middle(law.Flow{Rate: rate, BaseRTT: starRTT, MSS: 1000, Scale: 1000, Rand: rng})
		p.Target, p.Limit = f.Channel.Target, f.Channel.Limit
		return prioplus.New(under, p)
	}
}

// middle returns the parameters of a flow of middle priority.
func middle(f law.Flow) prioplus.Params {
	p := prioplus.Params{Level: prioplus.Middle}
	param.Defaults(func(s *param.Set) { p.Visit(s, &f) })
	return p
}

// Two flows of one host exchange their channels while they run: the flow with the higher channel
// has the link.
func TestFlowsFollowTheirChannels(t *testing.T) {
	s := newStar(t)
	from := config(1, 40*units.Mbps)
	channelled(&from)
	h := s.host(from, 40*units.Mbps)
	s.host(config(3, 40*units.Mbps), 20*units.Mbps)
	plan := channel.Plan{Base: starRTT, Fluctuation: 10 * units.Millisecond, Noise: 2 * units.Millisecond}
	low, err := plan.Channel(1)
	if err != nil {
		t.Fatal(err)
	}
	high, err := plan.Channel(3)
	if err != nil {
		t.Fatal(err)
	}
	a := s.start(h, agent.FlowSpec{Dst: addr(3), Priority: 1, Channel: low})
	b := s.start(h, agent.FlowSpec{Dst: addr(3), Priority: 3, Channel: low, AwaitChannel: true})
	got := s.rates(units.Second, h)
	if got[b] != 0 {
		t.Errorf("a flow without a channel sent %.2f Mb/s", got[b])
	}
	give := func(key agent.FlowKey, c channel.Channel) {
		if err := h.SetChannel(s.loop.Now(), key, c); err != nil {
			t.Fatal(err)
		}
	}
	give(b, high)
	s.loop.RunUntil(s.loop.Now() + units.Second)
	got = s.rates(2*units.Second, h)
	near(t, "the higher channel", got[b], 20*goodput, 0.1)
	if r := h.Report()[1]; r.Key == b && (r.Priority != 3 || r.Channel != high || r.Waiting) {
		t.Errorf("report %+v", r)
	}

	give(a, high)
	give(b, low)
	s.loop.RunUntil(s.loop.Now() + units.Second)
	got = s.rates(2*units.Second, h)
	near(t, "the flow that was moved up", got[a], 20*goodput, 0.1)
	if got[b] > 2 {
		t.Errorf("the flow that was moved down sends %.2f Mb/s", got[b])
	}

	if err := h.DropChannel(s.loop.Now(), a); err != nil {
		t.Fatal(err)
	}
	s.loop.RunUntil(s.loop.Now() + units.Second)
	got = s.rates(2*units.Second, h)
	if got[a] != 0 || got[b] < 18 {
		t.Errorf("after the higher one lost its channel: %.2f and %.2f Mb/s", got[a], got[b])
	}
}

func TestChannelErrors(t *testing.T) {
	s := newStar(t)
	from := config(1, 40*units.Mbps)
	plain := s.host(from, 40*units.Mbps)
	key := s.start(plain, agent.FlowSpec{Dst: addr(3)})
	ch := channel.Channel{Target: 20 * units.Millisecond, Limit: 22 * units.Millisecond}
	channelled(&from)
	from.IP = addr(2)
	pp := s.host(from, 40*units.Mbps)
	mine := s.start(pp, agent.FlowSpec{Dst: addr(3), Priority: 1, Channel: ch})
	for _, tt := range []struct {
		err  error
		want string
	}{
		{plain.SetChannel(0, key, ch), "its law has no channels"},
		{plain.SetChannel(0, mine, ch), "no such flow"},
		{plain.DropChannel(0, mine), "no such flow"},
		{pp.SetChannel(0, mine, channel.Channel{Target: units.Millisecond, Limit: ch.Limit}), "target 1ms: want more than the base delay"},
		{func() error { _, err := plain.StartFlow(agent.FlowSpec{Dst: addr(4), Priority: 2}); return err }(), "flow priority 2: want 0, its law has no channels"},
		{func() error { _, err := plain.StartFlow(agent.FlowSpec{Dst: addr(4), Priority: -1}); return err }(), "flow priority -1: want 1 to 65536"},
		{func() error { _, err := plain.StartFlow(agent.FlowSpec{Dst: addr(4), Deadline: -1}); return err }(), "flow deadline -1ps: want 0 (none) or more"},
		{func() error { _, err := pp.StartFlow(agent.FlowSpec{Dst: addr(4)}); return err }(), "target 0s: want more than the base delay"},
	} {
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("error %v, want %q", tt.err, tt.want)
		}
	}
}

// A law learns its flow's size and deadline, for D2TCP.
func TestFlowLawKnowsTheFlow(t *testing.T) {
	var asked []agent.FlowSpec
	_, h, _ := talker(t, func(c *agent.Config) {
		c.NewLaw = func(f agent.FlowSpec) (law.Law, error) {
			asked = append(asked, f)
			return dctcp.New(param.For[dctcp.Params](law.Flow{Rate: pfcRate, MSS: 1000}))
		}
	})
	if _, err := h.StartFlow(agent.FlowSpec{Dst: addr(2), DstPort: packet.RoCEv2Port, Size: 5000, Deadline: units.Second, Weight: 2}); err != nil {
		t.Fatal(err)
	}
	if len(asked) != 1 || asked[0].Size != 5000 || asked[0].Deadline != units.Second || asked[0].Weight != 2 {
		t.Errorf("the law was asked for with %+v", asked)
	}
}
