package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/serving/events"
)

// fake is a fabric of two switches and three hosts. h1 is paused and a victim, and sends two flows to h2.
type fake struct {
	pb.UnimplementedFabricServiceServer
	pb.UnimplementedHostServiceServer
	fabric   *pb.GetFabricResponse
	switches []*pb.SwitchStatus
	reports  []*pb.HostReport
	history  []*pb.AppliedConfig
}

func (f *fake) GetFabric(context.Context, *pb.GetFabricRequest) (*pb.GetFabricResponse, error) {
	return proto.Clone(f.fabric).(*pb.GetFabricResponse), nil
}

func (f *fake) ListSwitches(context.Context, *pb.ListSwitchesRequest) (*pb.ListSwitchesResponse, error) {
	return &pb.ListSwitchesResponse{Switches: f.switches}, nil
}

func (f *fake) ListFlows(context.Context, *pb.ListFlowsRequest) (*pb.ListFlowsResponse, error) {
	return &pb.ListFlowsResponse{Hosts: f.reports}, nil
}

func (f *fake) ListHistory(_ context.Context, r *pb.ListHistoryRequest) (*pb.ListHistoryResponse, error) {
	out := &pb.ListHistoryResponse{}
	for _, c := range f.history {
		if one := proto.CloneOf(c); r.GetGeneration() == 0 || r.GetGeneration() == c.GetGeneration() {
			if r.GetGeneration() == 0 {
				one.Config = ""
			}
			out.Configs = append(out.Configs, one)
		}
	}
	return out, nil
}

// GetSeries returns five minutes of waves for each port and flow.
func (f *fake) GetSeries(_ context.Context, r *pb.GetSeriesRequest) (*pb.GetSeriesResponse, error) {
	out := &pb.GetSeriesResponse{}
	now := time.Now().Truncate(2 * time.Second)
	wave := func(mean, by float64) (list []float32) {
		for i := range out.Times {
			list = append(list, float32(max(0, mean+by*math.Sin(float64(i)/9))))
		}
		return list
	}
	for i := range 150 {
		if at := now.Add(time.Duration(i-149) * 2 * time.Second); r.GetAfter() == nil || at.After(r.GetAfter().AsTime()) {
			out.Times = append(out.Times, timestamppb.New(at))
		}
	}
	for _, s := range f.switches {
		for _, p := range s.Ports {
			if r.GetFlow() == nil && (r.GetNode() == "" || r.GetNode() == s.Name || r.GetNode() == p.Peer) {
				n := float64(p.Port)
				out.Ports = append(out.Ports, &pb.PortSeries{Switch: s.Name, Port: p.Port, Peer: p.Peer, LinkBps: 1e9, RateBps: wave(2e8*n, 1e8), QueueBytes: wave(1e4*n, 3e4), PauseShare: wave(0.1*n-0.2, 0.1), CnpsPerS: wave(0, 0)})
			}
		}
	}
	for _, h := range f.reports {
		for _, x := range h.GetFlows() {
			if r.GetFlow() == nil || proto.Equal(r.GetFlow(), x.GetFlow()) {
				out.Flows = append(out.Flows, &pb.FlowSeries{Flow: x.GetFlow(), Host: h.GetHost(), Weight: x.GetWeight(), Law: x.GetLaw(), RateBps: wave(2.5e8*x.GetWeight(), 2e7), ShareBps: wave(2.5e8*x.GetWeight(), 0)})
			}
		}
	}
	if r.GetNode() == "s9" {
		return nil, status.Error(codes.NotFound, `node: there is no switch or host "s9"`)
	}
	return out, nil
}

