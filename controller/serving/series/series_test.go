package series

import (
	"fmt"
	"math"
	"net/netip"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/config"
)

// fake is a fabric of one switch, whose ports 1 and 2 lead to hosts h1 and h2 at 100 Mb/s each.
type fake struct {
	now    time.Time
	ports  int
	status *pb.FeatureStatus
	flows  []Flow
	trunk  bool // every flow also crosses a link of 30 Mb/s between switches
}

func (f *fake) Fabric() *pb.GetFabricResponse {
	v := &pb.GetFabricResponse{}
	for i := range uint32(2) {
		h := fmt.Sprintf("h%d", i+1)
		v.Hosts = append(v.Hosts, &pb.Host{Name: h, Ipv4: fmt.Sprintf("10.0.0.%d", i+1)})
		v.Links = append(v.Links, &pb.Link{A: &pb.Endpoint{Node: "s1", Port: i + 1}, B: &pb.Endpoint{Node: h}, RateBps: 100e6})
	}
	if f.trunk {
		v.Links = append(v.Links, &pb.Link{A: &pb.Endpoint{Node: "s1", Port: 3}, B: &pb.Endpoint{Node: "s2", Port: 1}, RateBps: 30e6})
	}
	return v
}

func (f *fake) Path(_, dst netip.AddrPort) []config.Endpoint {
	if !f.trunk {
		return nil
	}
	return []config.Endpoint{{Node: "s1", Port: 3}, {Node: "s2", Port: 2}}
}

func (f *fake) SwitchSummaries(string, bool) []*pb.SwitchStatus {
	s := &pb.SwitchStatus{Name: "s1", Features: f.status}
	for i := range uint32(f.ports) {
		s.Ports = append(s.Ports, &pb.PortStatus{Port: i + 1, Peer: fmt.Sprintf("h%d", i+1)})
	}
	return []*pb.SwitchStatus{s}
}

// start returns a recorder of a fabric with n ports.
func start(ports int) (*fake, *Recorder) {
	f := &fake{now: time.Unix(1e9, 0), ports: ports}
	return f, New(f, func() []Flow { return f.flows })
}

// pass advances time by steps.
func (f *fake) pass(r *Recorder, steps int) {
	for range steps {
		f.now = f.now.Add(Step)
		r.step(f.now)
	}
}

// says sets the counters that port 1 reports.
func (f *fake) says(transmitted, held uint64, paused time.Duration, granted uint64) {
	polled := timestamppb.New(f.now.Add(Step))
	f.status = &pb.FeatureStatus{
		Telemetry: &pb.TelemetryStatus{
			Ports:  []*pb.TelemetryPort{{Port: 1, TransmittedBytes: transmitted, Polled: polled}},
			Queues: []*pb.TelemetryQueue{{Port: 1, Queue: 0, HeldBytes: held}, {Port: 1, Queue: 3, HeldBytes: 1}},
		},
		Buffer: &pb.BufferStatus{Switch: &pb.BufferSwitch{Polled: polled}, Classes: []*pb.BufferClass{
			{Port: 1, Class: 3, PausedTime: durationpb.New(paused)}, {Port: 1, Class: 4, PausedTime: durationpb.New(0)}, {Port: 1, Class: 5},
		}},
		Pacc: &pb.PACCStatus{Ports: []*pb.PACCPort{{Port: 1, Granted: granted}}},
	}
}

func flowOf(host int, port uint16, weight float64) Flow {
	k, err := weights.NewKey(fmt.Sprintf("10.0.0.%d", host), fmt.Sprintf("10.0.0.%d", 3-host), uint32(port), 50151)
	if err != nil {
		panic(err)
	}
	return Flow{Host: fmt.Sprintf("h%d", host), Law: "soze", Key: k, Weight: weight}
}

func get(t *testing.T, r *Recorder, q Query) *pb.GetSeriesResponse {
	t.Helper()
	out, ok := r.Get(q)
	if !ok {
		t.Fatalf("%+v: not known", q)
	}
	return out
}

