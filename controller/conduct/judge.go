package conduct

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/units"
)

// party is a flow of a window, with the payload rates that it had and should have had.
type party struct {
	at
	rate, share float64 // bits per second
}

// judge judges the window of a port that ends with a sample. The caller holds mu.
func (j *Judge) judge(p *port, s view.Sample) {
	span := s.Time.Sub(p.began.Time).Seconds()
	departed := 8 * float64(s.DepartureBytes-p.began.DepartureBytes) / span
	full := departed >= fullShare*float64(p.Rate)
	parties, total := j.parties(p)
	found := map[alarm]string{}
	if full {
		overweight(p, parties, found)
		j.unreported(p, s.Time, parties, total, found)
	}
	for i := range parties {
		j.believe(p, &parties[i], found)
	}
	for a, text := range found {
		j.set(s.Time, p, a, true, text)
	}
	for a, st := range j.alarms {
		if _, still := found[a]; !still && st.at == (place{p.Switch, p.Number}) {
			j.set(s.Time, p, a, false, "")
		}
	}
}

// parties returns the flows to the port's host that were there for the whole window, with the sum of their rates.
func (j *Judge) parties(p *port) (list []party, total float64) {
	weights := 0.0
	for _, flows := range j.to[p.Address] {
		for k, f := range flows {
			was, old := p.flows[k]
			if took := f.when.Sub(was.when).Seconds(); old && took > 0 && f.Acked >= was.Acked && f.Weight > 0 {
				list = append(list, party{at: f, rate: 8 * float64(f.Acked-was.Acked) / took})
				total += list[len(list)-1].rate
				weights += f.Weight
			}
		}
	}
	for i := range list {
		list[i].share = total * list[i].Weight / weights
	}
	slices.SortFunc(list, func(a, b party) int {
		return cmp.Or(a.Src.Compare(b.Src), a.Dst.Compare(b.Dst))
	})
	return list, total
}

// overweight finds flows that have more than their share of a full port, while one of another host starves.
func overweight(p *port, parties []party, found map[alarm]string) {
	for _, f := range parties {
		if f.rate <= overShare*f.share {
			continue
		}
		for _, o := range parties {
			if o.host != f.host && o.rate < starvedShare*o.share {
				found[alarm{OverShare, f.host, p.Host}] = fmt.Sprintf(
					"flow %s of %s takes %v of the link of %v to %s, %.1f times its share by weight, while %s of %s gets %v of the %v that are its share",
					f.name(), f.host, bits(f.rate), p.Rate, p.Host, f.rate/f.share, o.name(), o.host, bits(o.rate), bits(o.share))
				break
			}
		}
	}
}

// unreported finds a host that sends to the port's host without a report, takes more than half of the link, and leaves the
// flows that are reported less. Switches count by source where PACC is on.
func (j *Judge) unreported(p *port, now time.Time, parties []party, total float64, found map[alarm]string) {
	if j.counted == nil || len(parties) == 0 || total >= float64(p.Rate)/2 {
		p.counted = nil
		return
	}
	bytes := map[netip.Addr]uint64{}
	for _, source := range j.counted() {
		for _, pair := range source.Pairs {
			if pair.Dst == p.Address {
				bytes[pair.Src] += pair.Bytes
			}
		}
	}
	span := now.Sub(p.asked).Seconds()
	for src, n := range bytes {
		host := j.names[src]
		rate := 8 * float64(n-min(n, p.counted[src])) / span
		if p.counted == nil || host == "" || j.to[p.Address][host] != nil || rate <= float64(p.Rate)/2 {
			continue
		}
		found[alarm{OverShare, host, p.Host}] = fmt.Sprintf("%s sends %v to %s, whose link has %v, in flows that no agent reports, while %s get %v in all",
			host, bits(rate), p.Host, p.Rate, units.Count(len(parties), "reported flow"), bits(total))
	}
	p.counted, p.asked = bytes, now
}

// believe finds impossible maxQD values: less than the delay of the path's last queue alone during the
// whole window, or more than the round trip of the packets.
func (j *Judge) believe(p *port, f *party, found map[alarm]string) {
	if f.Dst.Port() != j.udpPort || f.rate == 0 {
		return
	}
	queue := units.Bytes(p.least)
	delay := p.Rate.TxTime(queue).Duration()
	a := alarm{Telemetry, f.host, p.Host}
	switch {
	case p.samples >= leastSamples && queue >= leastQueue && f.MaxQD < delay/disbelief:
		found[a] = fmt.Sprintf("flow %s of %s reports a maxQD of %v, but the queue to %s never held less than %v, which take %v: %s echoes, or %s reports, what cannot be",
			f.name(), f.host, f.MaxQD, p.Host, queue, delay, p.Host, f.host)
	case f.RTT > 0 && f.MaxQD > 2*f.RTT:
		found[a] = fmt.Sprintf("flow %s of %s reports a maxQD of %v, more than its whole round trip of %v: %s echoes, or %s reports, what cannot be",
			f.name(), f.host, f.MaxQD, f.RTT, p.Host, f.host)
	}
}

func bits(perSecond float64) units.Rate { return units.Rate(perSecond) }
