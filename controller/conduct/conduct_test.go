package conduct

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/preview/observed"
	"github.com/headgate/headgate/units"
)

const udpPort = 50151

// rig is a judge of the port to h3 (20 Mb/s), with a clock.
type rig struct {
	*Judge
	now      time.Time
	events   []*pb.Event
	departed uint64
	acked    map[string]uint64
	pairs    map[string]uint64 // bytes to h3 that switches count, by source; nil where they count none
	path     []config.Endpoint // of all flows; nil for unknown
	port     uint16            // of all flows
	law      string
}

var addresses = map[string]netip.Addr{
	"h1": netip.MustParseAddr("10.0.1.1"), "h2": netip.MustParseAddr("10.0.1.2"), "h3": netip.MustParseAddr("10.0.2.1"),
}

func newRig() *rig {
	r := &rig{now: time.Unix(1000, 0), acked: map[string]uint64{}, port: udpPort}
	r.Judge = New(func(e *pb.Event) { r.events = append(r.events, e) }, func() []observed.Source {
		var list []observed.Source
		for src, n := range r.pairs {
			list = append(list, observed.Source{Host: src, Pairs: []observed.Pair{{Src: addresses[src], Dst: addresses["h3"], Bytes: n}}})
		}
		return list
	}, func(netip.AddrPort, netip.AddrPort) []config.Endpoint { return r.path })
	var ports []Port
	for i, h := range []string{"h1", "h2", "h3"} {
		at := [2]netip.Addr{}
		at[i%2] = addresses[h]
		ports = append(ports, Port{Endpoint: config.Endpoint{Node: "leaf", Port: uint32(i + 1)}, Peer: h, Addresses: at, Rate: 20 * units.Mbps})
	}
	r.Configure(ports, udpPort)
	return r
}

// flow is what one host sends to h3.
type flow struct {
	mbps, weight float64
	maxQD, rtt   time.Duration
}

// pass advances time in steps of half a second. In each, hosts send and report, and the port is polled with a queue. No
// host reports the rest of the departures.
func (r *rig) pass(d time.Duration, queue uint32, flows map[string]flow, unreported map[string]float64) {
	const step = 500 * time.Millisecond
	bytes := func(mbps float64) uint64 { return uint64(mbps * 1e6 / 8 * step.Seconds()) }
	for ; d > 0; d -= step {
		r.now = r.now.Add(step)
		for host, f := range flows {
			r.acked[host] += bytes(f.mbps)
			r.departed += bytes(f.mbps)
			r.Reported(host, r.now, []Flow{{
				Src: netip.AddrPortFrom(addresses[host], 1000), Dst: netip.AddrPortFrom(addresses["h3"], r.port), Law: r.law,
				Acked: r.acked[host], Weight: f.weight, MaxQD: f.maxQD, RTT: f.rtt,
			}})
		}
		for host, mbps := range unreported {
			r.departed += bytes(mbps)
			if r.pairs != nil {
				r.pairs[host] += bytes(mbps)
			}
		}
		for i := range 4 {
			s := feature.Sample{Time: r.now.Add(time.Duration(i) * time.Millisecond), Switch: "leaf", Port: 3, QueueBytes: [8]uint32{queue}, DepartureBytes: r.departed}
			r.Sampled(s)
			if s.Switch, s.Port = "spine", 1; r.path != nil {
				r.Sampled(s)
			}
		}
	}
}

// told returns the kinds and subjects of the events since the last call.
func (r *rig) told() string {
	var list []string
	for _, e := range r.events {
		list = append(list, e.Kind+" "+e.Subject)
	}
	r.events = nil
	return strings.Join(list, ", ")
}