// TestPort: rates, queues, shares of paused time and CNPs are computed from counters; an unknown value is
// NaN.
func TestPort(t *testing.T) {
	f, r := start(2)
	f.says(1000, 500, time.Second, 7)
	f.pass(r, 1)
	f.says(2_501_000, 0, 2*time.Second, 17)
	f.pass(r, 1)
	f.pass(r, 1) // the switch reports nothing new
	f.says(5_001_000, 9, 2*time.Second, 17)
	f.pass(r, 1)
	f.says(1, 9, 0, 0) // it was restarted
	f.pass(r, 1)
	out := get(t, r, Query{})
	if len(out.GetTimes()) != 5 || len(out.GetPorts()) != 2 {
		t.Fatalf("%v", out)
	}
	p := out.GetPorts()[0]
	for _, c := range []struct {
		name string
		got  []float32
		want string
	}{
		{"rate", p.GetRateBps(), "[NaN 1e+07 NaN 5e+06 NaN]"}, // 2.5 MB within 2 s, and within 4 s
		{"queue", p.GetQueueBytes(), "[501 1 NaN 10 10]"},
		{"pause share", p.GetPauseShare(), "[NaN 0.5 NaN 0 0]"},
		{"CNPs", p.GetCnpsPerS(), "[NaN 5 NaN 0 NaN]"},
		{"rate of a port that was never polled", out.GetPorts()[1].GetRateBps(), "[NaN NaN NaN NaN NaN]"},
	} {
		if got := fmt.Sprint(c.got); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if p.GetSwitch() != "s1" || p.GetPeer() != "h1" || p.GetLinkBps() != 100e6 {
		t.Errorf("%v", p)
	}
}

// TestFlow: a flow's rate counts acknowledged bytes. Its share is weighted max-min over the links that
// flows cross.
func TestFlow(t *testing.T) {
	f, r := start(2)
	f.flows = []Flow{flowOf(1, 1, 3), flowOf(1, 2, 1), {Host: "h1", Key: flowOf(2, 9, 1).Key, Weight: 1}} // the last is not h1's
	f.flows[0].Acked, f.flows[0].RateBPS, f.flows[0].Reported = 1000, 42, f.now
	f.pass(r, 1)
	f.flows[0].Acked, f.flows[0].Reported = 1_001_000, f.now
	f.pass(r, 1)
	f.flows = f.flows[1:]
	f.pass(r, 1)
	out := get(t, r, Query{Node: "h2"})
	if len(out.GetFlows()) != 2 || len(out.GetPorts()) != 1 || out.GetPorts()[0].GetPort() != 2 {
		t.Fatalf("%v", out)
	}
	a, b := out.GetFlows()[0], out.GetFlows()[1]
	if got := fmt.Sprint(a.GetRateBps(), a.GetShareBps(), b.GetShareBps()); got != "[42 4e+06 NaN] [7.5e+07 7.5e+07 NaN] [2.5e+07 2.5e+07 1e+08]" {
		t.Errorf("rates and shares %s", got)
	}
	if a.GetHost() != "h1" || a.GetLaw() != "soze" || a.GetWeight() != 3 || a.GetFlow().GetSrcPort() != 1 || a.GetFlow().GetDstIpv4() != "10.0.0.2" {
		t.Errorf("%v", a)
	}
	if out := get(t, r, Query{Flow: flowOf(1, 2, 1).Key, After: f.now.Add(-Step)}); len(out.GetFlows()) != 1 || len(out.GetPorts()) != 0 || len(out.GetTimes()) != 1 || len(out.GetFlows()[0].GetRateBps()) != 1 {
		t.Errorf("one flow's last sample: %v", out)
	}
	if _, ok := r.Get(Query{Node: "h9"}); ok {
		t.Error("h9 is not known, and was answered")
	}
	f.trunk, f.flows = true, []Flow{flowOf(1, 1, 3), flowOf(1, 2, 1)}
	f.pass(r, 1)
	out = get(t, r, Query{After: f.now.Add(-Step)})
	if got := fmt.Sprint(out.GetFlows()[0].GetShareBps(), out.GetFlows()[1].GetShareBps()); got != "[2.25e+07] [7.5e+06]" {
		t.Errorf("shares of a link between switches: %s", got)
	}
	f.flows = nil
	f.pass(r, int(Span/Step)+1)
	if out := get(t, r, Query{}); len(out.GetFlows()) != 0 || len(out.GetTimes()) != int(Span/Step) {
		t.Errorf("ten minutes later: %d flows, %d times", len(out.GetFlows()), len(out.GetTimes()))
	}
}

// TestBusiest: the ports with the most load and pauses are returned in the configuration's order.
func TestBusiest(t *testing.T) {
	f, r := start(4)
	for i := range uint64(2) {
		f.says(0, 0, 0, 0)
		f.status.Telemetry.Ports = append(f.status.Telemetry.Ports, &pb.TelemetryPort{Port: 2, TransmittedBytes: i * 1e7, Polled: f.status.Telemetry.Ports[0].Polled})
		f.status.Buffer.Classes = append(f.status.Buffer.Classes, &pb.BufferClass{Port: 4, PausedTime: pb.OfNanoseconds(i * uint64(Step))})
		f.pass(r, 1)
	}
	out := get(t, r, Query{Busiest: 2})
	if len(out.GetPorts()) != 2 || out.GetPorts()[0].GetPort() != 2 || out.GetPorts()[1].GetPort() != 4 {
		t.Errorf("%v", out.GetPorts())
	}
	if out := get(t, r, Query{Node: "s1", Port: 3}); len(out.GetPorts()) != 1 || out.GetPorts()[0].GetPort() != 3 {
		t.Errorf("port 3: %v", out.GetPorts())
	}
}

// TestBounds: memory does not grow with the fabric or with the number of reported flows.
func TestBounds(t *testing.T) {
	for _, ports := range []int{1, portsPerStep, 3*portsPerStep + 1} {
		f, r := start(ports)
		f.pass(r, 2)
		values := len(r.ports) * portSeries * len(r.times)
		if most := portsPerStep * portSeries * int(Span/Step); len(r.ports) != ports || values > most {
			t.Errorf("%d ports have %d values, want at most %d", ports, values, most)
		}
	}
	f, r := start(2)
	for i := range uint16(maxFlows + 3) {
		f.flows = append(f.flows, flowOf(1, 1000+i, 1))
	}
	f.pass(r, 1)
	out := get(t, r, Query{})
	if len(out.GetFlows()) != maxFlows || out.GetFlowsLeftOut() != 3 || !math.IsNaN(float64(out.GetFlows()[0].GetShareBps()[0])) {
		t.Errorf("%d flows, %d left out, the share is %v", len(out.GetFlows()), out.GetFlowsLeftOut(), out.GetFlows()[0].GetShareBps())
	}
	f.flows = f.flows[3:] // three have ended, and the three without a series take their places
	f.pass(r, 2)
	if out := get(t, r, Query{}); len(out.GetFlows()) != maxFlows || out.GetFlowsLeftOut() != 0 || out.GetFlows()[0].GetFlow().GetSrcPort() != 1003 {
		t.Errorf("%d flows from %v, %d left out", len(out.GetFlows()), out.GetFlows()[0].GetFlow(), out.GetFlowsLeftOut())
	}
}

// TestFlowsBeyondTheBound: in a sample, a flow without a series costs no more than one with a series. Otherwise
// hosts that report many flows could use up the controller's processor.
func TestFlowsBeyondTheBound(t *testing.T) {
	const times = 16
	sample := func(flows int) time.Duration {
		f, r := start(2)
		for i := range flows {
			f.flows = append(f.flows, flowOf(1, uint16(1000+i), 1))
		}
		least := time.Hour
		for range 4 {
			began := time.Now()
			f.pass(r, 1)
			least = min(least, time.Since(began))
		}
		return least
	}
	full, beyond := sample(maxFlows), sample(times*maxFlows)
	t.Logf("%v for %d flows, %v for %d", full, maxFlows, beyond, times*maxFlows)
	if beyond > 4*times*full {
		t.Errorf("a sample of %d flows takes %v and one of %d takes %v, want at most %d times as much", times*maxFlows, beyond, maxFlows, full, 4*times)
	}
}
