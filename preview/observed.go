package preview

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/buffer"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/controller/feature/soze"
	"github.com/headgate/headgate/units"
)

// observedLength is the length of observed traffic at line rate.
const observedLength = 2 * units.Millisecond

// maxObserved bounds the number of flows of observed traffic.
const maxObserved = 20_000

// errUnseen reports that there is no traffic to play.
var errUnseen = errors.New("the controller knows of no traffic: no attached host has reported flows, and ports sent nothing to other hosts in their last interval; want --traffic with a file")

// Observed makes traffic from the reports of a fabric's hosts (package preview/observed), and from the counters of
// ports to hosts that do not report. Running flows last for the whole time. Ended flows start again, with their
// mean size and as often as before. If a host saw a fan-in, as many sources start their flows to it together; all
// other flows start out of step. Flows that carry maxQD follow soze, flows with a virtual priority follow its law,
// and all others follow law. Bursts of hosts that do not report, as switches counted them, become flows in the
// same way.
func Observed(c *config.Config, t *pb.GetTrafficResponse, ports Ports, law string) (Traffic, error) {
	span := time.Duration(0) // without a report there are no pairs
	if t.GetSince() != nil {
		span = t.GetNow().AsTime().Sub(t.GetSince().AsTime())
	}
	o := observation{c: c, law: law, span: span, together: map[string]int{}, length: observedLength}
	for _, f := range t.GetFanIns() {
		o.together[f.GetDst()] = int(f.GetDegree())
	}
	silent := ports.Silent(c)
	o.unseen = ports.Unseen(c, t)
	o.count(t, silent)
	pairs := slices.Clone(t.GetPairs()) // busiest pairs first, so that they form the fan-ins
	slices.SortStableFunc(pairs, func(a, b *pb.TrafficPair) int { return cmp.Compare(b.GetEndedBytes(), a.GetEndedBytes()) })
	for o.flows = maxObserved + 1; o.flows > maxObserved; o.length /= 2 {
		o.start()
		for _, p := range pairs {
			o.pair(p)
		}
		o.fromCounters()
		o.unreported(ports)
	}
	o.length *= 2
	if o.flows == 0 {
		return Traffic{}, errUnseen
	}
	name := "what hosts reported"
	for _, h := range o.counted {
		name, span = "what hosts reported and switches counted", max(span, o.counting(h))
	}
	tr := Traffic{Name: fmt.Sprintf("%s within %v", name, span.Round(time.Second)), File: "observed", Text: run(o.sections(), "dcqcn", o.length)}
	tr.Notes = append(tr.Notes, fmt.Sprintf("%s for %v of %s; hosts report every half second, so bursts within it, shorter flows, and the causes of low rates, are not known", units.Count(o.flows, "flow"), o.length, units.Count(o.used, "pair")))
	tr.Notes = append(tr.Notes, o.says...)
	if o.rare > 0 {
		tr.Notes = append(tr.Notes, fmt.Sprintf("%s, whose flows begin less often than once in %v, left out", units.Count(o.rare, "pair"), o.length))
	}
	return tr, nil
}

// observation holds the data of Observed while it makes traffic.
type observation struct {
	c        *config.Config
	law      string
	span     time.Duration
	together map[string]int // number of sources that begin together, by destination
	length   units.Time

	text, laws        strings.Builder
	fans              map[string]int
	flows, used, rare int
	receivers         int      // receivers of unreported traffic so far
	says              []string // notes about hosts that do not report

	counted []*pb.CountedHost     // hosts that switches count and that do not report
	rates   map[[2]string]float64 // rates of pairs in bits a second, the higher of the counted and the reported one
	unseen  []string              // hosts that neither report nor are counted
	now     time.Time
}

func (o *observation) start() {
	o.text.Reset()
	o.laws.Reset()
	o.fans, o.flows, o.used, o.rare, o.receivers, o.says = map[string]int{}, 0, 0, 0, 0, nil
}

