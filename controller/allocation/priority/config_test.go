package priority

import (
	"fmt"
	"testing"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/swift"
	"github.com/headgate/headgate/units"
)

func prioPlusConfig(t *testing.T, scale int, rate, section string) *config.Config {
	t.Helper()
	c, err := config.Parse("f.yaml", fmt.Appendf(nil, `
name: f
scale: %d
switches: [{name: s1, device_id: 1, address: "127.0.0.1:9559"}]
hosts: [{name: h1, ipv4: 10.0.0.1}, {name: h2, ipv4: 10.0.0.2}]
links: [{a: "s1:1", b: h1, rate: %s}, {a: "s1:2", b: h2, rate: 100Gbps}]
%s
`, scale, rate, section), nil, Section())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// 150 Swift flows with the paper's parameters vary the delay by its 3.2 µs. The emulated fabric has
// the same times, stretched by its scale.
func TestChannelPlanIsThePapers(t *testing.T) {
	if p := PlanOf(prioPlusConfig(t, 1, "100Gbps", "")); p != nil {
		t.Errorf("without a section: %+v", p)
	}
	for _, tt := range []struct {
		scale int
		rate  string
	}{{1, "100Gbps"}, {2000, "50Mbps"}} {
		p := PlanOf(prioPlusConfig(t, tt.scale, tt.rate, "prioplus: {base_rtt: 12us}"))
		if p == nil {
			t.Fatal("no plan")
		}
		a := float64(p.Fluctuation) / float64(tt.scale) / float64(units.Microsecond)
		if a < 3.1 || a > 3.3 || p.Noise != 800*units.Nanosecond*units.Time(tt.scale) || p.Base != 12*units.Microsecond*units.Time(tt.scale) || p.Priorities != 8 || p.Flows != 150 {
			t.Errorf("scale %d: %+v, a fluctuation of %.2f us at line rate", tt.scale, p, a)
		}
	}
}

func TestChannelPlanFollowsFlowsAndNoise(t *testing.T) {
	base := PlanOf(prioPlusConfig(t, 1, "100Gbps", "prioplus: {base_rtt: 12us}"))
	more := PlanOf(prioPlusConfig(t, 1, "100Gbps", "prioplus: {base_rtt: 12us, flows: 300, noise: 2us, priorities: 3}"))
	if more.Fluctuation < base.Fluctuation*19/10 || more.Fluctuation > base.Fluctuation*2 || more.Noise != 2*units.Microsecond || more.Priorities != 3 {
		t.Errorf("twice the flows: %+v, before %+v", more, base)
	}
	given := PlanOf(prioPlusConfig(t, 1, "100Gbps", "prioplus: {base_rtt: 12us, fluctuation: 5us, noise: 0s, longest: 60us}"))
	if given.Fluctuation != 5*units.Microsecond || given.Noise != 0 || given.Flows != 0 {
		t.Errorf("a fluctuation that was given: %+v", given)
	}
}

// The channels are planned for the additive steps that hosts' flows really take.
func TestPlannedIncreaseIsTheHosts(t *testing.T) {
	for scale, rate := range map[int]units.Rate{1: 100 * units.Gbps, 2000: 50 * units.Mbps} {
		c := prioPlusConfig(t, scale, rate.String(), "prioplus: {base_rtt: 12us}")
		host := param.For[swift.Params](law.Flow{Rate: rate, BaseRTT: c.Scaled(12 * units.Microsecond), MSS: 1000})
		if p := FromConfig(c); p.Increase != host.Increase || p.Beta != host.Beta || p.MaxMDF != host.MaxMDF {
			t.Errorf("scale %d: planned for %v, beta %v, max_mdf %v; hosts have %v, %v, %v", scale, p.Increase, p.Beta, p.MaxMDF, host.Increase, host.Beta, host.MaxMDF)
		}
	}
}
