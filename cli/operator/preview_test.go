package operator

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// fabricOf is a controller with a configuration. It records the requests that it gets.
type fabricOf struct {
	pb.UnimplementedFabricServiceServer
	pb.UnimplementedHostServiceServer
	config  string
	applied []*pb.ApplyConfigRequest
}

func (f *fabricOf) GetFabric(context.Context, *pb.GetFabricRequest) (*pb.GetFabricResponse, error) {
	return &pb.GetFabricResponse{Config: f.config, Generation: 7}, nil
}

func (f *fabricOf) GetTraffic(context.Context, *pb.GetTrafficRequest) (*pb.GetTrafficResponse, error) {
	now := time.Now()
	return &pb.GetTrafficResponse{Since: timestamppb.New(now.Add(-time.Millisecond)), Now: timestamppb.New(now), Pairs: []*pb.TrafficPair{
		{Src: "a", Dst: "c", Ended: 5, EndedBytes: 5e5}, {Src: "b", Dst: "c", Running: 1},
	}}, nil
}

// ListFlows: c and d do not report.
func (f *fabricOf) ListFlows(context.Context, *pb.ListFlowsRequest) (*pb.ListFlowsResponse, error) {
	return &pb.ListFlowsResponse{Hosts: []*pb.HostReport{{Host: "a"}, {Host: "b"}}}, nil
}

