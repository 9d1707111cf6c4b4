package controller

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"go.uber.org/goleak"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
	"github.com/headgate/headgate/tests/lag"
	"github.com/headgate/headgate/tests/switchtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fabric is the example's fabric with fake switches.
type fabric struct {
	t        *testing.T
	c        *Controller
	yaml     []byte
	config   *config.Config
	switches map[string]*switchtest.Switch
	stop     func()

	mu  sync.Mutex
	cut map[string]bool // wires, by link
}

// example returns the example's configuration with shorter times and other addresses.
func example(t *testing.T, address func(i int) string) []byte {
	t.Helper()
	raw, err := os.ReadFile("../examples/leaf-spine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for i := range 6 {
		text = strings.ReplaceAll(text, fmt.Sprintf("127.0.0.1:955%d", i+1), address(i))
	}
	for old, fresh := range map[string]string{
		"probe_interval: 500ms": "probe_interval: 200ms",
		"probe_timeout: 3s":     "probe_timeout: 60s", "unreachable_after: 5s": "unreachable_after: 1s",
	} {
		text = strings.ReplaceAll(text, old, fresh)
	}
	return []byte(text)
}

func options() Options {
	return Options{RetryMin: 5 * time.Millisecond, RetryMax: 50 * time.Millisecond, ApplyTimeout: time.Minute,
		Heartbeat: time.Hour} // switches of tests without a data plane answer no polls
}

// newFabric makes the switches and a controller that runs until the test ends.
func newFabric(t *testing.T) *fabric {
	t.Helper()
	f := &fabric{t: t, switches: map[string]*switchtest.Switch{}, cut: map[string]bool{}}
	var list []*switchtest.Switch
	for i := range 6 {
		list = append(list, switchtest.New(t, uint64(i+1)))
	}
	f.yaml = example(t, func(i int) string { return list[i].Address() })
	cfg, err := config.Parse("fabric.yaml", f.yaml, nil, Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	f.config = cfg
	for i, s := range cfg.Switches {
		f.switches[s.Name] = list[i]
	}
	f.c, f.stop = f.controller(options())
	f.wire()
	return f
}

// controller runs a controller until the test ends, or until the returned function is called.
func (f *fabric) controller(o Options) (*Controller, func()) {
	f.t.Helper()
	c, err := New(o)
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Run(ctx) }()
	for running := false; !running; time.Sleep(time.Millisecond) {
		c.mu.RLock()
		running = c.running != nil
		c.mu.RUnlock()
	}
	var once sync.Once
	stop := func() { once.Do(func() { cancel(); <-done }) }
	f.t.Cleanup(stop)
	return c, stop
}

func (f *fabric) startAll() {
	for _, s := range f.switches {
		s.Start()
	}
}

// wire makes the switches answer polls and pass probes to each other.
func (f *fabric) wire() {
	for _, sw := range f.config.Switches {
		s := f.switches[sw.Name]
		s.OnPacket(func(out *p4v1.PacketOut) {
			m := out.GetMetadata()
			port, mode := uint32(bytestring.Low64(m[0].GetValue())), bytestring.Low64(m[2].GetValue())
			switch mode {
			case ids.PacketOutPoll:
				r := pollreport.Report{Port: port, LastDelay: 5, DepartedBytes: 1000, DepartedPackets: 10, AdmissionDrops: 1}
				r.QueueBytes[3] = 77
				s.PacketIn(packetIn(port, ids.PacketInPoll, append(r.Append(nil), out.GetPayload()...)))
			case ids.PacketOutPort:
				f.carry(sw.Name, port, out.GetPayload())
			}
		})
	}
}

func packetIn(port uint32, reason uint64, payload []byte) *p4v1.PacketIn {
	return &p4v1.PacketIn{Payload: payload, Metadata: []*p4v1.PacketMetadata{
		{MetadataId: ids.MetaPacketInIngressPort, Value: p4rtmsg.Uint(uint64(port))},
		{MetadataId: ids.MetaPacketInQueue, Value: p4rtmsg.Uint(0)},
		{MetadataId: ids.MetaPacketInReason, Value: p4rtmsg.Uint(reason)},
	}}
}

// carry takes a frame over the link on a port, unless its wire is cut.
func (f *fabric) carry(sw string, port uint32, frame []byte) {
	for _, l := range f.config.Links {
		far := l.B
		if l.B == (config.Endpoint{Node: sw, Port: port}) {
			far = l.A
		} else if l.A != (config.Endpoint{Node: sw, Port: port}) {
			continue
		}
		f.mu.Lock()
		cut := f.cut[l.Name]
		f.mu.Unlock()
		if s := f.switches[far.Node]; s != nil && !cut {
			s.PacketIn(packetIn(far.Port, 2, frame))
		}
	}
}

func (f *fabric) setWire(link string, up bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut[link] = !up
}

// edit changes the configuration's text.
func (f *fabric) edit(old, fresh string) {
	f.t.Helper()
	if !strings.Contains(string(f.yaml), old) {
		f.t.Fatalf("no %q in the configuration", old)
	}
	f.yaml = []byte(strings.ReplaceAll(string(f.yaml), old, fresh))
}

func (f *fabric) apply() []*pb.SwitchResult {
	f.t.Helper()
	_, results, err := f.c.Apply(context.Background(), "fabric.yaml", f.yaml)
	if err != nil {
		f.t.Fatal(err)
	}
	return results
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	lag.Await(t, what, cond)
}

func (f *fabric) state(sw string) *pb.SwitchStatus {
	for _, s := range f.c.Switches() {
		if s.Name == sw {
			return s
		}
	}
	f.t.Fatalf("no switch %s", sw)
	return &pb.SwitchStatus{}
}

func (f *fabric) becomes(sw string, state pb.SwitchStatus_State) {
	f.t.Helper()
	eventually(f.t, fmt.Sprintf("%s in state %d", sw, state), func() bool { return f.state(sw).State == state })
}

// group returns the members of leaf1's group towards leaf2.
func (f *fabric) group() string {
	for _, line := range f.switches["leaf1"].Describe() {
		if text, ok := strings.CutPrefix(line, "ingress.routing.ecmp group 2 → members "); ok {
			return strings.TrimSuffix(text, ", while their ports are up")
		}
	}
	return "none"
}

// pipe returns the program for v1model.
func (f *fabric) pipe() *pipeline.Pipeline {
	p, err := newPrograms(nil)
	if err != nil {
		f.t.Fatal(err)
	}
	return p.v1model
}
