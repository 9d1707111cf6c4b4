package preview

import (
	"fmt"
	"slices"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/units"
)

// Unseen returns the hosts of a configuration that do not report and of which no switch counts what they send.
func (p Ports) Unseen(c *config.Config, t *pb.GetTrafficResponse) []string {
	return slices.DeleteFunc(p.Silent(c), func(name string) bool {
		return slices.ContainsFunc(t.GetCounted(), func(h *pb.CountedHost) bool { return h.GetHost() == name && h.GetSince() != nil })
	})
}

// count takes what switches counted of hosts that do not report; of others it is what they reported.
func (o *observation) count(t *pb.GetTrafficResponse, silent []string) {
	o.now, o.rates = t.GetNow().AsTime(), map[[2]string]float64{}
	rate := func(p *pb.TrafficPair, span time.Duration) {
		pair := [2]string{p.GetSrc(), p.GetDst()}
		o.rates[pair] = max(o.rates[pair], 8*float64(p.GetBytes())/span.Seconds())
	}
	for _, p := range t.GetPairs() {
		rate(p, max(o.span, 1))
	}
	for _, h := range t.GetCounted() {
		if h.GetSince() == nil {
			continue
		}
		for _, p := range h.GetPairs() {
			rate(p, o.counting(h))
		}
		if slices.Contains(silent, h.GetHost()) {
			o.counted = append(o.counted, h)
		}
		o.together[h.GetHost()] = max(o.together[h.GetHost()], int(h.GetFanIn()))
	}
}

// counting is for how long a host has been counted.
func (o *observation) counting(h *pb.CountedHost) time.Duration {
	return max(o.now.Sub(h.GetSince().AsTime()), 1)
}

// fromCounters adds the flows of hosts that do not report, as their switches counted them: a burst that goes on, longer than
// any that ended, is a flow of a steady rate; the others come again as often as they did, of their mean size. A pair that
// sends no more than acknowledgements take is left out.
func (o *observation) fromCounters() {
	var names []string
	pairs, span := 0, time.Duration(0)
	for _, h := range o.counted {
		names, span = append(names, h.GetHost()), max(span, o.counting(h))
		for _, p := range h.GetPairs() {
			if o.rates[[2]string{p.GetSrc(), p.GetDst()}] <= ackPart*o.rates[[2]string{p.GetDst(), p.GetSrc()}] || o.flows > maxObserved {
				continue
			}
			n := o.flows
			common := fmt.Sprintf("from: %q, to: %q, class: %d, law: ", p.GetSrc(), p.GetDst(), o.class())
			if rate, ok := o.c.LineRate(units.Rate(p.GetRunningBps())); ok && rate > 0 && p.GetRunningBytes() > p.GetLargestBytes() {
				law := fmt.Sprintf("counted-%d", pairs+1)
				o.steady(law, float64(rate))
				fmt.Fprintf(&o.text, "  - {kind: flow, group: counted, %s%s, stop: %v}\n", common, law, o.length)
				o.flows++
			}
			o.again("counted", common+o.law, p, o.counting(h))
			if o.flows > n {
				pairs++
				o.used++
			}
		}
	}
	if len(names) > 0 {
		o.says = append(o.says, fmt.Sprintf("%s: %s, their rates and bursts are those that the flow counters of their switches showed within %v; "+
			"which law they follow is not known, nor packets in queues that are not counted", doNotReport(names), units.Count(pairs, "pair"), span.Round(time.Second)))
	}
}
