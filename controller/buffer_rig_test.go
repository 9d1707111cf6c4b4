package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/softswitch"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/tests/switchtest"
	"github.com/headgate/headgate/units"
)

// The rig's hosts send frames of this size to each other, in class 3.
const (
	hostRate  = 20 * units.Mbps
	hostFrame = 1000
)

// bufferRig is one embedded switch with the real program, three hosts that obey PFC, and a
// controller.
type bufferRig struct {
	*fabric
	loop    *clock.Loop
	sw      *softswitch.Switch
	address string
	pfc     bool // the switch's ports obey PFC
	hosts   [3]*pfcHost
}

// pfcHost sends to another host at line rate while it is switched on and not paused. The loop's
// goroutine owns all fields except those that mu guards.
type pfcHost struct {
	loop   *clock.Loop
	port   *softswitch.Port
	frame  []byte
	on     bool
	busy   bool // a frame is being sent
	paused units.Time

	mu             sync.Mutex
	sent, received int
	pauses         []time.Time // PFC frames that paused class 3
	resumes        int
	wrong          error // the first PFC frame that is none
}

// Send implements softswitch.Sender: the switch sends a frame to the host.
func (h *pfcHost) Send(frame []byte, _ units.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if frame[12] != 0x88 || frame[13] != 0x08 {
		if frame[12] == 8 && frame[13] == 0 {
			h.received++
		}
		return
	}
	var p packet.PFC
	if err := p.Decode(frame); err != nil || len(frame) != packet.PFCLen {
		h.wrong = fmt.Errorf("PFC frame %x: %v", frame, err)
		return
	}
	if p.Enabled&(1<<3) == 0 {
		return // the RESUME of a port whose queue of class 3 is still paused
	}
	now := h.loop.Now()
	if h.paused = now; p.Quanta[3] > 0 {
		h.paused += hostRate.PauseTime(p.Quanta[3])
		h.pauses = append(h.pauses, time.Now())
	} else {
		h.resumes++
	}
	h.loop.At(h.paused, h.pump)
}

// pump sends a frame and schedules itself for its end.
func (h *pfcHost) pump() {
	if !h.on || h.busy || h.loop.Now() < h.paused {
		return
	}
	h.busy = true
	h.loop.At(h.loop.Now()+hostRate.TxTime(hostFrame), func() {
		h.busy = false
		h.mu.Lock()
		h.sent++
		h.mu.Unlock()
		h.port.Receive(h.frame, h.loop.Now())
		h.pump()
	})
}

func (h *pfcHost) counts() (sent, received, pauses, resumes int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sent, h.received, len(h.pauses), h.resumes
}

func newBufferRig(t *testing.T) *bufferRig {
	t.Helper()
	r := &bufferRig{fabric: &fabric{t: t}, loop: clock.NewLoop(), address: switchtest.Loopback()}
	for i := range r.hosts {
		r.hosts[i] = &pfcHost{loop: r.loop, frame: dataFrame(t, byte(i+1), 2)}
	}
	if err := r.startSwitch(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = r.loop.RunReal(ctx) }()
	t.Cleanup(func() { cancel(); <-ended; r.sw.Close() })
	r.c, r.stop = r.controller(options())
	r.yaml = fmt.Appendf(nil, `
name: one
scale: 1000
switches:
  - {name: s1, device_id: 1, address: %q, target: embedded}
hosts: [{name: h1, ipv4: 10.0.0.1}, {name: h2, ipv4: 10.0.0.2}, {name: h3, ipv4: 10.0.0.3}]
links:
  - {a: "s1:1", b: h1, rate: 20Mbps, delay: 1us}
  - {a: "s1:2", b: h2, rate: 20Mbps, delay: 1us}
  - {a: "s1:3", b: h3, rate: 20Mbps, delay: 1us}
qos: {classes: [{dscp: 24, class: 3}]}
buffer: {policy: "off", size: 200KB, lossless: [3], alpha: 1/2, headroom: 20KB, resume_gap: 2KB, threshold: 30KB}
controller: {poll_interval: 50ms}
`, r.address)
	return r
}

// startSwitch makes the switch, also again after Close. While the loop runs, only the loop may call
// it.
func (r *bufferRig) startSwitch() error {
	s, err := softswitch.NewOnLoop(r.loop, softswitch.Config{Name: "s1", DeviceID: 1, CPUPort: 510, PFC: softswitch.PFC{Enabled: r.pfc}, Traffic: tm.Config{Queues: 8, Limit: tm.Limit{Bytes: 64 * units.MB}}})
	if err != nil {
		return err
	}
	for i, h := range r.hosts {
		if h.port, err = s.AddPort(uint32(i+1), hostRate); err != nil {
			return err
		}
		h.port.Attach(h)
		h.port.SetUp(true)
	}
	addr, err := s.ServeGRPC(r.address, nil)
	if err != nil {
		return err
	}
	r.sw, r.address = s, addr.String()
	return nil
}

func dataFrame(t *testing.T, from, to byte) []byte {
	t.Helper()
	eth := &layers.Ethernet{SrcMAC: []byte{6, 0, 10, 0, 0, from}, DstMAC: []byte{2, 0, 0, 1, 0, from}, EthernetType: layers.EthernetTypeIPv4}
	ip := &layers.IPv4{Version: 4, TTL: 9, TOS: 24 << 2, Protocol: layers.IPProtocolUDP, SrcIP: []byte{10, 0, 0, from}, DstIP: []byte{10, 0, 0, to}}
	udp := &layers.UDP{SrcPort: 1000, DstPort: 2000}
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	buf := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, eth, ip, udp, gopacket.Payload(make([]byte, hostFrame-42)))
	if err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// send makes a host send, or stop.
func (r *bufferRig) send(host int, on bool) {
	r.do(func() {
		r.hosts[host].on = on
		r.hosts[host].pump()
	})
}

// do runs something on the loop's goroutine.
func (r *bufferRig) do(fn func()) {
	r.t.Helper()
	if err := r.loop.Do(r.t.Context(), fn); err != nil {
		r.t.Fatal(err)
	}
}

// policy changes the policy and returns the time when the apply began.
func (r *bufferRig) policy(from, to string) time.Time {
	r.t.Helper()
	r.edit(`policy: "`+from+`"`, `policy: "`+to+`"`)
	began := time.Now()
	for _, result := range r.apply() {
		if result.Error != "" {
			r.t.Fatalf("%s → %s: %s", from, to, result.Error)
		}
	}
	return began
}

// buffer returns the reported state of the switch's buffer.
func (r *bufferRig) buffer() *pb.BufferStatus { return r.c.status("s1").GetBuffer() }

// classes returns the reported state of the lossless classes.
func (r *bufferRig) classes() []*pb.BufferClass {
	return slices.DeleteFunc(r.buffer().GetClasses(), func(c *pb.BufferClass) bool { return c.Paused == nil })
}

func (r *bufferRig) port(i int) *pb.BufferPort {
	if b := r.buffer(); len(b.GetPorts()) > i {
		return b.Ports[i]
	}
	return &pb.BufferPort{}
}
