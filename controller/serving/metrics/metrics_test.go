package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/serving/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type source struct{ switches []*pb.SwitchStatus }

func (s *source) Switches() []*pb.SwitchStatus { return s.switches }

func (s *source) Fabric() *pb.GetFabricResponse {
	return &pb.GetFabricResponse{Generation: 3, Links: []*pb.Link{
		{A: &pb.Endpoint{Node: "s1", Port: 1}, B: &pb.Endpoint{Node: "h1"}, State: pb.PortStatus_STATE_UP},
		{A: &pb.Endpoint{Node: "s1", Port: 2}, B: &pb.Endpoint{Node: "h1"}},
	}}
}

func collector(t *testing.T) (*Collector, *source) {
	t.Helper()
	reg := weights.New(weights.Options{Log: slog.New(slog.DiscardHandler)})
	k, err := weights.ParseKey("10.0.0.1:1,10.0.0.2:2")
	if err != nil {
		t.Fatal(err)
	}
	// No budget names these applications, so an invented name adds no series.
	for i, app := range []string{"", "stranger", "danger"} {
		other, err := weights.NewKey("10.0.0.3", "10.0.0.2", uint32(i+1), 9)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := reg.Set(weights.Caller{Peer: "test"}, weights.Change{Key: other, Weight: 2, Application: app}); err != nil {
			t.Fatal(err)
		}
	}
	if err := reg.SetBudget(weights.Caller{Peer: "test"}, "a", 3); err != nil {
		t.Fatal(err)
	}
	if _, err := reg.Set(weights.Caller{Peer: "test"}, weights.Change{Key: k, Weight: 2.5, Application: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := reg.Set(weights.Caller{Peer: "test"}, weights.Change{Key: k, Weight: 9}); err == nil {
		t.Fatal("over budget")
	}
	src := &source{switches: []*pb.SwitchStatus{{Name: "s1", State: pb.SwitchStatus_STATE_READY, Entries: 7, Reconciles: 2, Ports: []*pb.PortStatus{{Port: 1, Peer: "h\xff", State: pb.PortStatus_STATE_UP}, {Port: 2, Peer: "h2"}}, Features: &pb.FeatureStatus{
		Telemetry: &pb.TelemetryStatus{Ports: []*pb.TelemetryPort{
			{Port: 1, TransmittedBytes: 2000, TransmittedPackets: 7, Delay: pb.OfNanoseconds(1.5e9), Polled: timestamppb.New(time.Unix(1000, 5e8))}, {Port: 2},
		}},
		Buffer: &pb.BufferStatus{Classes: []*pb.BufferClass{{Port: 2, Class: 3}}},
	}}}}
	c := NewCollector(Options{Source: src, Weights: reg, Events: events.NewBus[*pb.Event](0), Samples: events.NewBus[feature.Sample](0)})
	return c, src
}

func scrape(t *testing.T, h http.Handler, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func TestMetrics(t *testing.T) {
	c, src := collector(t)
	h, err := Handler(c, HandlerOptions{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	code, text := scrape(t, h, "/metrics")
	if code != http.StatusOK {
		t.Fatalf("code %d: %s", code, text)
	}
	for _, want := range []string{
		`headgate_config_generation 3`,
		`headgate_link_up{a="s1:1",b="h1"} 1`,
		`headgate_switch_state{state="ready",switch="s1"} 1`,
		`headgate_switch_state{state="degraded",switch="s1"} 0`,
		`headgate_switch_entries{switch="s1"} 7`,
		`headgate_switch_reconciles_total{switch="s1"} 2`,
		`headgate_port_up{peer="h` + "\uFFFD" + `",port="1",switch="s1"} 1`,
		`headgate_port_transmitted_bytes_total{peer="",port="1",switch="s1"} 2000`,
		`headgate_port_transmitted_packets_total{peer="",port="1",switch="s1"} 7`,
		`headgate_port_transmitted_packets_total{peer="",port="2",switch="s1"} 0`,
		`headgate_port_queueing_delay_seconds{peer="",port="1",switch="s1"} 1.5`,
		`headgate_port_last_sample_timestamp_seconds{peer="",port="1",switch="s1"} 1000.5`,
		`headgate_weight_flows{application="a"} 1`,
		`headgate_weight_used{application="a"} 2.5`,
		`headgate_weight_limit{application="a"} 3`,
		`headgate_weight_flows{application="default"} 1`,
		`headgate_weight_flows{application="(other)"} 2`,
		`headgate_weight_used{application="(other)"} 4`,
		`headgate_weight_changes_total 5`,
		`headgate_weight_refusals_total 1`,
		`headgate_weight_watchers 0`,
		`headgate_bus_published_total{bus="events"} 0`,
		`headgate_bus_dropped_total{bus="samples"} 0`,
		`headgate_bus_subscribers{bus="samples"} 0`,
		`go_goroutines`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing: %s", want)
		}
	}
	for _, unknown := range []string{`headgate_link_up{a="s1:2"`, `headgate_pfc_paused{`, `headgate_port_last_sample_timestamp_seconds{peer="",port="2"`, "TEXT"} {
		if strings.Contains(text, unknown) {
			t.Errorf("%s is shown, which is not known or no metric", unknown)
		}
	}
	src.switches = append(src.switches, src.switches[0]) // a duplicate costs its own series only
	if code, text := scrape(t, h, "/metrics"); code != http.StatusOK || !strings.Contains(text, "headgate_weight_used") {
		t.Errorf("with a duplicate: code %d", code)
	}
}

// Names follow Prometheus' conventions, and names of quantities with a unit end in the unit.
func TestNames(t *testing.T) {
	c, _ := collector(t)
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) != 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
	form := regexp.MustCompile(`^headgate_(config|link|switch|port|pfc|weight|bus|client)_[a-z_]+$`)
	for _, f := range families {
		name := f.GetName()
		base := strings.TrimSuffix(name, "_total")
		if !form.MatchString(name) {
			t.Errorf("%s: want headgate_ and the name of its subject", name)
		}
		for _, w := range []struct{ word, unit string }{{"delay", "_seconds"}, {"timestamp", "_seconds"}} {
			if strings.Contains(base, w.word) && !strings.HasSuffix(base, w.unit) {
				t.Errorf("%s: want a name that ends in %s", name, w.unit)
			}
		}
		if bad := []string{"_ns", "_ms", "_us", "_kb", "_bits", "_bps", "_microseconds", "_milliseconds"}; slices.ContainsFunc(bad, func(s string) bool { return strings.HasSuffix(base, s) }) {
			t.Errorf("%s: want a base unit", name)
		}
		if !strings.HasSuffix(f.GetHelp(), ".") {
			t.Errorf("%s: help %q is not a sentence", name, f.GetHelp())
		}
	}
}

func TestHealthAndPages(t *testing.T) {
	c, _ := collector(t)
	var disk error
	h, err := Handler(c, HandlerOptions{Ready: func() []Check { return []Check{{"state store", disk}, {"switch s1", nil}} }})
	if err != nil {
		t.Fatal(err)
	}
	if code, text := scrape(t, h, "/healthz"); code != http.StatusOK || text != "ok\n" {
		t.Errorf("healthz: %d %q", code, text)
	}
	if code, text := scrape(t, h, "/readyz"); code != http.StatusOK || text != "state store: ok\nswitch s1: ok\n" {
		t.Errorf("readyz: %d %q", code, text)
	}
	disk = errors.New("disk full")
	if code, text := scrape(t, h, "/readyz"); code != http.StatusServiceUnavailable || text != "state store: disk full\nswitch s1: ok\n" {
		t.Errorf("readyz: %d %q", code, text)
	}
	if code, _ := scrape(t, h, "/"); code != http.StatusNotFound {
		t.Errorf("pages that were not given: %d", code)
	}
	says := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
	}
	nobody := func(*http.Request) (int, string) { return http.StatusUnauthorized, "who are you" }
	if h, err = Handler(c, HandlerOptions{Pages: says("data"), Free: says("a page"), Allow: nobody}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/": "200 a page", "/login": "200 a page", "/api/fabric": "401 who are you\n", "/metrics": "401 who are you\n"} {
		if code, text := scrape(t, h, path); fmt.Sprint(code, " ", text) != want {
			t.Errorf("%s: %d %q, want %q", path, code, text, want)
		}
	}
	if code, text := scrape(t, h, "/healthz"); code != http.StatusOK || text != "ok\n" {
		t.Errorf("healthz beside pages: %d %q", code, text)
	}
}

func TestServe(t *testing.T) {
	c, _ := collector(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h, err := Handler(c, HandlerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, lis, nil, h) }()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+lis.Addr().String()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || !strings.Contains(string(text), "headgate_config_generation 3") {
		t.Errorf("%v: %s", err, text)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
