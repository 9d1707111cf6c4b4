package northbound

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// TestTraffic: the reports are summed by host names; unknown addresses are left out.
func TestTraffic(t *testing.T) {
	r := start(t)
	moved := func(dst string, acked uint64) *pb.FlowReport {
		f := reported("10.0.0.1", 1, 2, "")
		f.Flow.DstIpv4, f.AckedBytes, f.MaxQd = dst, acked, durationpb.New(5)
		return f
	}
	s := attach(t, r, "h1")
	send(t, s, "h1", moved("10.0.0.2", 1000), moved("10.0.0.77", 5))
	send(t, s, "h1", moved("10.0.0.2", 4000), moved("10.0.0.77", 5))
	send(t, s, "h1")
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for err := error(nil); !errors.Is(err, io.EOF); { // the server has taken all reports by then
		if _, err = s.Recv(); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	got, err := r.host().GetTraffic(t.Context(), &pb.GetTrafficRequest{})
	if err != nil || got.GetSince() == nil || got.GetNow() == nil {
		t.Fatal(got, err)
	}
	if n := len(got.GetPairs()); n == 0 {
		t.Fatalf("no pair in %v", got)
	}
	for _, p := range got.GetPairs() {
		if p.GetDst() != "h2" || p.GetSrc() != "h1" {
			t.Errorf("%v, want only what h1 sent to h2", p)
		}
	}
	p := got.GetPairs()[0]
	if text := fmt.Sprint(p.GetBytes(), p.GetBegun(), p.GetEnded(), p.GetEndedBytes(), p.GetMaxQd(), p.GetWeight(), p.GetRunning()); text != "4000 1 1 4000 true 2 0" {
		t.Errorf("%s: %v", text, p)
	}
	counted := got.GetCounted()
	if len(counted) != 2 || counted[0].GetHost() != "h1" || counted[0].GetSwitch() != "s1" || !counted[0].GetSince().AsTime().Equal(clock) || counted[0].GetFanIn() != 3 || counted[1].GetSince() != nil {
		t.Fatalf("counted %v", counted)
	}
	if p := counted[0].GetPairs(); len(p) != 1 || p[0].GetDst() != "h2" || p[0].GetRunningBytes() != 5000 || p[0].GetRunningBps() != 8000 || p[0].GetLargestBytes() != 4000 {
		t.Errorf("counted pairs %v", p)
	}
}

// TestCompletionsScore: the completion times that hosts report are compared with a configuration's predictions.
func TestCompletionsScore(t *testing.T) {
	r := start(t)
	s := attach(t, r, "h1")
	if _, err := r.fabric().ApplyConfig(t.Context(), &pb.ApplyConfigRequest{Config: "name: lab", Predictions: []*pb.Prediction{{Measure: "fct_to_10KB"}, {Measure: "slowdown_to_10KB"}, {Measure: "fct_p99"}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Send(&pb.HostReport{Host: "h1", Completions: []*pb.Completions{{BelowBytes: 10_000, Flows: 2, Fct: durationpb.New(10_000), Slowdown: 4}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for err := error(nil); !errors.Is(err, io.EOF); {
		if _, err = s.Recv(); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	got, err := r.fabric().GetPredictions(t.Context(), &pb.GetPredictionsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	p := got.GetChanges()[0].GetPredictions()
	if p[0].GetMeasured() != 5 || p[1].GetMeasured() != 2 || p[2].Measured != nil {
		t.Errorf("%v, want flows of 5 µs and slowdown 2, and no percentile", p)
	}
}

// TestPredictions: a prediction for a configuration is kept for its generation; invalid predictions are
// refused.
func TestPredictions(t *testing.T) {
	r := start(t)
	apply := func(p ...*pb.Prediction) (*pb.ApplyConfigResponse, error) {
		return r.fabric().ApplyConfig(t.Context(), &pb.ApplyConfigRequest{Config: "name: lab", Predictions: p, PredictedTraffic: "web"})
	}
	if _, err := apply(&pb.Prediction{Measure: "pause\ntime"}); err == nil || !strings.Contains(err.Error(), "predictions: have a measure or unit that is no word") {
		t.Errorf("%v", err)
	}
	a, err := apply(&pb.Prediction{Measure: "pause_time", Unit: "%", Mean: 2})
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.fabric().GetPredictions(t.Context(), &pb.GetPredictionsRequest{})
	if err != nil || len(got.GetChanges()) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	if c := got.GetChanges()[0]; c.GetGeneration() != a.GetGeneration() || c.GetTraffic() != "web" || len(c.GetPredictions()) != 1 || c.GetPredictions()[0].Measured != nil {
		t.Errorf("%v, want what was predicted of generation %d, of which nothing was measured", c, a.GetGeneration())
	}
}