// small is the fabric with more events than the page shows.
func small() API {
	const long = "host-with-a-name-that-is-longer-than-the-box"
	f := &fake{
		fabric: &pb.GetFabricResponse{
			Name: "two <b>switches</b>", Generation: 7, Config: "secret: true",
			Hosts: []*pb.Host{{Name: "h1", Ipv4: "10.0.0.1"}, {Name: "h2", Ipv4: "10.0.0.2"}, {Name: long, Ipv4: "10.0.0.3"}},
			Links: []*pb.Link{
				{A: &pb.Endpoint{Node: "s1", Port: 1}, B: &pb.Endpoint{Node: "h1"}, RateBps: 1e9},
				{A: &pb.Endpoint{Node: "s2", Port: 1}, B: &pb.Endpoint{Node: "h2"}, RateBps: 1e9},
				{A: &pb.Endpoint{Node: "s1", Port: 2}, B: &pb.Endpoint{Node: "s2", Port: 2}, RateBps: 1e9, State: pb.PortStatus_STATE_DOWN},
				{A: &pb.Endpoint{Node: "s1", Port: 3}, B: &pb.Endpoint{Node: long}, RateBps: 1e9},
			},
		},
		switches: []*pb.SwitchStatus{
			{Name: "s1", State: pb.SwitchStatus_STATE_READY, Entries: 12, Ports: []*pb.PortStatus{{Port: 1, Peer: "h1"}, {Port: 2, Peer: "s2", State: pb.PortStatus_STATE_DOWN}, {Port: 3, Peer: long}}, Features: &pb.FeatureStatus{
				Buffer: &pb.BufferStatus{
					Switch: &pb.BufferSwitch{Policy: "dsh"}, Ports: []*pb.BufferPort{{Port: 1, Peer: "h1", Victim: true}},
					Classes: []*pb.BufferClass{{Port: 1, Peer: "h1", Class: 3, Paused: proto.Bool(true)}, {Port: 1, Peer: "h1", Class: 4, Paused: proto.Bool(false)}},
				},
				Telemetry: &pb.TelemetryStatus{Queues: []*pb.TelemetryQueue{{Port: 1, Peer: "h1", Queue: 2}, {Port: 1, Peer: "h1", Queue: 3, HeldBytes: 40000}}},
			}},
			{Name: "s2", State: pb.SwitchStatus_STATE_DISCONNECTED, Error: "connection refused", Ports: []*pb.PortStatus{{Port: 1, Peer: "h2"}, {Port: 2, Peer: "s1", State: pb.PortStatus_STATE_DOWN}}},
		},
		history: []*pb.AppliedConfig{
			{Generation: 6, File: "fabric.yaml", By: "uid:0", Applied: timestamppb.Now(), Config: "name: lab\nscale: 1\nhosts: []\n"},
			{Generation: 7, File: "fabric.yaml", By: "cn:alice", Why: "a faster scale", Applied: timestamppb.Now(), Config: "name: lab\nscale: 20\nhosts: []\n"},
		},
	}
	report := &pb.HostReport{Host: "h1"}
	for i := range uint32(2) {
		report.Flows = append(report.Flows, &pb.FlowReport{
			Flow:   &pb.FlowKey{SrcIpv4: "10.0.0.1", DstIpv4: "10.0.0.2", SrcPort: 1000 + i, DstPort: 50151},
			Weight: float64(1 + 2*i), Law: "soze", Application: "web", RateBps: 250e6 * uint64(1+2*i), Rtt: durationpb.New(120000),
		})
	}
	f.reports = []*pb.HostReport{report}
	bus := events.NewBus[*pb.Event](300)
	for i := range 250 {
		bus.Publish(&pb.Event{Time: pb.Stamp(time.Now().Add(time.Duration(i-250) * time.Second)), Severity: pb.Event_SEVERITY_ERROR, Subject: "s2", Kind: "switch.unreachable", Message: fmt.Sprintf("out of reach, attempt %d", i)})
	}
	bus.Publish(&pb.Event{Time: pb.Stamp(time.Now()), Severity: pb.Event_SEVERITY_WARNING, Subject: "s1:2-s2:2", Kind: "link.down", Message: "probes from s1 to s2 stay away"})
	return API{Fabric: f, Hosts: f, Events: bus}
}

// handler serves the page of an API.
func handler(api API) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /api/", Data(api, slog.New(slog.DiscardHandler)))
	mux.Handle("/", Files(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })))
	return mux
}

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w
}

