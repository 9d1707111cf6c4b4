package dataplane

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tests/dataplane/control"
)

func testForward(r *rig) {
	in := newFrame(1, 2)
	in.udpChecksum = true
	sent := in.bytes(r.T)
	r.send(1, sent)
	got := r.receive(2, 1)[0]

	if !bytes.Equal(got.eth.SrcMAC, switchMAC(2)) || !bytes.Equal(got.eth.DstMAC, hostMAC(2)) {
		r.Errorf("MACs %v to %v, want %v to %v", got.eth.SrcMAC, got.eth.DstMAC, switchMAC(2), hostMAC(2))
	}
	if got.ip.TTL != in.ttl-1 {
		r.Errorf("TTL %d, want %d", got.ip.TTL, in.ttl-1)
	}
	// No other field has changed.
	want := bytes.Clone(sent)
	copy(want, got.data[:12])
	want[22], want[24], want[25] = got.data[22], got.data[24], got.data[25]
	if !bytes.Equal(got.data, want) {
		r.Errorf("left as  %x\narrived as %x", got.data, sent)
	}

	// The longest prefix wins, and the default route takes the rest.
	r.write(control.Route(netip.PrefixFrom(address(2, 7), 32), 3), control.Route(netip.MustParsePrefix("0.0.0.0/0"), 4))
	host := newFrame(1, 2)
	host.dst = address(2, 7)
	r.send(1, host.bytes(r.T))
	r.receive(3, 1)
	far := newFrame(1, 2)
	far.dst = netip.MustParseAddr("203.0.113.9")
	r.send(1, far.bytes(r.T))
	r.receive(4, 1)

	// Ethernet pads a minimal frame; the padding is kept.
	short := newFrame(1, 2)
	short.payload = nil
	padded := append(short.bytes(r.T), make([]byte, 18)...)
	r.send(1, padded)
	if got := r.receive(2, 1)[0]; len(got.data) != len(padded) {
		r.Errorf("a padded frame of %d bytes left with %d", len(padded), len(got.data))
	}
	r.noDropsBut()
	r.silent()
}

func testForwardTCP(r *rig) {
	f := newFrame(1, 2)
	f.tcp = true
	sent := f.bytes(r.T)
	r.send(1, sent)
	if got := r.receive(2, 1)[0]; !bytes.Equal(got.data[34:], sent[34:]) {
		r.Errorf("TCP segment %x, want %x", got.data[34:], sent[34:])
	}
}

// ecmpGroup routes 10.9.0.0/16 to a group over ports 2 … 5 and returns a frame for it.
func ecmpGroup(r *rig, weights ...int32) frame {
	group := make([]control.Weight, len(weights))
	for i, w := range weights {
		group[i] = control.Weight{Member: uint32(2 + i), Weight: w}
	}
	r.write(control.Group(100, group...))
	r.write(control.Route(netip.MustParsePrefix("10.9.0.0/16"), 100), control.Route(netip.MustParsePrefix("2001:db8:9::/48"), 100))
	f := r.frame(1, 2)
	f.dst = netip.MustParseAddr("10.9.1.1")
	if r.six {
		f.dst = netip.MustParseAddr("2001:db8:9::1")
	}
	return f
}

// portsOf sends frames, fewer at a time than a queue holds, and returns the ports by which they left.
func portsOf(r *rig, frames [][]byte) []uint32 {
	r.Helper()
	byFlow := map[uint16]uint32{}
	for chunk := range slices.Chunk(frames, 32) {
		r.send(1, chunk...)
		for _, got := range r.receive(anyPort, len(chunk)) {
			byFlow[binary.BigEndian.Uint16(got.data[l4(got.data):])] = got.port
		}
	}
	ports := make([]uint32, len(frames))
	for i, f := range frames {
		ports[i] = byFlow[binary.BigEndian.Uint16(f[l4(f):])]
	}
	return ports
}

func testECMPUsesAllMembers(r *rig) {
	f := ecmpGroup(r, 1, 1, 1, 1)
	frames := repeat(r.T, f, 256, 1)
	first := portsOf(r, frames)
	count := map[uint32]int{}
	for _, p := range first {
		count[p]++
	}
	for p := uint32(2); p <= 5; p++ {
		if count[p] < 32 { // 64 expected; half of that is 5 standard deviations away
			r.Errorf("port %d got %d of 256 flows", p, count[p])
		}
	}
	again := portsOf(r, frames)
	for i := range first {
		if first[i] != again[i] {
			r.Errorf("flow %d went to port %d, then to port %d", i, first[i], again[i])
		}
	}
	// TCP flows are spread too.
	f.tcp = true
	count = map[uint32]int{}
	for _, p := range portsOf(r, repeat(r.T, f, 64, 1)) {
		count[p]++
	}
	if len(count) != 4 {
		r.Errorf("TCP flows used ports %v, want 4 of them", count)
	}
	r.noDropsBut()
}

func testECMPWeights(r *rig) {
	f := ecmpGroup(r, 1, 3)
	const flows = 1024
	count := map[uint32]int{}
	for _, p := range portsOf(r, repeat(r.T, f, flows, 1)) {
		count[p]++
	}
	// A quarter is 256; 5 standard deviations are 70.
	if n := count[2]; n < 186 || n > 326 || n+count[3] != flows {
		r.Errorf("weights 1:3 sent %d and %d flows of %d", n, count[3], flows)
	}
}

// testECMPFragments sends the fragments of one packet. Only the first has ports, and all must take one path.
func testECMPFragments(r *rig) {
	f := ecmpGroup(r, 1, 1, 1, 1)
	ports := map[uint32]bool{}
	for i := range 16 {
		b := f.bytes(r.T)
		flags := uint16(0x2000) | uint16(i*8)
		if i == 15 {
			flags &^= 0x2000
		}
		binary.BigEndian.PutUint16(b[20:], flags)
		binary.BigEndian.PutUint16(b[34:], uint16(i*4321)) // payload where ports would be
		fixChecksum(b)
		r.send(1, b)
		ports[r.receive(anyPort, 1)[0].port] = true
	}
	if len(ports) != 1 {
		r.Errorf("fragments took ports %v", ports)
	}
}

func testClass(r *rig) {
	const dscp, queue = 26, 5
	r.write(control.Class(dscp, 3, queue))
	r.write(control.PuntEtherType(ids.EtherTypeIPv4, 9), control.PuntEtherType(ids.EtherTypeIPv6, 9))
	f := r.frame(1, 2)
	f.dscp, f.ecn = dscp, 1
	r.send(1, f.bytes(r.T))
	if in := r.packetIn(); in.Queue != queue {
		r.Errorf("DSCP %d went to queue %d, want %d", dscp, in.Queue, queue)
	}
	f.dscp = dscp + 1
	r.send(1, f.bytes(r.T))
	if in := r.packetIn(); in.Queue != 0 {
		r.Errorf("DSCP %d without an entry went to queue %d, want 0", f.dscp, in.Queue)
	}
}