// StreamTelemetry reports 20 Gb/s to d, by a counter that starts again at 0.
func (f *fabricOf) StreamTelemetry(_ *pb.StreamTelemetryRequest, stream grpc.ServerStreamingServer[pb.TelemetrySample]) error {
	for i, bytes := range []uint64{7e9, 1e9, 1.25e9, 1.5e9} {
		at := timestamppb.New(time.Unix(1000, int64(i)*1e8))
		for _, s := range []*pb.TelemetrySample{
			{Time: at, Switch: "right", Port: 2, Peer: "d", DepartureBytes: bytes}, {Time: at, Switch: "right", Port: 3, Peer: "left", DepartureBytes: bytes},
		} {
			if err := stream.Send(s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *fabricOf) PlanConfig(context.Context, *pb.PlanConfigRequest) (*pb.PlanConfigResponse, error) {
	return &pb.PlanConfigResponse{}, nil
}

func (f *fabricOf) ApplyConfig(_ context.Context, r *pb.ApplyConfigRequest) (*pb.ApplyConfigResponse, error) {
	f.applied = append(f.applied, r)
	return &pb.ApplyConfigResponse{Generation: 8}, nil
}

// serveFabric runs a controller for a test and returns its address.
func serveFabric(t *testing.T, f *fabricOf) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listen, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	pb.RegisterFabricServiceServer(s, f)
	pb.RegisterHostServiceServer(s, f)
	done := make(chan error, 1)
	go func() { done <- s.Serve(listen) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "unix:" + path
}

// bell is a fabric whose trunk has the same rate as its hosts' links.
func bell(threshold string) string {
	return `name: bell
switches: [{name: left, device_id: 1, address: "127.0.0.1:1"}, {name: right, device_id: 2, address: "127.0.0.1:2"}]
hosts: [{name: a, ipv4: 10.0.0.1}, {name: b, ipv4: 10.0.0.2}, {name: c, ipv4: 10.0.0.3}, {name: d, ipv4: 10.0.0.4}]
links:
  - {a: "left:1", b: a, rate: 100Gbps, delay: 1us}
  - {a: "left:2", b: b, rate: 100Gbps, delay: 1us}
  - {a: "left:3", b: "right:3", rate: 100Gbps, delay: 1us}
  - {a: "right:1", b: c, rate: 100Gbps, delay: 1us}
  - {a: "right:2", b: d, rate: 100Gbps, delay: 1us}
buffer: {policy: static, size: 1MB, lossless: [0], threshold: ` + threshold + "}\n"
}

const bellTraffic = `
flows:
  - {kind: incast, group: burst, from: "a,b,d", to: c, size: 100KB}
  - {kind: flow, group: bystander, from: a, to: d, size: 100KB}
run: {until: 200us}
`

// TestRequire: a configuration is not applied if its preview does not meet the requirements. If it does, it
// replaces the configuration that it was compared with.
func TestRequire(t *testing.T) {
	f := &fabricOf{config: bell("10KB")}
	server := serveFabric(t, f)
	dir := t.TempDir()
	file, traffic := filepath.Join(dir, "new.yaml"), filepath.Join(dir, "traffic.yaml")
	for name, text := range map[string]string{file: bell("400KB"), traffic: bellTraffic} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) (string, error) {
		root := newRoot()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(append(args, "--server", server, "-f", file))
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	for _, tc := range []struct {
		args    []string
		applied int
		want    string // in the error's text
	}{
		{[]string{"apply", "--traffic", traffic, "--require", "fct<1us", "--require", "drops<1", "--require", "victim_flows<0"}, 0, "--require: fct is predicted as "},
		{[]string{"apply", "--traffic", traffic, "--require", "fct<1us", "--require", "pause_time<0%"}, 0, "want pause_time<0%; nothing was sent to the switches"},
		{[]string{"apply", "--traffic", traffic, "--require", "luck>1"}, 0, `--require: "luck>1": there is no measure "luck": want one of pause_time, `},
		{[]string{"apply", "--traffic", traffic}, 0, "--traffic: belongs to a preview, want --require or --preview too"},
		{[]string{"apply", "--traffic", traffic, "--seeds", "2", "--require", "pause_time<=0%", "--expect-generation", "6"}, 0, "--expect-generation: is 6, but the prediction is for a change of generation 7"},
		{[]string{"plan", "--seeds", "2"}, 0, "--seeds: belongs to a preview, want --preview too"},
		{[]string{"plan", "--plot", "a.png"}, 0, "--plot: belongs to a preview, want --preview too"},
		{[]string{"plan", "--preview", "--traffic", traffic, "--plot", "a.gif"}, 0, `--plot: "a.gif" is not allowed: want a name that ends in .svg, .png, .pdf`},
		{[]string{"plan", "--preview", "--traffic", traffic, "--seeds", "0"}, 0, "--seeds: 0 is not allowed: want 1 to 1000"},
		{[]string{"apply", "--traffic", traffic, "--seeds", "2", "--require", "pause_time<=0%", "--require", "fct_p99<1ms"}, 1, ""},
		{[]string{"apply"}, 2, ""},
	} {
		_, err := run(tc.args...)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: %v, want %q", tc.args, err, tc.want)
		}
		if len(f.applied) != tc.applied {
			t.Fatalf("%v: applied %d times, want %d", tc.args, len(f.applied), tc.applied)
		}
	}
	if a := f.applied[0]; a.GetExpectGeneration() != 7 || f.applied[1].ExpectGeneration != nil {
		t.Errorf("applied %v, want the first over generation 7 alone", f.applied)
	} else if p := a.GetPredictions(); a.GetPredictedTraffic() != traffic || len(p) < 10 || p[0].GetMeasure() != "pause_time" || p[0].GetUnit() != "%" {
		t.Errorf("predictions %v of %q", p, a.GetPredictedTraffic())
	}
	if out, err := run("apply", "--preview"); err != nil || len(f.applied) != 3 || len(f.applied[2].GetPredictions()) == 0 {
		t.Errorf("%v, applied %d times:\n%s", err, len(f.applied), out)
	}
	picture := filepath.Join(dir, "preview.svg")
	out, err := run("plan", "--preview", "--traffic", traffic, "--plot", picture)
	if text, err := os.ReadFile(picture); err != nil || !strings.Contains(string(text), "victim flows") || !strings.Contains(string(text), "pause time") {
		t.Errorf("the picture has %d bytes: %v", len(text), err)
	}
	if err != nil || !strings.Contains(out, "pause_time") || !strings.Contains(out, "b→left") || !strings.Contains(out, "bystander") {
		t.Errorf("%v:\n%s", err, out)
	}
	if out, err := run("plan", "--preview"); err != nil || !strings.Contains(out, "what hosts reported") || !strings.Contains(out, "running") ||
		!strings.Contains(out, "hosts that do not report are c, d: the bytes to 1 host ") || !strings.Contains(out, "unreported") {
		t.Errorf("%v:\n%s", err, out)
	}
	for _, format := range []string{"json", "yaml"} {
		if out, err := run("plan", "--preview", "--traffic", traffic, "-o", format); err != nil || !strings.Contains(out, "paused_percent") || !strings.Contains(out, "switches") {
			t.Errorf("%v:\n%s", err, out)
		}
	}
}