func TestState(t *testing.T) {
	w := get(t, handler(small()), "/api/fabric")
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%d, %v", w.Code, w.Header())
	}
	var s state
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	fabric, sw, report := &pb.GetFabricResponse{}, &pb.SwitchStatus{}, &pb.HostReport{}
	if err := errors.Join(protojson.Unmarshal(s.Fabric, fabric), protojson.Unmarshal(s.Switches[0], sw), protojson.Unmarshal(s.Reports[0], report)); err != nil {
		t.Fatal(err)
	}
	if fabric.GetGeneration() != 7 || fabric.GetConfig() != "" || len(s.Switches) != 2 || len(fabric.GetLinks()) != 4 || len(s.Events) != recentEvents || report.GetFlows()[1].GetLaw() != "soze" {
		t.Errorf("%v, %d switches, %d events, %v", fabric, len(s.Switches), len(s.Events), report)
	}
	if n := sw.GetFeatures().GetTelemetry().GetQueues()[1].GetHeldBytes(); n != 40000 {
		t.Errorf("%d bytes", n)
	}
	// The page reads the length of lists, so no list may be null.
	empty := &fake{fabric: &pb.GetFabricResponse{}}
	text := get(t, handler(API{Fabric: empty, Hosts: empty, Events: events.NewBus[*pb.Event](0)}), "/api/fabric").Body.String()
	for _, list := range []string{`"switches":[]`, `"hosts":[]`, `"links":[]`, `"events":[]`, `"reports":[]`} {
		if !strings.Contains(text, list) {
			t.Errorf("before a configuration: no %s in %s", list, text)
		}
	}
}

// TestMethods: the API's methods take requests as JSON, and errors have HTTP's codes.
func TestMethods(t *testing.T) {
	h := handler(small())
	for _, c := range []struct {
		path string
		code int
		want string
	}{
		{`/api/history?request={"generation":6}`, http.StatusOK, `"config":"name: lab\nscale: 1\nhosts: []\n"`},
		{"/api/history", http.StatusOK, `"why":"a faster scale"`},
		{`/api/series?request={"node":"h2","busiest":3}`, http.StatusOK, `"peer":"h2"`},
		{`/api/series?request={"node":"s9"}`, http.StatusNotFound, `no switch or host "s9"`},
		{`/api/series?request={"nodes":"s1"}`, http.StatusBadRequest, `unknown field "nodes"`},
		{"/api/nothing", http.StatusNotFound, ""},
	} {
		if w := get(t, h, c.path); w.Code != c.code || !strings.Contains(w.Body.String(), c.want) || w.Code == http.StatusOK && w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d, %.200s, want %d with %s", c.path, w.Code, w.Body, c.code, c.want)
		}
	}
}

// The page works offline: it loads nothing from other sites, and its headers forbid browsers to do so. Its
// own files are readable.
func TestPageIsWhole(t *testing.T) {
	h := handler(small())
	files := 0
	err := fs.WalkDir(page, "page", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		name := strings.TrimPrefix(path, "page/")
		w := get(t, h, "/"+strings.TrimSuffix(name, "index.html"))
		body := w.Body.String()
		if w.Code != http.StatusOK || len(body) < 500 || !strings.HasPrefix(w.Header().Get("Content-Security-Policy"), "default-src 'self'") {
			t.Errorf("%s: %d, %d bytes, %v", name, w.Code, len(body), w.Header())
		}
		if strings.HasPrefix(name, "uplot/") {
			return nil
		}
		if lines := strings.Count(body, "\n"); lines > 500 {
			t.Errorf("%s has %d lines, want at most 500", name, lines)
		}
		if url := regexp.MustCompile(`https?://[^'"\s]+`).FindString(strings.ReplaceAll(body, "http://www.w3.org/2000/svg", "")); url != "" {
			t.Errorf("%s refers to %s", name, url)
		}
		return nil
	})
	if err != nil || files < 10 {
		t.Errorf("%d files, %v", files, err)
	}
	if w := get(t, h, "/nothing"); w.Code != http.StatusNotFound {
		t.Errorf("/nothing: %d", w.Code)
	}
}
