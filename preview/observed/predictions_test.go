package observed

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// shown is a switch's status: how long the classes of its ports were paused, drops and the peak of headroom.
func shown(name string, paused map[string]time.Duration, drops, peak uint64) *pb.SwitchStatus {
	b := &pb.BufferStatus{
		Classes: []*pb.BufferClass{{Port: 1, Peer: "h", Class: 3, LosslessDrops: &drops}},
		Pools:   []*pb.BufferPool{{Pool: "headroom", PeakBytes: peak}, {Pool: "shared", PeakBytes: 1 << 40}},
	}
	for port, t := range paused {
		var number, class uint32
		if _, err := fmt.Sscanf(port, "%d/%d", &number, &class); err != nil {
			panic(err)
		}
		b.Classes = append(b.Classes, &pb.BufferClass{Port: number, Peer: "h", Class: class, PausedTime: durationpb.New(t)})
	}
	s := &pb.SwitchStatus{Name: name, Features: &pb.FeatureStatus{Buffer: b}}
	return s
}

func list(b *Predictions, generation uint64, now Counters) string {
	text := ""
	for _, c := range b.List(generation, now) {
		text += fmt.Sprintf("%d over %v %v:", c.GetGeneration(), c.GetOver(), c.GetUntil() != nil)
		for _, p := range c.GetPredictions() {
			text += " " + p.GetMeasure()
			if p.Measured != nil {
				text += fmt.Sprintf(" %g", p.GetMeasured())
			}
		}
		text += "; "
	}
	return text
}

func TestScores(t *testing.T) {
	predictions := func() []*pb.Prediction {
		var out []*pb.Prediction
		for _, m := range []string{"pause_time", "pause_mean", "lossless_drops", "headroom", "fct"} {
			out = append(out, &pb.Prediction{Measure: m, Measured: proto.Float64(77)})
		}
		return out
	}
	read := func(seconds int, a, b time.Duration, drops, peak uint64) Counters {
		return ReadCounters(begin.Add(time.Duration(seconds)*time.Second), []*pb.SwitchStatus{
			shown("s1", map[string]time.Duration{"1/3": a, "1/4": a / 2}, drops, peak), shown("s2", map[string]time.Duration{"1/3": b}, 0, 5),
		}, nil)
	}
	// A class with a long earlier pause does not hide another class that is paused now.
	classes := func(at int, a, b time.Duration) Counters {
		return ReadCounters(begin.Add(time.Duration(at)*time.Second), []*pb.SwitchStatus{shown("s1", map[string]time.Duration{"1/3": a, "1/4": b}, 0, 0)}, nil)
	}
	if v, ok := classes(20, 5*time.Second, 3*time.Second).measured("pause_time", classes(10, 5*time.Second, time.Second), Fabric{}); v != 20 || !ok {
		t.Errorf("paused for %v %% of the time, want 20", v)
	}
	var book Predictions
	book.Applied(1, "", nil, read(0, 0, 0, 0, 0), Fabric{Links: 5, Scale: 1}) // nothing was predicted for it
	if got := list(&book, 1, read(1, 0, 0, 0, 0)); got != "" {
		t.Errorf("%q of what nobody predicted", got)
	}
	book.Applied(2, "t", predictions(), read(10, time.Second, time.Second, 3, 2000), Fabric{Links: 5, Scale: 1})
	for _, tc := range []struct {
		now        Counters
		generation uint64
		want       string
	}{
		{read(10, time.Second, time.Second, 3, 2000), 2, "2 over false false: pause_time pause_mean lossless_drops headroom fct; "},
		{read(20, 3*time.Second, 2*time.Second, 3, 2000), 2, "2 over false false: pause_time 20 pause_mean 3 lossless_drops 0 headroom fct; "},
		{read(20, 3*time.Second, time.Second/2, 4, 7000), 2, "2 over false false: pause_time 20 pause_mean 2.5 lossless_drops 1 headroom 7 fct; "}, // s2 was restarted
	} {
		if got := list(&book, tc.generation, tc.now); got != tc.want {
			t.Errorf("%s, want %s", got, tc.want)
		}
	}
	book.Applied(3, "t", predictions(), read(30, 3*time.Second, time.Second, 3, 2000), Fabric{Links: 5, Scale: 1})
	now := read(50, 13*time.Second, time.Second, 3, 9000)
	want := "2 over true true: pause_time 10 pause_mean 1 lossless_drops 0 headroom 7 fct; 3 over %v false: pause_time%s pause_mean%s lossless_drops%s headroom%s fct; "
	if got := list(&book, 3, now); got != fmt.Sprintf(want, false, " 50", " 5", " 0", " 9") {
		t.Error(got)
	}
	// A configuration that was replaced between two readings keeps the measurements of the last reading.
	if got := list(&book, 4, read(100, 20*time.Second, time.Second, 3, 9000)); got != fmt.Sprintf(want, true, " 50", " 5", " 0", " 9") {
		t.Error(got)
	}
	for i := range uint64(Kept + 5) {
		book.Applied(5+i, "t", predictions(), now, Fabric{Links: 5, Scale: 1})
	}
	if got := book.List(4+Kept+5, now); len(got) != Kept || got[Kept-1].GetGeneration() != 4+Kept+5 {
		t.Errorf("%d changes are kept, want %d", len(got), Kept)
	}
}

