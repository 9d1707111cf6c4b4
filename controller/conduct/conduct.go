// Package conduct finds hosts that take more of a link than their weights give them while others starve, and telemetry
// that cannot be true. It compares the flows that hosts report with polls of the ports that the flows cross, and
// with counters by source where switches have them. It names hosts, and changes nothing.
package conduct

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/preview/observed"
	"github.com/headgate/headgate/units"
)

// A port is judged once per window. An alarm begins, and ends, after insist judgments in a row, so that flows that
// begin or end, and laws that converge, raise none.
const (
	window = time.Second
	insist = 2
)

// The thresholds of too much traffic and of impossible telemetry.
const (
	fullShare    = 0.8 // part of its rate: a port to a host that carries more is a bottleneck
	overShare    = 1.5 // times its share by weights: no flow that follows its law takes more for longer than a window
	starvedShare = 0.5 // part of its share: a flow that gets less is starved
	disbelief    = 4   // if a queue's delay was this many times the packets' maxQD, maxQD left the queue out
	leastQueue   = 12 * units.KB
	leastSamples = 3 // least samples of a queue in a window
)

// Kinds of events; with the suffix "_over" they report the end.
const (
	OverShare = "host.over_share"
	Telemetry = "host.telemetry"
)

// HostAlarm is misconduct that was found at a host of the fabric.
type HostAlarm struct {
	Host, Alarm string // Alarm is the kind of its event, without the prefix "host."
}

// Port is a port of a switch that leads to a host or another switch.
type Port struct {
	config.Endpoint
	Peer      string        // the host or switch
	Addresses [2]netip.Addr // IPv4 and IPv6 addresses of a host; both invalid for a switch
	Rate      units.Rate
	Queue     int // the queue of Söze's data
}

// Flow is one flow of a report.
type Flow struct {
	Src, Dst   netip.AddrPort
	Law        string // the law that the host reported
	Acked      uint64 // payload bytes since it began
	Weight     float64
	MaxQD, RTT time.Duration // reported by the host; 0 for unknown
}

func (f Flow) name() string { return fmt.Sprintf("%v,%v", f.Src, f.Dst) }

type key struct{ src, dst netip.AddrPort }

// at is a flow as its host reported it last.
type at struct {
	Flow
	host string
	when time.Time
	path []config.Endpoint // the ports that it crosses; only the one to its destination if the path is not known
}

// port is a Port with its observations.
type port struct {
	Port
	began   feature.Sample // the sample that began the window; its Time is zero before the first
	least   uint32         // bytes of the queue, in all samples of the window
	samples int
	full    bool                  // the port was a bottleneck in the last window
	level   float64               // rate in that window for a weight of 1, bits per second
	flows   map[key]at            // at the beginning of the window
	counted map[netip.Addr]uint64 // bytes to the host that switches had counted at that time, by source; nil if not read
	asked   time.Time
}

// alarm is a host's misconduct against other hosts' traffic, in one flow or in many.
type alarm struct{ kind, host, to string }

type standing struct {
	on     bool
	streak int // consecutive judgments that differ from on
	at     config.Endpoint
	since  time.Time
}

// Judge judges. It is safe for concurrent use. Its memory grows with the flows that hosts report.
type Judge struct {
	event   func(*pb.Event)
	counted func() []observed.Source
	path    func(src, dst netip.AddrPort) []config.Endpoint

	mu      sync.Mutex
	udpPort uint16 // UDP port of packets that carry maxQD
	hosts   map[netip.Addr]Port
	ports   map[config.Endpoint]*port
	through map[config.Endpoint]map[string]map[key]at // flows by a port that they cross and the host that reported them
	from    map[string][]config.Endpoint              // the ports under which through has flows of a host
	alarms  map[alarm]*standing
}

// New returns a judge without ports. It publishes through event, which must not call the judge. counted returns the
// switches' counters by source; nil means that there are none. path returns the ports of switches that a flow
// crosses, or nil if its way is not known.
func New(event func(*pb.Event), counted func() []observed.Source, path func(src, dst netip.AddrPort) []config.Endpoint) *Judge {
	return &Judge{
		event: event, counted: counted, path: path, ports: map[config.Endpoint]*port{}, through: map[config.Endpoint]map[string]map[key]at{},
		from: map[string][]config.Endpoint{}, alarms: map[alarm]*standing{},
	}
}

// Configure replaces the ports that are judged, and ends the alarms of those that are no more.
func (j *Judge) Configure(ports []Port, udpPort uint16) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.udpPort, j.hosts = udpPort, map[netip.Addr]Port{}
	before := j.ports
	j.ports = map[config.Endpoint]*port{}
	for _, p := range ports {
		for _, a := range p.Addresses {
			if a.IsValid() {
				j.hosts[a] = p
			}
		}
		if old := before[p.Endpoint]; old != nil && old.Port == p {
			j.ports[p.Endpoint] = old
		} else {
			j.ports[p.Endpoint] = &port{Port: p}
		}
	}
	for a, s := range j.alarms {
		if j.ports[s.at] != before[s.at] {
			j.end(time.Now(), a, s)
		}
	}
}

