package dataplane

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"github.com/headgate/headgate/p4src/ids"
)

// fixChecksum recomputes the IPv4 checksum of a frame.
func fixChecksum(b []byte) {
	b[24], b[25] = 0, 0
	binary.BigEndian.PutUint16(b[24:], ^sum(b[14:34]))
}

// malformed is a frame that must be dropped, and the reason.
type malformed struct {
	name   string
	reason int64
	frame  []byte
}

func malformedFrames(r *rig) []malformed {
	good := func() []byte { return newFrame(1, 2).bytes(r.T) }
	change := func(at int, v byte) []byte {
		b := good()
		b[at] = v
		fixChecksum(b)
		return b
	}
	etherType := func(v uint16, b []byte) []byte {
		binary.BigEndian.PutUint16(b[12:], v)
		return b
	}
	roce := newFrame(1, 2)
	roce.dstPort, roce.payload = ids.UDPPortRoCE, make([]byte, 11)
	ttl0, ttl1 := newFrame(1, 2), newFrame(1, 2)
	ttl0.ttl, ttl1.ttl = 0, 1
	tcp := newFrame(1, 2)
	tcp.tcp, tcp.payload = true, nil
	shortTCP := tcp.bytes(r.T)[:14+20+3]
	binary.BigEndian.PutUint16(shortTCP[16:], 23)
	fixChecksum(shortTCP)
	noRoute := newFrame(1, 2)
	noRoute.dst = address(77, 1)
	pfc := make([]byte, 60)
	copy(pfc, []byte{1, 0x80, 0xc2, 0, 0, 1})
	binary.BigEndian.PutUint16(pfc[12:], ids.EtherTypeMACControl)
	binary.BigEndian.PutUint16(pfc[14:], ids.MACControlPFC)
	pause := bytes.Clone(pfc)
	pause[15] = 0x01
	pause[14] = 0

	return []malformed{
		{"one byte", ids.DropParser, []byte{1}},
		{"half an Ethernet header", ids.DropParser, good()[:13]},
		{"half an IPv4 header", ids.DropParser, good()[:14+12]},
		{"half a UDP header", ids.DropParser, cut(good(), 14+20+4)},
		{"half a TCP port pair", ids.DropParser, shortTCP},
		{"half a BTH", ids.DropParser, roce.bytes(r.T)},
		{"half a PFC frame", ids.DropParser, pfc[:30]},
		{"IP version 6 in an IPv4 frame", ids.DropIPv4Header, change(14, 0x65)},
		{"IHL 4", ids.DropIPv4Header, change(14, 0x44)},
		{"total length below the header", ids.DropIPv4Header, change(17, 19)},
		{"total length beyond the frame", ids.DropIPv4Header, change(17, 87)},
		{"UDP length 7", ids.DropUDPLength, change(39, 7)},
		{"UDP length beyond the packet", ids.DropUDPLength, change(39, 67)},
		{"options", ids.DropIPv4Options, change(14, 0x46)},
		{"wrong checksum", ids.DropIPv4Checksum, func() []byte { b := good(); b[24] ^= 1; return b }()},
		{"corrupt address", ids.DropIPv4Checksum, func() []byte { b := good(); b[31] ^= 4; return b }()},
		{"PFC", ids.DropMACControl, pfc},
		{"PAUSE", ids.DropMACControl, pause},
		{"MAC control alone", ids.DropMACControl, pause[:16]},
		{"IPv4 in an IPv6 frame", ids.DropIPv6Header, etherType(0x86dd, good())},
		{"VLAN", ids.DropNotIPv4, etherType(0x8100, good())},
		{"Ethernet header alone", ids.DropNotIPv4, etherType(0x1234, good())[:14]},
		{"no route", ids.DropNoRoute, noRoute.bytes(r.T)},
		{"TTL 0", ids.DropTTL, ttl0.bytes(r.T)},
		{"TTL 1", ids.DropTTL, ttl1.bytes(r.T)},
	}
}

// cut shortens a frame and adjusts its IPv4 header.
func cut(b []byte, n int) []byte {
	binary.BigEndian.PutUint16(b[16:], uint16(n-14))
	fixChecksum(b)
	return b[:n]
}