// TestJudgeOfTCP: TCP flows may use any port, and only Söze's flows report maxQD.
func TestJudgeOfTCP(t *testing.T) {
	for law, want := range map[string]string{"soze": "host.telemetry h1", "prioplus": "", "": ""} {
		r := newRig()
		r.port, r.law = 443, law
		r.pass(5*time.Second, 100_000, map[string]flow{"h1": {9, 1, 0, 60 * time.Millisecond}, "h2": {9, 1, 40 * time.Millisecond, 60 * time.Millisecond}}, nil)
		if got := r.told(); got != want {
			t.Errorf("law %q: told %q, want %q", law, got, want)
		}
	}
}

// TestJudge: the judge names hosts that take more than their share while others starve, and hosts with impossible
// telemetry. It does not name hosts whose law or application limits them.
func TestJudge(t *testing.T) {
	const ms = time.Millisecond
	fair := map[string]flow{"h1": {9, 1, 40 * ms, 60 * ms}, "h2": {9, 1, 40 * ms, 60 * ms}}
	for _, c := range []struct {
		name       string
		queue      uint32
		flows      map[string]flow
		unreported map[string]float64
		counted    bool
		want       string
	}{
		{"fair", 100_000, fair, nil, false, ""},
		{"by weight", 100_000, map[string]flow{"h1": {16, 8, 40 * ms, 60 * ms}, "h2": {2, 1, 40 * ms, 60 * ms}}, nil, false, ""},
		{"a sender without a law", 100_000, map[string]flow{"h1": {18.7, 1, 40 * ms, 60 * ms}, "h2": {0.1, 1, 40 * ms, 60 * ms}}, nil, false, "host.over_share h1"},
		{"a link that is not full", 0, map[string]flow{"h1": {10, 1, 0, 60 * ms}, "h2": {0.1, 1, 0, 60 * ms}}, nil, false, ""},
		{"alone", 100_000, map[string]flow{"h1": {18.7, 1, 40 * ms, 60 * ms}}, nil, false, ""},
		{"no agent, counted by the switch", 0, map[string]flow{"h2": {0.1, 1, 0, 60 * ms}}, map[string]float64{"h1": 18.7}, true, "host.over_share h1"},
		{"no agent, counted by nobody", 0, map[string]flow{"h2": {0.1, 1, 0, 60 * ms}}, map[string]float64{"h1": 18.7}, false, ""},
		{"no agent, but enough for others", 0, map[string]flow{"h2": {12, 1, 0, 60 * ms}}, map[string]float64{"h1": 7}, true, ""},
		{"an echo of nothing", 100_000, map[string]flow{"h1": {9, 1, 0, 60 * ms}, "h2": {9, 1, 40 * ms, 60 * ms}}, nil, false, "host.telemetry h1"},
		{"a queue too short to say", 5000, map[string]flow{"h1": {9, 1, 0, 60 * ms}, "h2": {9, 1, 2 * ms, 60 * ms}}, nil, false, ""},
		{"longer than the round trip", 0, map[string]flow{"h1": {9, 1, 40 * ms, 60 * ms}, "h2": {9, 1, 130 * ms, 60 * ms}}, nil, false, "host.telemetry h2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig()
			if c.counted {
				r.pairs = map[string]uint64{}
			}
			r.pass(2*time.Second, 0, fair, nil)
			r.pass(500*time.Millisecond, c.queue, c.flows, c.unreported) // for a moment
			r.pass(4*time.Second, 0, fair, nil)
			if got := r.told(); got != "" {
				t.Errorf("a moment raises %q", got)
			}
			if c.unreported != nil {
				for host := range c.unreported {
					r.Reported(host, r.now, nil)
				}
			}
			if len(c.flows) == 1 {
				r.Reported("h1", r.now, nil)
			}
			r.pass(5*time.Second, c.queue, c.flows, c.unreported)
			if got := r.told(); got != c.want {
				t.Errorf("told %q, want %q", got, c.want)
			}
			r.pass(5*time.Second, 0, fair, nil)
			want := ""
			if c.want != "" {
				kind, host, _ := strings.Cut(c.want, " ")
				want = kind + "_over " + host
			}
			if got := r.told(); got != want || len(r.alarms) != 0 {
				t.Errorf("afterwards %q with %d alarms, want %q and none", got, len(r.alarms), want)
			}
		})
	}
}