// Reported takes all flows of a host; a host that is no longer attached has none.
func (j *Judge) Reported(host string, when time.Time, flows []Flow) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range j.from[host] {
		if delete(j.through[p], host); len(j.through[p]) == 0 {
			delete(j.through, p)
		}
	}
	delete(j.from, host)
	for _, f := range flows {
		to, ours := j.hosts[f.Dst.Addr()]
		if !ours {
			continue
		}
		path := j.path(f.Src, f.Dst)
		if path == nil {
			path = []config.Endpoint{to.Endpoint}
		}
		for _, p := range path {
			if j.through[p] == nil {
				j.through[p] = map[string]map[key]at{}
			}
			if j.through[p][host] == nil {
				j.through[p][host] = map[key]at{}
				j.from[host] = append(j.from[host], p)
			}
			j.through[p][host][key{f.Src, f.Dst}] = at{f, host, when, path}
		}
	}
}

// Sampled takes the result of a port's poll.
func (j *Judge) Sampled(s feature.Sample) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p := j.ports[config.Endpoint{Node: s.Switch, Port: s.Port}]
	if p == nil {
		return
	}
	if p.began.Time.IsZero() || s.DepartureBytes < p.began.DepartureBytes {
		j.begin(p, s)
		return
	}
	p.least, p.samples = min(p.least, s.QueueBytes[p.Queue]), p.samples+1
	if s.Time.Sub(p.began.Time) < window {
		return
	}
	j.judge(p, s)
	j.begin(p, s)
}

func (j *Judge) begin(p *port, s feature.Sample) {
	p.began, p.least, p.samples, p.flows = s, s.QueueBytes[p.Queue], 1, map[key]at{}
	for _, flows := range j.through[p.Endpoint] {
		maps.Copy(p.flows, flows)
	}
}

// set notes whether a judgment found an alarm, and begins or ends it. The caller holds mu.
func (j *Judge) set(now time.Time, p *port, a alarm, found bool, text string) {
	s := j.alarms[a]
	switch {
	case s == nil && !found:
		return
	case s == nil:
		s = &standing{at: p.Endpoint}
		j.alarms[a] = s
	case found == s.on:
		if s.streak = 0; !s.on {
			delete(j.alarms, a)
		}
		return
	}
	if s.streak++; s.streak < insist {
		return
	}
	if s.streak = 0; !found {
		j.end(now, a, s)
		return
	}
	s.on, s.since = true, now
	j.event(&pb.Event{Time: pb.Stamp(now), Severity: pb.Event_SEVERITY_WARNING, Subject: a.host, Kind: a.kind, Port: p.Endpoint.Port, Since: pb.Stamp(now), Message: text})
}

// end ends an alarm. The caller holds mu.
func (j *Judge) end(now time.Time, a alarm, s *standing) {
	delete(j.alarms, a)
	if s.on {
		j.event(&pb.Event{
			Time: pb.Stamp(now), Severity: pb.Event_SEVERITY_INFO, Subject: a.host, Kind: a.kind + "_over", Port: s.at.Port, Since: pb.Stamp(s.since),
			Message: fmt.Sprintf("%s to %s: over after %v", a.host, a.to, now.Sub(s.since).Round(time.Millisecond)),
		})
	}
}

// party is a flow of a window, with the payload rates that it had and should have had.
type party struct {
	at
	rate, share float64 // bits per second
}

// judge judges the window of a port that ends with a sample. The caller holds mu.
func (j *Judge) judge(p *port, s feature.Sample) {
	span := s.Time.Sub(p.began.Time).Seconds()
	departed := 8 * float64(s.DepartureBytes-p.began.DepartureBytes) / span
	p.full = departed >= fullShare*float64(p.Rate)
	parties, total := j.parties(p)
	found := map[alarm]string{}
	if p.full {
		j.overweight(p, parties, found)
		if p.Addresses != ([2]netip.Addr{}) {
			j.unreported(p, s.Time, parties, total, found)
		}
	}
	for i := range parties {
		j.believe(p, &parties[i], found)
	}
	for a, text := range found {
		j.set(s.Time, p, a, true, text)
	}
	for a, st := range j.alarms {
		if _, still := found[a]; !still && st.at == p.Endpoint {
			j.set(s.Time, p, a, false, "")
		}
	}
}

