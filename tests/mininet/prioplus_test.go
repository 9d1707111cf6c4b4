package mininet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/emulation"
	"github.com/headgate/headgate/units"
)

// TestPrioPlus lets four virtual priorities share one queue: each starts while the lower ones send, and they end
// from the highest down. At all times the highest running one should have the link.
func TestPrioPlus(t *testing.T) {
	const second = 50 * units.Microsecond // here
	// The paper's levels (§4.4): the fraction of a bandwidth-delay product with which a flow starts.
	more := extra{flow: map[string]string{}, host: map[string][]string{"h2": {"--level", "middle"}, "h3": {"--level", "high"}, "h4": {"--level", "high"}}}
	name := func(priority int) string { return fmt.Sprintf("P%d", priority) }
	var phases []emulation.Phase
	for p := 1; p <= 4; p++ {
		more.flow[name(p)] = fmt.Sprintf(",priority=%d", p)
		phases = append(phases, emulation.Phase{Name: name(p) + " starts", For: 12 * second, Actions: []emulation.Action{
			{Start: &emulation.Flow{Name: name(p), From: []string{fmt.Sprintf("h%d", p)}, To: "h8"}},
		}})
	}
	// The paper's 1.26 ms, in which a lower priority takes over, are 25 s here.
	for p := 4; p > 1; p-- {
		phases = append(phases, emulation.Phase{Name: name(p) + " ends", For: units.Time(30-3*p) * second, Actions: []emulation.Action{{Stop: name(p)}}})
	}
	for _, law := range []string{"swift", "ledbat"} {
		t.Run(law, func(t *testing.T) {
			each(t, "PrioPlus over "+law, func(t *testing.T, kind string) outcome {
				s := emulation.Shares("prioplus", "PrioPlus: four virtual priorities in one queue", phases...)
				// Faster, so that a round trip takes less than a second.
				faster := strings.NewReplacer("2Mbps", "5Mbps", "scale: 50000", "scale: 20000")
				s.Law, s.Fabric = emulation.Law("prioplus-"+law), []byte(faster.Replace(string(fabric(t, "single.yaml"))))
				// A base of 120 ms, and noise of 40 ms because processes wait for a processor.
				s.Variants[0].Config = "prioplus: {base_rtt: 6us, noise: 2us, fluctuation: 3us, priorities: 4}"
				s.Sample, s.Over, s.Judge = 10*units.Microsecond, 100*units.Microsecond, judgePrioPlus
				return judged(play(t, s, kind, more))
			})
		})
	}
}

// judgePrioPlus requires the highest running priority to have most of the link in each phase, and the others
// little of it.
func judgePrioPlus(r *emulation.Report) {
	const line = 100e9 * 1000 / 1058 // payload of full frames
	least, most, where := 1.0, 0.0, ""
	for _, v := range r.Variants {
		for _, p := range v.Phases {
			others := 0.0
			for i, f := range p.Flows {
				part := f.Measured / line
				if i < len(p.Flows)-1 {
					others += part
				} else if part < least {
					least, where = part, p.Name
				}
			}
			most = max(most, others)
		}
	}
	r.Checks = append(r.Checks, emulation.Check{
		What:     "the highest priority that runs has 80 % of the link or more, the others together 15 % or less",
		Measured: fmt.Sprintf("%.0f %% or more (least when %s), %.0f %% or less", least*100, where, most*100), OK: least >= 0.8 && most <= 0.15,
	})
}
