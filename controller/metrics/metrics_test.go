package metrics

import (
	"context"
	"errors"
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

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/controller/events"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/controller/weights"
	"github.com/headgate/headgate/pacc"
	"github.com/headgate/headgate/units"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type source struct{ switches []view.Switch }

func (s *source) Switches() []view.Switch { return s.switches }

func (s *source) Fabric() view.Fabric {
	return view.Fabric{Generation: 3, Switches: s.switches, Links: []view.Link{
		{A: view.Endpoint{Node: "s1", Port: 1}, B: view.Endpoint{Node: "h1"}, Up: true},
		{A: view.Endpoint{Node: "s1", Port: 2}, B: view.Endpoint{Node: "h1"}},
	}}
}

// loop is a PACC loop with one port.
func loop() *view.PACC {
	return &view.PACC{
		Switch: "s1", Stats: pacc.Stats{Ticks: 5, Late: 1, WorstLateness: 2 * units.Millisecond, Evicted: 4, CNPs: 7},
		PortLoops: []pacc.PortStats{{Port: 1, Queue: 2000, Stats: cnpgen.Stats{All: 2.5, CNPs: 6}}},
	}
}

func collector(t *testing.T) (*Collector, *source) {
	t.Helper()
	reg, err := weights.Open(weights.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	k, err := weights.ParseKey("10.0.0.1:1,10.0.0.2:2")
	if err != nil {
		t.Fatal(err)
	}
	if err := reg.SetBudget("test", "a", 3); err != nil {
		t.Fatal(err)
	}
	if _, err := reg.Set("test", weights.Change{Key: k, Weight: 2.5, Application: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := reg.Set("test", weights.Change{Key: k, Weight: 9}); err == nil {
		t.Fatal("over budget")
	}
	src := &source{switches: []view.Switch{{Name: "s1", State: view.Ready, Entries: 7, Reconciles: 2, Ports: []view.Port{{Number: 1, Peer: "h\xff", Up: true}}, PACC: loop(), Buffer: &view.Buffer{
		Policy: "spfc", Size: view.Pools{Shared: 100}, Used: view.Pools{Shared: 40}, Peak: view.Pools{Headroom: 7}, Threshold: 60,
		Ports: []view.PortBuffer{{
			Number: 1, Peer: "h1", Lossless: 1 << 3, Victim: true, Turns: 3, Paused: 1 << 3, PausedTime: [8]time.Duration{3: 1500 * time.Millisecond},
			Pauses: 5, Resumes: 4, Refreshes: 2, Late: time.Millisecond, MostLate: 2 * time.Millisecond, Departed: 9000,
			Shared: [8]uint64{3: 40, 5: 1}, LosslessDrops: [8]uint64{3: 6},
		}},
		Alarms: []view.Alarm{{Kind: view.StormAlarm, Port: 1, Class: -1}},
	}}}}
	c := NewCollector(Options{Source: src, Weights: reg, Events: events.NewBus[view.Event](0), Samples: events.NewBus[view.Sample](0)})
	c.Observe(view.Sample{
		Time: time.Unix(1000, 5e8), Switch: "s1", Port: 1, Peer: "h1", QueueBytes: [8]uint32{6: 1500},
		QueueingDelay: 1500 * time.Microsecond, DepartureBytes: 10, DeparturePackets: 2, Drops: 1,
	})
	c.Observe(view.Sample{Switch: "removed", Port: 1})
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
		`headgate_link_up{a="s1:2",b="h1"} 0`,
		`headgate_switch_state{state="ready",switch="s1"} 1`,
		`headgate_switch_state{state="degraded",switch="s1"} 0`,
		`headgate_switch_entries{switch="s1"} 7`,
		`headgate_switch_reconciles_total{switch="s1"} 2`,
		`headgate_port_up{peer="h` + "\uFFFD" + `",port="1",switch="s1"} 1`,
		`headgate_port_queue_bytes{peer="h1",port="1",queue="6",switch="s1"} 1500`,
		`headgate_port_queue_bytes{peer="h1",port="1",queue="0",switch="s1"} 0`,
		`headgate_port_queueing_delay_seconds{peer="h1",port="1",switch="s1"} 0.0015`,
		`headgate_port_transmitted_bytes_total{peer="h1",port="1",switch="s1"} 10`,
		`headgate_port_transmitted_packets_total{peer="h1",port="1",switch="s1"} 2`,
		`headgate_port_refused_packets_total{peer="h1",port="1",switch="s1"} 1`,
		`headgate_port_last_sample_timestamp_seconds{peer="h1",port="1",switch="s1"} 1000.5`,
		`headgate_buffer_size_bytes{policy="spfc",pool="shared",switch="s1"} 100`,
		`headgate_buffer_used_bytes{pool="shared",switch="s1"} 40`,
		`headgate_buffer_peak_bytes{pool="headroom",switch="s1"} 7`,
		`headgate_buffer_threshold_bytes{switch="s1"} 60`,
		`headgate_buffer_alarms{kind="pfc.storm",switch="s1"} 1`,
		`headgate_buffer_alarms{kind="buffer.lossless_drop",switch="s1"} 0`,
		`headgate_pfc_paused{class="3",peer="h1",port="1",switch="s1"} 1`,
		`headgate_pfc_paused_seconds_total{class="3",peer="h1",port="1",switch="s1"} 1.5`,
		`headgate_pfc_pause_frames_total{peer="h1",port="1",switch="s1"} 5`,
		`headgate_pfc_resume_frames_total{peer="h1",port="1",switch="s1"} 4`,
		`headgate_pfc_refresh_frames_total{peer="h1",port="1",switch="s1"} 2`,
		`headgate_pfc_refresh_lateness_seconds{peer="h1",port="1",switch="s1"} 0.001`,
		`headgate_pfc_refresh_lateness_max_seconds{peer="h1",port="1",switch="s1"} 0.002`,
		`headgate_pfc_lossless_dropped_packets_total{class="3",peer="h1",port="1",switch="s1"} 6`,
		`headgate_pfc_ingress_queue_bytes{class="5",peer="h1",pool="shared",port="1",switch="s1"} 1`,
		`headgate_pfc_departed_bytes_total{peer="h1",port="1",switch="s1"} 9000`,
		`headgate_pfc_victim{peer="h1",port="1",switch="s1"} 1`,
		`headgate_pfc_victim_turns_total{peer="h1",port="1",switch="s1"} 3`,
		`headgate_pacc_ticks_total{switch="s1"} 5`,
		`headgate_pacc_late_ticks_total{switch="s1"} 1`,
		`headgate_pacc_lateness_max_seconds{switch="s1"} 0.002`,
		`headgate_pacc_evicted_flows_total{switch="s1"} 4`,
		`headgate_pacc_cnps_total{switch="s1"} 7`,
		`headgate_pacc_queue_bytes{port="1",switch="s1"} 2000`,
		`headgate_pacc_all{port="1",switch="s1"} 2.5`,
		`headgate_pacc_granted_cnps_total{port="1",switch="s1"} 6`,
		`headgate_weight_flows{application="a"} 1`,
		`headgate_weight_used{application="a"} 2.5`,
		`headgate_weight_limit{application="a"} 3`,
		`headgate_weight_changes_total 2`,
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
	if strings.Contains(text, `headgate_pfc_paused{class="5"`) {
		t.Error("a class that is not lossless is shown as if it were")
	}
	if strings.Contains(text, "removed") {
		t.Error("a switch that is not configured is shown")
	}
	src.switches = append(src.switches, src.switches[0]) // a duplicate costs its own series only
	if code, text := scrape(t, h, "/metrics"); code != http.StatusOK || !strings.Contains(text, "headgate_weight_used") {
		t.Errorf("with a duplicate: code %d", code)
	}
}

// Names follow Prometheus' conventions, and what has a unit ends in it.
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
	if len(families) != len(all) {
		t.Errorf("%d families are shown, %d are declared", len(families), len(all))
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) != 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
	form := regexp.MustCompile(`^headgate_(config|link|switch|port|buffer|pfc|weight|bus|pacc)_[a-z_]+$`)
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

func TestHealthAndPProf(t *testing.T) {
	c, _ := collector(t)
	var health error
	h, err := Handler(c, HandlerOptions{Health: func() error { return health }})
	if err != nil {
		t.Fatal(err)
	}
	if code, text := scrape(t, h, "/healthz"); code != http.StatusOK || text != "ok\n" {
		t.Errorf("healthz: %d %q", code, text)
	}
	health = errors.New("no state store")
	if code, text := scrape(t, h, "/healthz"); code != http.StatusServiceUnavailable || text != "no state store\n" {
		t.Errorf("healthz: %d %q", code, text)
	}
	if code, _ := scrape(t, h, "/debug/pprof/"); code != http.StatusNotFound {
		t.Errorf("pprof is on by default: %d", code)
	}
	if h, err = Handler(c, HandlerOptions{PProf: true}); err != nil {
		t.Fatal(err)
	}
	if code, _ := scrape(t, h, "/debug/pprof/"); code != http.StatusOK {
		t.Errorf("pprof: %d", code)
	}
}

func TestRunAndServe(t *testing.T) {
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
	ran, served := make(chan error, 1), make(chan error, 1)
	go func() { ran <- c.Run(ctx) }()
	go func() { served <- Serve(ctx, lis, h) }()
	deadline := time.Now().Add(10 * time.Second)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		c.Samples.Publish(view.Sample{Switch: "s1", Port: 7, Drops: 3})
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+lis.Addr().String()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), `headgate_port_refused_packets_total{peer="",port="7",switch="s1"} 3`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the published sample is not shown")
		}
	}
	cancel()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
