package foresight

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/units"
)

// TestUnreported: what ports count more than hosts report comes, in equal parts, from the hosts that do not report.
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
		if said := strings.Contains(strings.Join(tr.Notes, "\n"), "hosts that do not report are h2, h3: what leaves for 1 hosts"); said != (len(tc.want) > 0) {
			t.Errorf("%s: notes %q", tc.name, tr.Notes)
		}
		if _, err := Run(t.Context(), Options{After: c, Traffic: tr, Seed: 1, Seeds: 1}); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	// Without a report at all ports say something, and without either there is nothing.
	if tr, err := Observed(c, &pb.GetTrafficResponse{}, Ports{Rates: map[string]units.Rate{"r1": 50e6}}, "none"); err != nil || strings.Count(string(tr.Text), "kind: flow") != len(c.Hosts)-1 {
		t.Errorf("%v:\n%s", err, tr.Text)
	}
	if _, err := Observed(c, &pb.GetTrafficResponse{}, Ports{Hosts: reports}, "none"); err == nil {
		t.Error("nothing was seen, and is played")
	}
}
