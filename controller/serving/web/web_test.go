package web

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/serving/events"
	"github.com/headgate/headgate/controller/view"
)

type source struct {
	fabric   view.Fabric
	switches []view.Switch
	events   *events.Bus[view.Event]
}

func (s *source) Fabric() view.Fabric             { return s.fabric }
func (s *source) Switches() []view.Switch         { return s.switches }
func (s *source) Events() *events.Bus[view.Event] { return s.events }

// small is a fabric of two switches and two hosts, of which one is a victim and one is paused.
func small() *source {
	s := &source{
		fabric: view.Fabric{
			Name: "two <b>switches</b>", Generation: 7, Config: "secret: true", Hosts: []view.Host{{Name: "h1", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}}, {Name: "h2", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.2")}}},
			Links: []view.Link{
				{A: view.Endpoint{Node: "s1", Port: 1}, B: view.Endpoint{Node: "h1"}, RateBPS: 1e9},
				{A: view.Endpoint{Node: "s2", Port: 1}, B: view.Endpoint{Node: "h2"}, RateBPS: 1e9},
				{A: view.Endpoint{Node: "s1", Port: 2}, B: view.Endpoint{Node: "s2", Port: 2}, RateBPS: 1e9, State: view.PortDown},
			},
		},
		switches: []view.Switch{
			{Name: "s1", State: view.Ready, Entries: 12, Status: &pb.FeatureStatus{
				Buffer: &pb.BufferStatus{
					Switch: &pb.BufferSwitch{Policy: "dsh"}, Ports: []*pb.BufferPort{{Port: 1, Peer: "h1", Victim: true}},
					Classes: []*pb.BufferClass{{Port: 1, Peer: "h1", Class: 3, Paused: proto.Bool(true)}},
				},
				Telemetry: &pb.TelemetryStatus{Queues: []*pb.TelemetryQueue{{Port: 1, Peer: "h1", Queue: 3, HeldBytes: 40000}}},
			}},
			{Name: "s2", State: view.Disconnected, Err: "connection refused"},
		},
		events: events.NewBus[view.Event](300),
	}
	for range 250 {
		s.events.Publish(view.Event{Severity: view.Error, Subject: "s2", Kind: "switch.unreachable", Message: "out of reach"})
	}
	return s
}

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w
}

func TestState(t *testing.T) {
	h := Handler(small(), slog.New(slog.DiscardHandler))
	w := get(t, h, "/fabric.json")
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%d, %v", w.Code, w.Header())
	}
	var s state
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	fabric, sw := &pb.GetFabricResponse{}, &pb.SwitchStatus{}
	if err := errors.Join(protojson.Unmarshal(s.Fabric, fabric), protojson.Unmarshal(s.Switches[0], sw)); err != nil {
		t.Fatal(err)
	}
	if fabric.GetGeneration() != 7 || fabric.GetConfig() != "" || len(s.Switches) != 2 || len(fabric.GetLinks()) != 3 || fabric.GetLinks()[2].GetState() != pb.PortStatus_STATE_DOWN || len(s.Events) != 200 {
		t.Errorf("%v, %d switches, %d events", fabric, len(s.Switches), len(s.Events))
	}
	// The page takes the length of lists, and no list may be null.
	empty := get(t, Handler(&source{events: events.NewBus[view.Event](0)}, slog.New(slog.DiscardHandler)), "/fabric.json").Body.String()
	for _, list := range []string{`"switches":[]`, `"hosts":[]`, `"links":[]`, `"events":[]`} {
		if !strings.Contains(empty, list) {
			t.Errorf("before a configuration: no %s in %s", list, empty)
		}
	}
	if n := sw.GetFeatures().GetTelemetry().GetQueues()[0].GetHeldBytes(); n != 40000 {
		t.Errorf("%d bytes", n)
	}
	tables := sw.GetStatus()
	if v := tables[len(tables)-1].GetRows()[0].GetValues()[0]; v.GetBytes() != 40000 || v.GetShown() != "40KB" {
		t.Errorf("%v", v)
	}
}

// The page works offline: nothing of it is elsewhere, and browsers are told so.
func TestPageIsWhole(t *testing.T) {
	h := Handler(small(), slog.New(slog.DiscardHandler))
	files, err := fs.Sub(page, "page")
	if err != nil {
		t.Fatal(err)
	}
	names, err := fs.Glob(files, "*")
	if err != nil || len(names) != 3 {
		t.Fatalf("%v, %v", names, err)
	}
	for _, name := range names {
		w := get(t, h, "/"+strings.TrimSuffix(name, "index.html"))
		body, _ := io.ReadAll(w.Body)
		if w.Code != http.StatusOK || len(body) < 1000 || !strings.HasPrefix(w.Header().Get("Content-Security-Policy"), "default-src 'self'") {
			t.Errorf("%s: %d, %d bytes, %v", name, w.Code, len(body), w.Header())
		}
		if url := regexp.MustCompile(`https?://[^'"\s]+`).FindString(strings.ReplaceAll(string(body), "http://www.w3.org/2000/svg", "")); url != "" {
			t.Errorf("%s refers to %s", name, url)
		}
	}
	if w := get(t, h, "/nothing"); w.Code != http.StatusNotFound {
		t.Errorf("/nothing: %d", w.Code)
	}
}

// TestBrowser has a real browser show the fabric and what a switch's own address explains.
func TestBrowser(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not on the PATH: it is in Debian's package chromium")
	}
	server := httptest.NewServer(Handler(small(), slog.New(slog.DiscardHandler)))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	profile, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(profile) // may fail: a browser's last process can outlive the first
	browse := func(url string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+profile,
			"--window-size=1200,900", "--virtual-time-budget=3000", "--dump-dom", url)
		cmd.WaitDelay = 5 * time.Second
		return cmd.Output()
	}
	out, err := browse(server.URL + "/#s1")
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Skip("invalid: the browser did not end within a minute")
	}
	if err != nil {
		if _, blank := browse("about:blank"); blank != nil {
			t.Skipf("the browser does not run here: %v", blank)
		}
		t.Fatalf("the browser shows an empty page, but not ours: %v", err)
	}
	dom := string(out)
	for _, want := range []string{
		"generation 7 · 1 of 2 switches ready · 1 of 3 links down",
		"two &lt;b&gt;switches&lt;/b&gt;", // a name is text
		`class="ready chosen"`, `class="disconnected"`, `class="queue"`, `class="pause"`, `class="victim"`, `class="down"`,
		"12 entries", "<h3>buffer ports</h3>", "40KB", "switch.unreachable",
	} {
		if !strings.Contains(dom, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if t.Failed() {
		t.Log(dom)
	}
}
