package dataplane

import (
	"bytes"
	"time"

	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
	"github.com/headgate/headgate/tables/red"
	"github.com/headgate/headgate/tests/dataplane/control"
	"github.com/headgate/headgate/tests/dataplane/target"
)

func testPacketOut(r *rig) {
	// A packet-out leaves unchanged by a port, whatever its content.
	for _, payload := range [][]byte{
		newFrame(1, 2).bytes(r.T),
		bytes.Repeat([]byte{0xff}, 64),
		{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0x88, 0x08}, // too short for anything
	} {
		r.packetOut(control.PacketOut{Port: 3, Queue: 2, Mode: ids.PacketOutPort, Payload: payload})
		if f, ok := r.target.Receive(3, patience); !ok || !bytes.Equal(f.Data, payload) {
			r.Errorf("packet-out %x left as %x", payload, f.Data)
		}
	}
	// A packet-out through the pipeline ignores the port.
	r.packetOut(control.PacketOut{Port: 3, Mode: ids.PacketOutPipeline, Payload: newFrame(1, 2).bytes(r.T)})
	if got := r.receive(2, 1)[0]; got.ip.TTL != 63 || !bytes.Equal(got.eth.DstMAC, hostMAC(2)) {
		r.Errorf("a packet-out through the pipeline has TTL %d and goes to %v", got.ip.TTL, got.eth.DstMAC)
	}
	// Its bytes count without the controller's header.
	if report := r.poll(2); report.DepartedBytes != 100 || report.DepartedPackets != 1 {
		r.Errorf("%d packets with %d bytes departed, want 1 with 100", report.DepartedPackets, report.DepartedBytes)
	}
	// Malformed frames through the pipeline, and an unknown mode.
	r.packetOut(control.PacketOut{Mode: ids.PacketOutPipeline, Payload: newFrame(1, 2).bytes(r.T)[:20]})
	r.packetOut(control.PacketOut{Port: 3, Mode: 9, Payload: newFrame(1, 2).bytes(r.T)})
	r.poll(2) // later than both
	if n := r.drops(ids.DropParser); n != 1 {
		r.Errorf("a truncated packet-out: %d drops, want 1", n)
	}
	if n := r.drops(ids.DropPacketOut); n != 1 {
		r.Errorf("an unknown mode: %d drops, want 1", n)
	}
	r.noDropsBut(ids.DropParser, ids.DropPacketOut)
	r.silent()
}

func testPunt(r *rig) {
	const arpReason, addrReason = 2, 3
	r.write(control.PuntEtherType(0x0806, arpReason), puntAddress(address(4, 254), addrReason))
	arp := append(append(bytes.Repeat([]byte{0xff}, 6), hostMAC(5)...), 0x08, 0x06)
	arp = append(arp, bytes.Repeat([]byte{7}, 46)...)
	r.send(5, arp)
	if in := r.packetIn(); in.Port != 5 || in.Reason != arpReason || !bytes.Equal(in.Payload, arp) {
		r.Errorf("ARP came as %+v", in)
	}
	// To the switch itself: MACs, TTL and marks stay unchanged.
	f := newFrame(6, 4)
	f.dst, f.ttl, f.ecn = address(4, 254), 1, 2
	r.write(control.Marking(0, []red.Entry{{Low: 0, High: control.Depth.Max, P: red.Certain}})...)
	own := f.bytes(r.T)
	r.send(6, own)
	if in := r.packetIn(); in.Port != 6 || in.Reason != addrReason || !bytes.Equal(in.Payload, own) {
		r.Errorf("a packet to the switch came as %+v", in)
	}
	r.noDropsBut()
	// Other packets are forwarded or dropped.
	r.send(6, newFrame(6, 4).bytes(r.T))
	r.receive(4, 1)
	lldp := bytes.Clone(arp)
	lldp[12], lldp[13] = 0x88, 0xcc
	r.send(6, lldp)
	r.silent()
	if n := r.drops(ids.DropNotIPv4); n != 1 {
		r.Errorf("LLDP: %d drops, want 1", n)
	}
}

func testPoll(r *rig) {
	const packets = 7
	first := r.poll(2)
	if first.DepartedBytes != 0 || first.DepartedPackets != 0 || first.AdmissionDrops != 0 {
		r.Errorf("an unused port reports %+v", first)
	}
	frames := repeat(r.T, newFrame(1, 2), packets, 1)
	bytes := uint64(0)
	for _, f := range frames {
		bytes += uint64(len(f))
	}
	r.send(1, frames...)
	r.receive(2, packets)
	r.empty(2)
	r.sleep(time.Millisecond)
	second := r.poll(2)
	if second.DepartedBytes != bytes || second.DepartedPackets != packets {
		r.Errorf("%d packets with %d bytes departed, want %d with %d", second.DepartedPackets, second.DepartedBytes, packets, bytes)
	}
	if second.Time <= first.Time {
		r.Errorf("time went from %d to %d", first.Time, second.Time)
	}
	if other := r.poll(3); other.DepartedPackets != 0 {
		r.Errorf("port 3 reports %+v", other)
	}

	// A poll overtakes a full queue and reports its length.
	r.write(control.Class(10, 1, 4))
	r.shape(2, slowShape())
	data, bulk := newFrame(1, 2), newFrame(1, 2)
	data.dscp = 10
	r.send(1, repeat(r.T, data, 20, 1)...)
	r.fence()
	busy := r.poll(2)
	if q := busy.QueueBytes; q[4] < 1000 || q[4] > 2000 || q[4]%100 != 0 || q[0] != 0 || q[7] != 0 {
		r.Errorf("with up to 20 packets in queue 4 the queues have %v bytes", q)
	}
	r.send(1, repeat(r.T, bulk, 5, 100)...)
	r.receive(2, 25)
	r.empty(2)
	if last := r.poll(2); last.LastDelay < busy.LastDelay || last.DepartedPackets != packets+25 {
		r.Errorf("after the queue has drained: %+v, before: %+v", last, busy)
	}
	// The CPU port has registers too. Nothing was punted, and reports are not departures.
	if cpu := r.poll(ids.CPUPort); cpu.DepartedPackets != 0 {
		r.Errorf("the CPU port reports %+v", cpu)
	}
	// A poll may carry any payload, or none.
	r.packetOut(control.PacketOut{Port: 2, Mode: ids.PacketOutPoll})
	if in := r.packetIn(); len(in.Payload) != pollreport.Size {
		r.Errorf("a poll without payload: %d bytes, want %d", len(in.Payload), pollreport.Size)
	}
	r.noDropsBut()
}

// testIdle leaves a switch idle: it sends nothing and counts nothing.
func testIdle(r *rig) {
	for p := uint32(1); p <= target.Ports; p++ {
		report := r.poll(p)
		report.Port, report.Time = 0, 0
		if report != (pollreport.Report{}) {
			r.Errorf("idle port %d reports %+v", p, report)
		}
	}
	r.noDropsBut()
	r.silent()
}
