package preview

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// TestObserved: reported traffic is played. Long flows run on, others repeat as often as observed, in the time of
// a fabric at line rate, and flows of a fan-in start together.
func TestObserved(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	seen := &pb.GetTrafficResponse{Since: timestamppb.New(now.Add(-10 * time.Second)), Now: timestamppb.New(now)}
	c := parse(t, "a", fan(sih)) // scale 1000: 10 s are 10 ms
	if _, err := Observed(c, &pb.GetTrafficResponse{}, Ports{}, "none"); err == nil || !strings.Contains(err.Error(), "knows of no traffic") {
		t.Errorf("%v", err)
	}
	if _, err := Observed(c, seen, Ports{}, "none"); err == nil || !strings.Contains(err.Error(), "knows of no traffic") {
		t.Errorf("%v", err)
	}
	seen.Pairs = []*pb.TrafficPair{
		{Src: "h0", Dst: "r0", Bytes: 1e8, Running: 2, Weight: 2, MaxQd: true},
		{Src: "h2", Dst: "r1", Ended: 100, EndedBytes: 100 * 64_000, Weight: 1}, // every 100 ms, which are 100 µs
		{Src: "h3", Dst: "r1", Ended: 50, EndedBytes: 50 * 30_000},
		{Src: "h4", Dst: "r1", Ended: 100, EndedBytes: 100 * 20_000},
		{Src: "h5", Dst: "r1", Begun: 1},                  // it has not ended
		{Src: "h6", Dst: "r0", Ended: 1, EndedBytes: 1e6}, // in 10 ms
	}
	seen.FanIns = []*pb.FanIn{{Dst: "r1", Degree: 2}}
	tr, err := Observed(c, seen, Ports{}, "none")
	if err != nil {
		t.Fatal(err)
	}
	text := string(tr.Text)
	for _, want := range []string{
		`group: running, from: "h0", to: "r0", class: 0, law: soze, weight: 2, count: 2, stop: 2ms}`,
		`from: "h2", to: "r1", class: 0, law: none, weight: 1, size: 64000B, count: 20, every: 100000000ps, start: 0ps}`,
		`from: "h4", to: "r1", class: 0, law: none, size: 20000B, count: 20, every: 100000000ps, start: 0ps}`, // smaller, but more frequent
		`from: "h3", to: "r1", class: 0, law: none, size: 30000B, count: 10, every: 200000000ps, start: `,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, `size: 30000B, count: 10, every: 200000000ps, start: 0ps`) || strings.Contains(text, "h5") {
		t.Errorf("a third of a fan-in of two, or what did not end:\n%s", text)
	}
	if len(tr.Notes) == 0 || strings.Contains(text, "h6") == (len(tr.Notes) > 1) {
		t.Errorf("%q", tr.Notes)
	}
	p, err := Run(t.Context(), Options{Before: c, After: parse(t, "b", fan(dsh)), Traffic: tr, Seed: 1, Seeds: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range p.Groups {
		if g.Name == "ended" && *g.Before.Done.Mean < 40 || g.Name == "running" && *g.Before.Goodput.Mean < 50 {
			t.Errorf("%s: %+v", g.Name, g.Before)
		}
	}

	// Traffic that is too much for the time limit is played for a shorter time.
	for _, p := range seen.Pairs {
		p.Ended, p.EndedBytes = 1_000_000, 1_000_000*1000
	}
	if tr, err = Observed(c, seen, Ports{}, "none"); err != nil || !strings.Contains(string(tr.Text), "until: 31.25us") {
		t.Errorf("%v:\n%s", err, tr.Text)
	}
}