// sections returns the sections laws and flows, as YAML.
func (o *observation) sections() string {
	text := "flows:\n" + o.text.String()
	if o.laws.Len() > 0 {
		text = "laws:\n" + o.laws.String() + text
	}
	return text
}

// pair adds the flows of a pair.
func (o *observation) pair(p *pb.TrafficPair) {
	law, class := o.law, uint8(o.class())
	switch {
	case p.GetVirtualPriority() > 0:
		law = fmt.Sprintf("priority-%d", min(p.GetVirtualPriority(), mostPriorities))
	case p.GetMaxQd():
		law, class = "soze", qos.FromConfig(o.c).ClassOf(soze.FromConfig(o.c).DSCP).Class
	}
	common := fmt.Sprintf("from: %q, to: %q, class: %d, law: %s", p.GetSrc(), p.GetDst(), class, law)
	if w := p.GetWeight(); w > 1e-9 && w <= 1e9 {
		common += fmt.Sprintf(", weight: %g", w)
	}
	n := o.flows
	if k := p.GetRunning(); k > 0 {
		fmt.Fprintf(&o.text, "  - {kind: flow, group: running, %s, count: %d, stop: %v}\n", common, k, o.length)
		o.flows += int(k)
	}
	o.again("ended", common, p, o.span)
	if o.flows > n {
		o.used++
	}
}

// again adds flows that repeat the flows of a pair that ended within span.
func (o *observation) again(group, common string, p *pb.TrafficPair, span time.Duration) {
	if p.GetEnded() == 0 || p.GetEndedBytes() == 0 {
		return
	}
	every := units.FromDuration(span) / units.Time(p.GetEnded()) / units.Time(o.c.Scale)
	phase := units.Time(math.Mod(float64(o.used)*math.Phi, 1) * float64(every))
	if degree := o.together[p.GetDst()]; o.fans[p.GetDst()] < degree {
		o.fans[p.GetDst()]++
		phase = 0
	}
	if phase >= o.length {
		o.rare++
		return
	}
	count := int((o.length-phase-1)/max(every, 1)) + 1
	fmt.Fprintf(&o.text, "  - {kind: flow, group: %s, %s, size: %dB, count: %d, every: %dps, start: %dps}\n",
		group, common, max(p.GetEndedBytes()/p.GetEnded(), 1), min(count, maxObserved+1), every, phase)
	o.flows += count
}

// class returns the class to use for flows, because reports do not name it: the lowest lossless class, or 0.
func (o *observation) class() int {
	for i := range o.c.Switches {
		if b := buffer.FromSwitch(&o.c.Switches[i]); b.On() {
			return bits.TrailingZeros8(b.Lossless) % 8
		}
	}
	return 0
}

// Unseen returns the hosts of a configuration that do not report and that no switch counts.
func (p Ports) Unseen(c *config.Config, t *pb.GetTrafficResponse) []string {
	return slices.DeleteFunc(p.Silent(c), func(name string) bool {
		return slices.ContainsFunc(t.GetCounted(), func(h *pb.CountedHost) bool { return h.GetHost() == name && h.GetSince() != nil })
	})
}

// count computes the rates of all pairs, and keeps the counters of the hosts that do not report. Other hosts have
// their reports.
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

// counting returns for how long a host has been counted.
func (o *observation) counting(h *pb.CountedHost) time.Duration {
	return max(o.now.Sub(h.GetSince().AsTime()), 1)
}

// fromCounters adds the flows of hosts that do not report, as their switches counted them. A running burst that is
// larger than any ended one becomes a flow of a steady rate. Ended bursts start again as often as before, with
// their mean size. fromCounters leaves out a pair that sends no more than acknowledgements need.
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
			"their laws, and packets in queues that are not counted, are not known", doNotReport(names), units.Count(pairs, "pair"), span.Round(time.Second)))
	}
}