func testMalformed(r *rig) {
	total := map[int64]int64{}
	for _, m := range malformedFrames(r) {
		r.send(1, m.frame)
		r.fence()
		total[m.reason]++
		if n := r.drops(m.reason); n != total[m.reason] {
			r.Errorf("%s: %s was counted %d times, want %d", m.name, ids.DropReason(int(m.reason)), n, total[m.reason])
			total[m.reason] = n
		}
	}
	for reason, want := range total {
		if n := r.drops(reason); n != want {
			r.Errorf("%s was counted %d times in all, want %d", ids.DropReason(int(reason)), n, want)
		}
	}
	r.silent()
}

// garbage makes frames of random bytes, most with a valid beginning; the same frames every time.
func garbage(r *rig, n int) [][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	frames := make([][]byte, n)
	for i := range frames {
		b := make([]byte, 1+rng.IntN(200))
		for j := range b {
			b[j] = byte(rng.Uint32())
		}
		r.six = rng.IntN(3) == 0
		good := r.frame(1, uint32(1+rng.IntN(fencePort-1)))
		if rng.IntN(2) == 0 {
			good = good.shim(uint8(rng.IntN(3)), rng.IntN(2) == 0, uint16(rng.Uint32()))
			good.payload[1] = byte(rng.IntN(3))
		}
		whole := good.bytes(r.T)
		if rng.IntN(4) == 0 {
			whole = r.segment(good, [][]byte{nil, timestamps(), sack(1), sack(2), sack(3)}[rng.IntN(5)], tcpOption{}.Append(nil))
		}
		copy(b, whole[:rng.IntN(len(good.payload))+len(whole)-len(good.payload)])
		if r.six {
			mangleIPv6(b, rng)
		} else if len(b) > 34 && rng.IntN(2) == 0 {
			binary.BigEndian.PutUint16(b[16:], uint16(len(b)-14))
			fixChecksum(b)
		}
		if len(b) > 34 && rng.IntN(4) == 0 {
			b[14+rng.IntN(20)] ^= 1 << rng.IntN(8)
		}
		frames[i] = b
	}
	r.six = false
	return frames
}

// mangleIPv6 turns a frame into IPv6, with a random length or, half of the time, the right one. Some have an
// ICMPv6 message, or a part behind an extension header.
func mangleIPv6(b []byte, rng *rand.Rand) {
	if len(b) < 58 {
		return
	}
	if rng.IntN(2) == 0 {
		binary.BigEndian.PutUint16(b[18:], uint16(len(b)-54))
	}
	switch rng.IntN(4) {
	case 0:
		b[nextHeaderAt] = byte(rng.IntN(61))
	case 1:
		b[nextHeaderAt], b[54] = 58, byte(128+rng.IntN(10))
		binary.BigEndian.PutUint16(b[18:], uint16(24+8*rng.IntN(2)))
	}
}

// behaviour is a switch's treatment of frames: the frames that left each port, in order, and the number dropped
// for each reason.
type behaviour struct {
	Left    map[uint32][]string
	Dropped map[string]int64
}

// behave sends frames to port 1 and returns the switch's behaviour. Fences, on a port of their own, are not part
// of it.
func behave(r *rig, frames [][]byte) behaviour {
	r.Helper()
	for chunk := range slices.Chunk(frames, 20) { // fewer than a queue of BMv2 holds
		r.send(1, chunk...)
		r.fence()
	}
	b := behaviour{Left: map[uint32][]string{}, Dropped: map[string]int64{}}
	for i := 0; i < ids.DropReasonCells; i++ {
		if n := r.drops(int64(i)); n != 0 {
			b.Dropped[ids.DropReason(i)] = n
		}
	}
	for p := uint32(1); p < fencePort; p++ {
		// Egress has finished when the account is zero, and the poll's answer follows all frames of its port.
		r.empty(p)
		for range r.poll(p).DepartedPackets {
			b.Left[p] = append(b.Left[p], string(r.receive(p, 1)[0].data))
		}
	}
	return b
}

// testGarbage sends garbage: each frame leaves, or is dropped and counted, and the switch still works.
func testGarbage(r *rig) {
	const frames = 2000
	b := behave(r, garbage(r, frames))
	left, dropped := 0, 0
	for _, l := range b.Left {
		left += len(l)
	}
	for _, n := range b.Dropped {
		dropped += int(n)
	}
	if left+dropped != frames {
		r.Errorf("%d frames left and %d were dropped, of %d sent", left, dropped, frames)
	}
	if left < frames/20 || len(b.Dropped) < 5 {
		r.Errorf("the garbage is too uniform: %d left, drops %v", left, b.Dropped)
	}
	r.silent()
}
