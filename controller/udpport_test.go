package controller

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/softswitch"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/units"
)

// sink is a host that keeps the frames that it receives.
type sink struct {
	mu     sync.Mutex
	frames [][]byte
}

func (h *sink) Attach(softswitch.Sender) {}
func (h *sink) SetUp(bool)               {}
func (h *sink) Receive(frame []byte, _ units.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.frames = append(h.frames, slices.Clone(frame))
}

// take returns the frames received since the last call, or nil if they are fewer than n.
func (h *sink) take(n int) [][]byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.frames) < n {
		return nil
	}
	defer func() { h.frames = nil }()
	return h.frames
}

// TestUDPPort gives an embedded switch another UDP port for the maxQD shim. It stamps packets to
// that port, and no packets to the compiled port. A new controller accepts the program, and plan
// reports a different port as a different program.
func TestUDPPort(t *testing.T) {
	loop := clock.NewLoop()
	sw, err := softswitch.NewOnLoop(loop, softswitch.Config{Name: "s1", DeviceID: 1, CPUPort: 510, Traffic: tm.Config{Queues: 8}})
	if err != nil {
		t.Fatal(err)
	}
	defer sw.Close()
	h1, h2 := &counted{}, &sink{}
	for n, h := range []softswitch.Endpoint{h1, h2} {
		p, err := sw.AddPort(uint32(n+1), units.Mbps)
		if err == nil {
			_, err = softswitch.Connect(loop, 0, p, h)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	addr, err := sw.ServeGRPC("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = loop.RunReal(ctx) }()
	defer func() { cancel(); <-ended }()

	f := &fabric{t: t}
	f.c, f.stop = f.controller(options())
	f.yaml = fmt.Appendf(nil, `
name: one
switches: [{name: s1, device_id: 1, address: %q, target: embedded}]
hosts: [{name: h1, ipv4: 10.0.0.1, mac: "06:00:0a:00:00:01"}, {name: h2, ipv4: 10.0.0.2}]
links: [{a: "s1:1", b: h1, rate: 1Mbps}, {a: "s1:2", b: h2, rate: 1Mbps}]
soze: {udp_port: 4000}
`, addr)
	for _, r := range f.apply() {
		if r.Error != "" || r.Inserted == 0 {
			t.Fatalf("result = %+v", r)
		}
	}
	for _, port := range []uint16{4000, maxqd.Port} {
		loop.Post(func() {
			for n := range 4 { // each waits for the packets before it
				frame := packet.Frame{
					DstMAC: packet.Gateway, SrcMAC: packet.MAC{6, 0, 10, 0, 0, 1}, TTL: 64,
					Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), SrcPort: 1000, DstPort: port, ShimPort: port,
					BTH: packet.BTH{Opcode: packet.SendOnly, PKey: packet.DefaultPKey, DestQP: 1, PSN: uint32(n)}, Payload: make([]byte, 100),
				}
				h1.out.Send(frame.Append(nil), loop.Now())
			}
		})
		var frames [][]byte
		eventually(t, "four packets", func() bool { frames = h2.take(4); return frames != nil })
		got := packet.Frame{ShimPort: port}
		if err := got.Decode(frames[3]); err != nil {
			t.Fatal(err)
		}
		if stamped := got.Shim.MaxQD != 0; stamped != (port == 4000) {
			t.Errorf("UDP port %d: the fourth packet has maxQD %d", port, got.Shim.MaxQD)
		}
	}

	f.stop()
	f.c, f.stop = f.controller(options())
	f.apply()
	if n := f.c.Stats()["s1"].Pushes; n != 0 {
		t.Errorf("a controller that was started anew pushed the program %d times", n)
	}
	for _, tt := range []struct{ port, want string }{
		{"4000", ""}, {"4001", "pipeline: another program"}, {fmt.Sprint(maxqd.Port), "pipeline: another program"},
	} {
		plan, err := f.c.Plan(ctx, "f", []byte(strings.Replace(string(f.yaml), "4000", tt.port, 1)), 0)
		if err != nil {
			t.Fatal(err)
		}
		first := ""
		if c := plan.Switches[0].Changes; len(c) > 0 {
			first = c[0].Line()
		}
		if plan.Switches[0].Unreachable != "" || (first == "") != (tt.want == "") || !strings.HasPrefix(first, tt.want) {
			t.Errorf("plan for UDP port %s: %+v, want %q first", tt.port, plan.Switches[0], tt.want)
		}
	}
}