// TestBetweenSwitches: if the full port is between switches, hosts are named as at a port to a host. A flow that gets
// its share at another full port does not count as starving.
func TestBetweenSwitches(t *testing.T) {
	cheat := map[string]flow{"h1": {18.7, 1, 0, 0}, "h2": {0.1, 1, 0, 0}}
	for _, c := range []struct {
		name         string
		spine, leaf  units.Rate
		queue        uint32
		flows        map[string]flow
		want         string
		wantsMention string
	}{
		{"between switches", 20 * units.Mbps, 100 * units.Mbps, 0, cheat, "host.over_share h1", "to leaf"},
		{"at both, named once", 20 * units.Mbps, 20 * units.Mbps, 0, cheat, "host.over_share h1", "to leaf"},
		{"at neither", 100 * units.Mbps, 100 * units.Mbps, 0, cheat, "", ""},
		{"an echo of nothing", 20 * units.Mbps, 1000 * units.Mbps, 100_000, map[string]flow{"h1": {9, 1, 0, 0}, "h2": {9, 1, 40 * time.Millisecond, 0}}, "host.telemetry h1", "to leaf"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig()
			leaf := config.Endpoint{Node: "leaf", Port: 3}
			r.path = []config.Endpoint{{Node: "spine", Port: 1}, leaf}
			r.Configure([]Port{
				{Endpoint: r.path[0], Peer: "leaf", Rate: c.spine},
				{Endpoint: leaf, Peer: "h3", Addresses: [2]netip.Addr{1: addresses["h3"]}, Rate: c.leaf},
			}, udpPort)
			r.pass(5*time.Second, c.queue, c.flows, nil)
			text := ""
			if len(r.events) > 0 {
				text = r.events[0].Message
			}
			if got := r.told(); got != c.want || !strings.Contains(text, c.wantsMention) {
				t.Errorf("told %q, %q; want %q, %q", got, text, c.want, c.wantsMention)
			}
		})
	}
}

// TestHeldElsewhere: a low rate is explained by a full port at which the flow gets its share, also by one
// earlier on the path.
func TestHeldElsewhere(t *testing.T) {
	r := newRig()
	first, second := config.Endpoint{Node: "leaf", Port: 3}, config.Endpoint{Node: "spine", Port: 1}
	r.ports[first], r.ports[second] = &port{full: true, level: 9e6}, &port{full: true, level: 1e5}
	f := party{at: at{Flow: Flow{Weight: 1}, path: []config.Endpoint{first, second}}, rate: 1e5}
	if !r.elsewhere(&f, r.ports[first]) || !r.elsewhere(&f, r.ports[second]) {
		t.Error("a flow with its share of the second port, or less than it at the first, starves at the other")
	}
	r.ports[second].full = false
	if r.elsewhere(&f, r.ports[first]) {
		t.Error("a port with room explains a low rate")
	}
}

// TestConfigureEndsAlarms: an alarm ends when its port is removed, and traffic to hosts outside the fabric is not
// recorded.
func TestConfigureEndsAlarms(t *testing.T) {
	r := newRig()
	cheat := map[string]flow{"h1": {18.7, 1, 0, 0}, "h2": {0.1, 1, 0, 0}}
	r.pass(5*time.Second, 0, cheat, nil)
	if got := r.told(); got != "host.over_share h1" {
		t.Fatalf("told %q", got)
	}
	r.Configure(nil, udpPort)
	if got := r.told(); got != "host.over_share_over h1" {
		t.Errorf("told %q", got)
	}
	r.pass(5*time.Second, 0, cheat, nil)
	if got := r.told(); got != "" || len(r.through)+len(r.from)+len(r.ports) != 0 {
		t.Errorf("without ports: %q, %d, %d", got, len(r.through), len(r.from))
	}
}
