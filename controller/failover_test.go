package controller

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/p4runtime/reconcile"
	"github.com/headgate/headgate/softswitch"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/tests/dataplane/control"
	"github.com/headgate/headgate/units"
)

// counted is a host that records which numbered packets arrived, and the last arrival of each flow.
type counted struct {
	out  softswitch.Sender
	last map[uint32]units.Time
	gap  units.Time // the longest time without a packet of a flow
	got  int
}

func (h *counted) Attach(out softswitch.Sender) { h.out = out }
func (h *counted) SetUp(bool)                   {}
func (h *counted) Receive(frame []byte, now units.Time) {
	if len(frame) < 46 || frame[23] != 17 {
		return
	}
	flow := uint32(binary.BigEndian.Uint16(frame[34:]))
	h.gap = max(h.gap, now-h.last[flow])
	h.last[flow] = now
	h.got++
}

// TestCableCut cuts one of two cables between two switches. The controller does not react: the
// entries that it wrote earlier must suffice. Time is virtual.
func TestCableCut(t *testing.T) {
	cfg, err := config.Parse("two.yaml", []byte(`
name: two
switches:
  - {name: s1, device_id: 1, address: "127.0.0.1:1", target: embedded}
  - {name: s2, device_id: 2, address: "127.0.0.1:2", target: embedded}
hosts: [{name: h1, ipv4: 10.0.0.1}, {name: h2, ipv4: 10.0.0.2}]
links:
  - {a: "s1:1", b: "s2:1", rate: 100Mbps}
  - {a: "s1:2", b: "s2:2", rate: 100Mbps}
  - {a: "s1:3", b: h1, rate: 100Mbps}
  - {a: "s2:3", b: h2, rate: 100Mbps}
`), nil, Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(options())
	if err != nil {
		t.Fatal(err)
	}
	in := c.inputs(cfg)
	desired := c.desired(in, in.graph.Routes(c.links.state()), nil)
	loop := clock.NewLoop()
	var ports [2][4]*softswitch.Port
	hosts := [2]*counted{{last: map[uint32]units.Time{}}, {last: map[uint32]units.Time{}}}
	for i := range ports {
		s, err := softswitch.NewOnLoop(loop, softswitch.Config{DeviceID: uint64(i + 1), CPUPort: 510, Traffic: tm.Config{Queues: 8}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		for n := 1; n <= 3; n++ {
			if ports[i][n], err = s.AddPort(uint32(n), 100*units.Mbps); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := softswitch.Connect(loop, 0, ports[i][3], hosts[i]); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("s%d", i+1)
		if err := desired[name].Err; err != nil {
			t.Fatal(err)
		}
		configure(t, s, uint64(i+1), reconcile.Diff(&reconcile.State{}, desired[name].State, nil))
	}
	var cables [2]*softswitch.Link
	for n := range cables {
		if cables[n], err = softswitch.Connect(loop, units.Millisecond, ports[0][n+1], ports[1][n+1]); err != nil {
			t.Fatal(err)
		}
	}
	loop.RunUntil(units.Millisecond)

	const flows, sent = 64, 6400
	begin, every := 10*units.Millisecond, 50*units.Microsecond
	for i := range sent {
		at := begin + units.Time(i)*every
		loop.Schedule(at, func() {
			for from, h := range hosts {
				h.out.Send(datagram(t, byte(from+1), byte(2-from), uint16(i%flows)), at)
			}
		})
	}
	for _, h := range hosts {
		for f := range uint32(flows) {
			h.last[f] = begin
		}
	}
	loop.Schedule(100*units.Millisecond, func() { cables[0].SetUp(false) })
	loop.RunUntil(units.Second)
	lost := uint64(0)
	for _, d := range cables[0].Stats() {
		if d.Frames == 0 {
			t.Error("no flow was on the cable before it was cut")
		}
		lost += d.Lost
	}
	for i, h := range hosts {
		for _, last := range h.last { // those that never came back
			h.gap = max(h.gap, begin+sent*every-last)
		}
		// A flow's packets are 3.2 ms apart, and the cable may lose one.
		if h.gap > 100*units.Millisecond {
			t.Errorf("h%d waited %v for a flow after the cable was cut, want less than 100 ms", i+1, h.gap)
		}
	}
	if got := hosts[0].got + hosts[1].got; uint64(got)+lost != 2*sent || lost > 200 {
		t.Errorf("%d of %d packets came, %d were lost on the cable, want no others lost and at most what was on its way", got, 2*sent, lost)
	}
}

// configure gives an embedded switch Headgate's program and a plan's entries.
func configure(t *testing.T, s *softswitch.Switch, device uint64, plan reconcile.Plan) {
	t.Helper()
	addr, err := s.ServeGRPC("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(addr.String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ctl, err := control.New(conn, device)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ctl.Close)
	if err := ctl.Push(); err != nil {
		t.Fatal(err)
	}
	for _, batch := range plan.Batches {
		if err := ctl.Write(batch...); err != nil {
			t.Fatal(err)
		}
	}
}

// datagram is a packet of a flow between hosts 10.0.0.x.
func datagram(t *testing.T, from, to byte, flow uint16) []byte {
	t.Helper()
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: []byte{10, 0, 0, from}, DstIP: []byte{10, 0, 0, to}}
	udp := &layers.UDP{SrcPort: layers.UDPPort(flow), DstPort: 9}
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	buf := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
		&layers.Ethernet{SrcMAC: []byte{6, 0, 10, 0, 0, from}, DstMAC: []byte{2, 0, 0, from, 0, 3}, EthernetType: layers.EthernetTypeIPv4},
		ip, udp, gopacket.Payload(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}