// parties returns the flows through the port that were there for the whole window, with the sum of their rates.
func (j *Judge) parties(p *port) (list []party, total float64) {
	weights := 0.0
	for _, flows := range j.through[p.Endpoint] {
		for k, f := range flows {
			was, old := p.flows[k]
			if took := f.when.Sub(was.when).Seconds(); old && took > 0 && f.Acked >= was.Acked && f.Weight > 0 {
				list = append(list, party{at: f, rate: 8 * float64(f.Acked-was.Acked) / took})
				total += list[len(list)-1].rate
				weights += f.Weight
			}
		}
	}
	p.level = 0
	for i := range list {
		p.level = total / weights
		list[i].share = p.level * list[i].Weight
	}
	slices.SortFunc(list, func(a, b party) int {
		return cmp.Or(a.Src.Compare(b.Src), a.Dst.Compare(b.Dst))
	})
	return list, total
}

// overweight finds flows that have more than their share of a full port, while one of another host starves there.
func (j *Judge) overweight(p *port, parties []party, found map[alarm]string) {
	for _, f := range parties {
		if f.rate <= overShare*f.share {
			continue
		}
		for _, o := range parties {
			if o.host != f.host && o.rate < starvedShare*o.share && !j.elsewhere(&o, p) {
				found[alarm{OverShare, f.host, p.Peer}] = fmt.Sprintf(
					"flow %s of %s takes %v of the link of %v to %s, %.1f times its share by weight, while %s of %s gets %v of the %v that are its share",
					f.name(), f.host, units.Rate(f.rate), p.Rate, p.Peer, f.rate/f.share, o.name(), o.host, units.Rate(o.rate), units.Rate(o.share))
				break
			}
		}
	}
}

// elsewhere reports whether another full port explains a flow's low rate: because the flow has its share there, or
// because the port is earlier on the path, where the same starvation is found.
func (j *Judge) elsewhere(f *party, p *port) bool {
	earlier := true
	for _, at := range f.path {
		other := j.ports[at]
		if other == p {
			earlier = false
		} else if other != nil && other.full && (earlier || f.rate >= starvedShare*other.level*f.Weight) {
			return true
		}
	}
	return false
}

// unreported finds a host that sends to the port's host without a report and takes more than half of the link, so that
// the reported flows get less than half. Switches count bytes by source only if PACC is on.
func (j *Judge) unreported(p *port, now time.Time, parties []party, total float64, found map[alarm]string) {
	if j.counted == nil || len(parties) == 0 || total >= float64(p.Rate)/2 {
		p.counted = nil
		return
	}
	bytes := map[netip.Addr]uint64{}
	for _, source := range j.counted() {
		for _, pair := range source.Pairs {
			if slices.Contains(p.Addresses[:], pair.Dst) {
				bytes[pair.Src] += pair.Bytes
			}
		}
	}
	span := now.Sub(p.asked).Seconds()
	for src, n := range bytes {
		host := j.hosts[src].Peer
		rate := 8 * float64(n-min(n, p.counted[src])) / span
		if p.counted == nil || host == "" || j.through[p.Endpoint][host] != nil || rate <= float64(p.Rate)/2 {
			continue
		}
		found[alarm{OverShare, host, p.Peer}] = fmt.Sprintf("%s sends %v to %s, whose link has %v, in flows that no agent reports, while %s get %v in all",
			host, units.Rate(rate), p.Peer, p.Rate, units.Count(len(parties), "reported flow"), units.Rate(total))
	}
	p.counted, p.asked = bytes, now
}

// believe finds impossible maxQD values: less than 1/disbelief of the delay that the queue at p had at least during the
// window, or more than twice the flow's round trip.
func (j *Judge) believe(p *port, f *party, found map[alarm]string) {
	if f.Dst.Port() != j.udpPort && f.Law != "soze" || f.rate == 0 { // TCP flows carry maxQD only under Söze
		return
	}
	queue := units.Bytes(p.least)
	delay := p.Rate.TxTime(queue).Duration()
	a := alarm{Telemetry, f.host, j.hosts[f.Dst.Addr()].Peer}
	switch {
	case p.samples >= leastSamples && queue >= leastQueue && f.MaxQD < delay/disbelief:
		found[a] = fmt.Sprintf("flow %s of %s reports a maxQD of %v, but the queue to %s never held less than %v, which take %v: %s echoes, or %s reports, what cannot be",
			f.name(), f.host, f.MaxQD, p.Peer, queue, delay, a.to, f.host)
	case f.RTT > 0 && f.MaxQD > 2*f.RTT:
		found[a] = fmt.Sprintf("flow %s of %s reports a maxQD of %v, more than its whole round trip of %v: %s echoes, or %s reports, what cannot be",
			f.name(), f.host, f.MaxQD, f.RTT, a.to, f.host)
	}
}