// TestFlowsScore: completion times and slowdowns are those of flows that ended while the configuration was in force, at
// line rate.
func TestFlowsScore(t *testing.T) {
	small, large := Sizes{Below: 10_000}, Sizes{From: 1_000_000}
	before := ReadCounters(begin, nil, map[Sizes]Completions{small: {Flows: 2, FCT: 1e9, Slowdown: 50}})
	after := ReadCounters(begin.Add(time.Second), nil, map[Sizes]Completions{
		small: {Flows: 5, FCT: 1e9 + 90_000, Slowdown: 56}, large: {Flows: 1, FCT: 510_000, Slowdown: 6},
	})
	for _, tc := range []struct {
		measure string
		now     Counters
		scale   int64
		want    string
	}{
		{"fct", after, 1, "150 true"}, // of three flows that took 90 µs and one that took 510
		{"fct", after, 10, "15 true"},
		{"slowdown", after, 10, "3 true"},
		{"fct_to_10KB", after, 1, "30 true"},
		{"slowdown_to_10KB", after, 1, "2 true"},
		{"fct_from_1MB", after, 1, "510 true"},
		{"slowdown_from_1MB", after, 1, "6 true"},
		{"fct_to_100KB", after, 1, "NaN false"}, // none has ended
		{"fct_p99", after, 1, "NaN false"},      // means only
		{"slowdown_p99_to_10KB", after, 1, "NaN false"},
		{"victim_flows", after, 1, "NaN false"},
		{"fct", ReadCounters(begin.Add(time.Second), nil, before.ended), 1, "NaN false"},
	} {
		v, ok := tc.now.measured(tc.measure, before, Fabric{Scale: tc.scale})
		if !ok {
			v = math.NaN()
		}
		if got := fmt.Sprintf("%g %v", v, ok); got != tc.want {
			t.Errorf("%s at scale %d: %s, want %s", tc.measure, tc.scale, got, tc.want)
		}
	}
}

func TestCheck(t *testing.T) {
	good := &pb.Prediction{Measure: "fct", Unit: "µs", Mean: 1, Low: 0, High: 2}
	bad := func(change func(*pb.Prediction)) []*pb.Prediction {
		p := proto.CloneOf(good)
		change(p)
		return []*pb.Prediction{good, p}
	}
	for want, list := range map[string][]*pb.Prediction{
		"":           {good},
		"no word":    bad(func(p *pb.Prediction) { p.Measure = "" }),
		"64 and 16":  bad(func(p *pb.Prediction) { p.Unit = strings.Repeat("x", 17) }),
		"at most 64": bad(func(p *pb.Prediction) { p.Measure = "a\nb" }),
		"no number":  bad(func(p *pb.Prediction) { p.High = math.Inf(1) }),
		fmt.Sprintf("are %d, want at most %d", MaxPredictions+1, MaxPredictions): make([]*pb.Prediction, MaxPredictions+1),
	} {
		if field, text := CheckPredictions("", list); !strings.Contains(text, want) || (field == "") != (want == "") {
			t.Errorf("%q: %s %s", want, field, text)
		}
	}
	for n, want := range map[int]string{MaxTraffic: "", MaxTraffic + 1: "predicted_traffic"} {
		if field, text := CheckPredictions(strings.Repeat("x", n), nil); field != want || field != "" && !strings.Contains(text, fmt.Sprint(MaxTraffic)) {
			t.Errorf("%d bytes: field %q, %s", n, field, text)
		}
	}
}
