package preview

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// TestUnreported: the bytes that ports count beyond the hosts' reports are attributed, in equal parts, to hosts
// that do not report.
func TestUnreported(t *testing.T) {
	c := parse(t, "a", fan(sih)) // at 1/1000: h0 has 100 Mb/s, h1 50
	var reports []*pb.HostReport
	for _, h := range c.Hosts {
		if h.Name != "h2" && h.Name != "h3" {
			reports = append(reports, &pb.HostReport{Host: h.Name})
		}
	}
	r1, h0 := c.Host("r1"), reports[0]
	h0.Flows = []*pb.FlowReport{{Flow: &pb.FlowKey{DstIpv4: r1.IPv4.String()}, RateBps: 20e6}}
	now := time.Unix(1000, 0)
	seen := &pb.GetTrafficResponse{Since: timestamppb.New(now.Add(-time.Second)), Now: timestamppb.New(now), Pairs: []*pb.TrafficPair{{Src: "h0", Dst: "r1", Running: 1}}}
	for _, tc := range []struct {
		name  string
		rates map[string]units.Rate
		want  []string
		not   string
	}{
		{"headers and acknowledgements of what is reported are nobody's", map[string]units.Rate{"r1": 23e6, "h0": 2e6}, nil, "unreported"},
		{"polls are nobody's", map[string]units.Rate{"r0": 9e5}, nil, "unreported"},
		{"to one", map[string]units.Rate{"r1": 72e6}, []string{ // 72 − 1.2 · 20 Mb/s, two sources, without headers, at line rate
			"unreported-1: {kind: none, rate: 20000000000bps}", `from: "h2", to: "r1", class: 0, law: unreported-1`, `from: "h3", to: "r1"`}, "unreported-2"},
		{"to one of them", map[string]units.Rate{"h2": 12e6}, []string{"rate: 10000000000bps", `from: "h3", to: "h2"`}, `from: "h2"`},
	} {
		tr, err := Observed(c, seen, Ports{Rates: tc.rates, Hosts: reports}, "none")
		if err != nil {
			t.Fatal(tc.name, err)
		}
		for _, want := range tc.want {
			if !strings.Contains(string(tr.Text), want) {
				t.Errorf("%s: no %q in\n%s", tc.name, want, tr.Text)
			}
		}
		if strings.Contains(string(tr.Text), tc.not) {
			t.Errorf("%s: %q in\n%s", tc.name, tc.not, tr.Text)
		}
		if said := strings.Contains(strings.Join(tr.Notes, "\n"), "hosts that do not report are h2, h3: the bytes to 1 host "); said != (len(tc.want) > 0) {
			t.Errorf("%s: notes %q", tc.name, tr.Notes)
		}
		if _, err := Run(t.Context(), Options{After: c, Traffic: tr, Seed: 1, Seeds: 1}); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	// Without any report, the ports' counters determine the traffic. Without counters either, there is none.
	if tr, err := Observed(c, &pb.GetTrafficResponse{}, Ports{Rates: map[string]units.Rate{"r1": 50e6}}, "none"); err != nil || strings.Count(string(tr.Text), "kind: flow") != len(c.Hosts)-1 {
		t.Errorf("%v:\n%s", err, tr.Text)
	}
	if _, err := Observed(c, &pb.GetTrafficResponse{}, Ports{Hosts: reports}, "none"); err == nil {
		t.Error("nothing was seen, and is played")
	}
}

// TestCountedHosts: for hosts that do not report but whose switches count flows, the pairs come from those counters,
// each once. The ports' rates cover the rest.
func TestCountedHosts(t *testing.T) {
	c := parse(t, "a", fan(sih)) // at 1/1000
	var reports []*pb.HostReport
	for _, h := range c.Hosts {
		if h.Name != "h2" && h.Name != "h3" && h.Name != "h4" {
			reports = append(reports, &pb.HostReport{Host: h.Name})
		}
	}
	now := time.Unix(1000, 0)
	since := timestamppb.New(now.Add(-10 * time.Second)) // 10 ms at line rate
	counted := func(host string, pairs ...*pb.TrafficPair) *pb.CountedHost {
		for _, p := range pairs {
			p.Src = host
		}
		return &pb.CountedHost{Host: host, Switch: "leaf", Since: since, Pairs: pairs}
	}
	steady := func(dst string) *pb.TrafficPair {
		return &pb.TrafficPair{Dst: dst, Bytes: 25e6, Running: 1, RunningBytes: 25e6, RunningBps: 20e6}
	}
	bursts := func(dst string, running uint64) *pb.TrafficPair {
		return &pb.TrafficPair{Dst: dst, Bytes: 100*64_000 + running, Ended: 100, EndedBytes: 100 * 64_000, LargestBytes: 70_000, Running: 1, RunningBytes: running, RunningBps: 1e6}
	}
	const guess, source = "hosts that do not report are h4: the bytes to 1 host ", "within 10s"
	for _, tc := range []struct {
		name    string
		counted []*pb.CountedHost
		rates   map[string]units.Rate
		want    []string // in the text
		says    []string
		not     string // in either
	}{
		{"a rate", []*pb.CountedHost{counted("h2", steady("r1")), counted("h3"), counted("h4")}, map[string]units.Rate{"r1": 72e6},
			[]string{"counted-1: {kind: none, rate: 20000000000bps}", `group: counted, from: "h2", to: "r1", class: 0, law: counted-1, stop: 2ms}`},
			[]string{"hosts that do not report are h2, h3, h4: 1 pair,", source}, "unreported"},
		{"bursts, of which one goes on", []*pb.CountedHost{counted("h2", bursts("r1", 60_000)), counted("h3"), counted("h4")}, nil,
			[]string{`group: counted, from: "h2", to: "r1", class: 0, law: none, size: 64000B, count: 20, every: 100000000ps`}, []string{source}, "counted-1"},
		{"a flow after bursts", []*pb.CountedHost{counted("h2", bursts("r1", 80_000)), counted("h3"), counted("h4")}, nil,
			[]string{"size: 64000B", "counted-1: {kind: none, rate: 1000000000bps}"}, nil, "unreported"},
		{"acknowledgements are no flow", []*pb.CountedHost{counted("h2", steady("h3")), counted("h3", &pb.TrafficPair{Dst: "h2", Bytes: 1e6, Running: 1, RunningBytes: 1e6, RunningBps: 8e5}), counted("h4")}, nil,
			[]string{`from: "h2", to: "h3"`}, nil, `from: "h3"`},
		{"a fan-in begins together", []*pb.CountedHost{{Host: "r1", Since: since, FanIn: 2}, counted("h2", bursts("r1", 0)), counted("h3", bursts("r1", 0)), counted("h4", bursts("r1", 0))}, nil,
			[]string{`from: "h2", to: "r1", class: 0, law: none, size: 64000B, count: 20, every: 100000000ps, start: 0ps`, `from: "h3", to: "r1", class: 0, law: none, size: 64000B, count: 20, every: 100000000ps, start: 0ps`},
			nil, `from: "h4", to: "r1", class: 0, law: none, size: 64000B, count: 20, every: 100000000ps, start: 0ps`},
		{"what a host reports is not counted too", []*pb.CountedHost{counted("h5", steady("r1")), counted("h2", steady("r1")), counted("h3"), counted("h4")}, nil,
			[]string{`from: "h2"`}, nil, `from: "h5"`},
		{"the rest is guessed of those that nobody counts", []*pb.CountedHost{counted("h2", steady("r1")), counted("h3"), {Host: "h4"}}, map[string]units.Rate{"r1": 44e6},
			[]string{"counted-1: {kind: none, rate: 20000000000bps}", "unreported-1: {kind: none, rate: 20000000000bps}", `group: unreported, from: "h4", to: "r1"`}, // 44 − 20, without headers
			[]string{"hosts that do not report are h2, h3: 1 pair,", guess}, `group: unreported, from: "h2"`},
	} {
		seen := &pb.GetTrafficResponse{Now: timestamppb.New(now), Counted: tc.counted}
		tr, err := Observed(c, seen, Ports{Rates: tc.rates, Hosts: reports}, "none")
		if err != nil {
			t.Fatal(tc.name, err)
		}
		notes := strings.Join(tr.Notes, "\n")
		for _, want := range tc.want {
			if !strings.Contains(string(tr.Text), want) {
				t.Errorf("%s: no %q in\n%s", tc.name, want, tr.Text)
			}
		}
		for _, want := range tc.says {
			if !strings.Contains(notes, want) {
				t.Errorf("%s: no %q in %s", tc.name, want, notes)
			}
		}
		if strings.Contains(string(tr.Text), tc.not) {
			t.Errorf("%s: %q in\n%s", tc.name, tc.not, tr.Text)
		}
		if _, err := Run(t.Context(), Options{After: c, Traffic: tr, Seed: 1, Seeds: 1}); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// TestSeveralLinks: a host's flows share its links of equal distance, use the nearest of others, and only links
// that are up.
func TestSeveralLinks(t *testing.T) {
	const first, lag, other = "left:9-h0", "left:31-h0", "right:31-h0"
	for _, tt := range []struct {
		second, down, peer string
		want               []string // links of h0
	}{
		{lag, "", "h1", []string{first, lag}}, {lag, "", "r0", []string{first, lag}}, {lag, first, "r0", []string{lag}}, {lag, lag, "h1", []string{first}},
		{other, "", "h1", []string{first}}, {other, "", "r0", []string{other}}, {other, other, "r0", []string{first}}, {other, first, "h1", []string{other}},
	} {
		port, _, _ := strings.Cut(tt.second, "-")
		c := parse(t, "fan.yaml", strings.Replace(fan(dsh), "links:\n", "links:\n  - {a: \""+port+"\", b: h0, rate: 100Mbps, mac: \"06:01:00:00:00:01\"}\n", 1))
		tr, err := translate(after, c, map[string]bool{tt.down: true})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(tr.notes, func(n string) bool { return strings.HasPrefix(n, "hosts have 13 links: a host itself chooses") }) {
			t.Errorf("%q does not say that a host chooses among its links", tr.notes)
		}
		g := tr.Config.Graph
		p := topo.NewPorts(g)
		r := topo.NewRouter(g, p)
		h0, _ := g.Find("h0")
		peer, _ := g.Find(tt.peer)
		for _, ends := range [][2]int{{h0, peer}, {peer, h0}} {
			by := map[string]int{}
			for port := range uint16(200) {
				path, err := r.Path(nil, ends[0], ends[1], topo.Flow{SrcPort: 1000 + port, DstPort: 4791})
				if err != nil {
					t.Fatal(err)
				}
				for _, at := range path {
					if p.Node[at] == h0 || p.Node[p.Peer[at]] == h0 {
						by[c.Links[p.Link[at]].Name]++
					}
				}
			}
			for _, link := range tt.want {
				if by[link] < 60 {
					t.Errorf("%+v: flows go by %v, want 60 of 200 or more by each of %v", tt, by, tt.want)
				}
			}
			if len(by) != len(tt.want) {
				t.Errorf("%+v: flows go by %v, want %v", tt, by, tt.want)
			}
		}
		if _, err := Run(t.Context(), Options{After: c, Traffic: Traffic{File: "t.yaml", Text: []byte(fanIn)}, Seed: 1, Seeds: 1}); err != nil {
			t.Error(err)
		}
	}
}
