package agent_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/none"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/prioplus"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/hosts/law/swift"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/units"
)

// Running flows that follow weights get a law with the new parameters and keep their weight. Other
// running flows keep their law; flows that start later get the new one.
func TestAdopt(t *testing.T) {
	open, err := none.New(7*units.Mbps, 0)
	if err != nil {
		t.Fatal(err)
	}
	laws := func(rate units.Rate) func(agent.FlowSpec) (law.Law, error) {
		return func(f agent.FlowSpec) (law.Law, error) {
			if f.App == "none" {
				return open, nil
			}
			return soze.New(params(rate), f.Weight)
		}
	}
	a, err := agent.New(agent.Config{Name: "h1", IP: addr(1), Rate: 20 * units.Mbps, Unit: unit, NewLaw: laws(20 * units.Mbps)}, func([]byte) {})
	if err != nil {
		t.Fatal(err)
	}
	start := func(app string) agent.FlowKey {
		t.Helper()
		key, err := a.StartFlow(0, agent.FlowSpec{Dst: addr(2), App: app})
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	weighted := start("")
	start("none")
	if err := a.SetWeight(0, weighted, 3); err != nil {
		t.Fatal(err)
	}
	coarser, err := maxqd.NewUnit(8 * units.Microsecond)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Adopt(units.Second, coarser, laws(5*units.Mbps)); err != nil {
		t.Fatal(err)
	}
	start("later")
	want := []units.Rate{5 * units.Mbps, 7 * units.Mbps, 5 * units.Mbps}
	for i, r := range a.Report() {
		if r.Allowed != want[i] {
			t.Errorf("flow %d may send at %v, want %v", i, r.Allowed, want[i])
		}
	}
	if w := a.Report()[0].Weight; w != 3 || a.Config().Unit != coarser {
		t.Errorf("weight %v, unit %v", w, a.Config().Unit.Time())
	}
}

// A running PrioPlus flow gets a law with the new base round trip, in its present channel. If the
// channel does not exceed the new base, the flow is held until it gets another channel.
func TestAdoptNewBase(t *testing.T) {
	const ms = units.Millisecond
	var bases []units.Time // of the new laws
	laws := func(base units.Time) func(agent.FlowSpec) (law.Law, error) {
		return func(f agent.FlowSpec) (law.Law, error) {
			flow := law.Flow{
				Rate: 20 * units.Mbps, BaseRTT: base, MSS: 1000, Scale: 1000,
				Target: f.Channel.Target, Limit: f.Channel.Limit, Rand: rand.New(rand.NewPCG(1, 2)),
			}
			under, err := swift.New(param.For[swift.Params](flow))
			if err != nil {
				return nil, err
			}
			l, err := prioplus.New(under, middle(flow))
			if err == nil {
				bases = append(bases, base)
			}
			return l, err
		}
	}
	a, err := agent.New(agent.Config{Name: "h1", IP: addr(1), Rate: 20 * units.Mbps, Unit: unit, NewLaw: laws(8 * ms)}, func([]byte) {})
	if err != nil {
		t.Fatal(err)
	}
	key, err := a.StartFlow(0, agent.FlowSpec{Dst: addr(2), Priority: 1, Channel: channel.Channel{Target: 12 * ms, Limit: 15 * ms}})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(when string, waiting bool, want ...units.Time) {
		t.Helper()
		if r := a.Report()[0]; r.Waiting != waiting || !slices.Equal(bases, want) {
			t.Errorf("%s: waiting %v, laws for %v; want %v, %v", when, r.Waiting, bases, waiting, want)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(a.Adopt(ms, unit, laws(10*ms)))
	expect("a little longer", false, 8*ms, 10*ms)
	must(a.Adopt(2*ms, unit, laws(30*ms)))
	expect("longer than the channel", true, 8*ms, 10*ms)
	must(a.Adopt(2*ms, unit, laws(10*ms)))
	expect("as before", false, 8*ms, 10*ms, 10*ms)
	must(a.Adopt(2*ms, unit, laws(30*ms)))
	if a.SetChannel(3*ms, key, channel.Channel{Target: 20 * ms, Limit: 25 * ms}) == nil {
		t.Error("a channel below the new base was taken")
	}
	expect("a channel below it", true, 8*ms, 10*ms, 10*ms)
	must(a.SetChannel(4*ms, key, channel.Channel{Target: 34 * ms, Limit: 37 * ms}))
	expect("a channel above it", false, 8*ms, 10*ms, 10*ms, 30*ms)
	must(a.SetChannel(5*ms, key, channel.Channel{Target: 38 * ms, Limit: 41 * ms}))
	expect("another channel", false, 8*ms, 10*ms, 10*ms, 30*ms)
	must(a.DropChannel(6*ms, key))
	must(a.Adopt(7*ms, unit, laws(20*ms)))
	expect("refused its channel", true, 8*ms, 10*ms, 10*ms, 30*ms, 20*ms)
}
