package dataplane

import (
	"bytes"
	"encoding/binary"
	"net/netip"

	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tests/dataplane/control"
)

const (
	hopLimitAt   = 14 + 7
	nextHeaderAt = 14 + 6
)

// newIPv6 is newFrame with IPv6.
func newIPv6(r *rig, from, to uint32) frame {
	r.six = true
	return r.frame(from, to)
}

func testForwardIPv6(r *rig) {
	in := newIPv6(r, 1, 2)
	in.udpChecksum, in.flowLabel = true, 0xabcde
	tcp := newIPv6(r, 1, 2)
	tcp.tcp = true
	for _, f := range []frame{in, tcp} {
		sent := f.bytes(r.T)
		r.send(1, sent)
		got := r.receive(2, 1)[0]
		want := bytes.Clone(sent)
		copy(want, append(bytes.Clone(hostMAC(2)), switchMAC(2)...))
		want[hopLimitAt]--
		if !bytes.Equal(got.data, want) {
			r.Errorf("arrived as %x\nleft as    %x\nwant       %x", sent, got.data, want)
		}
	}

	// The longest prefix wins, and the default route takes the rest.
	r.write(control.Route(netip.PrefixFrom(addressIPv6(2, 7), 128), 3), control.Route(netip.MustParsePrefix("::/0"), 4))
	host, far := newIPv6(r, 1, 2), newIPv6(r, 1, 2)
	host.dst, far.dst = addressIPv6(2, 7), netip.MustParseAddr("2001:db8:ffff::1")
	r.send(1, host.bytes(r.T), far.bytes(r.T))
	r.receive(3, 1)
	r.receive(4, 1)

	// Extension headers are kept, whatever follows them.
	extended := newIPv6(r, 1, 2).bytes(r.T)
	extended[nextHeaderAt] = 60 // destination options
	copy(extended[54:], []byte{17, 0, 1, 4, 0, 0, 0, 0})
	r.send(1, extended)
	if got := r.receive(2, 1)[0]; !bytes.Equal(got.data[54:], extended[54:]) {
		r.Errorf("behind IPv6 %x, want %x", got.data[54:], extended[54:])
	}
	r.noDropsBut()
	r.silent()
}

func testMalformedIPv6(r *rig) {
	good := newIPv6(r, 1, 2)
	change := func(at int, v ...byte) []byte {
		b := good.bytes(r.T)
		copy(b[at:], v)
		return b
	}
	to := func(dst string) []byte {
		f := good
		f.dst = netip.MustParseAddr(dst)
		return f.bytes(r.T)
	}
	fromLink := good
	fromLink.src = netip.MustParseAddr("fe80::1")
	hop1 := good
	hop1.ttl = 1
	total := map[int64]int64{}
	for _, m := range []malformed{
		{"half a header", ids.DropParser, good.bytes(r.T)[:14+39]},
		{"half a UDP header", ids.DropParser, change(18, 0, 4)[:14+40+4]},
		{"version 4", ids.DropIPv6Header, change(14, 0x45)},
		{"payload beyond the frame", ids.DropIPv6Header, change(18, 0, 100-54+1)},
		{"UDP length 7", ids.DropUDPLength, change(58, 0, 7)},
		{"UDP length beyond the packet", ids.DropUDPLength, change(58, 0, 100-54+1)},
		{"no route", ids.DropNoRoute, to("2001:db8:77::1")},
		{"hop limit 0", ids.DropHopLimit, change(hopLimitAt, 0)},
		{"hop limit 1", ids.DropHopLimit, hop1.bytes(r.T)},
		{"multicast", ids.DropLinkScope, to("ff02::1")},
		{"to a link", ids.DropLinkScope, to("fe80::2")},
		{"from a link", ids.DropLinkScope, fromLink.bytes(r.T)},
	} {
		r.send(1, m.frame)
		r.fence()
		total[m.reason]++
		if n := r.drops(m.reason); n != total[m.reason] {
			r.Errorf("%s: %s was counted %d times, want %d", m.name, ids.DropReason(int(m.reason)), n, total[m.reason])
			total[m.reason] = n
		}
	}
	r.silent()
}

func testSourceCheckIPv6(r *rig) {
	r.write(permitSource(3, addressIPv6(3, 1)), permitSource(3, netip.IPv6Unspecified()))
	from := func(port uint32, src netip.Addr) []byte {
		f := newIPv6(r, port, 2)
		f.src = src
		return f.bytes(r.T)
	}
	r.send(3, from(3, addressIPv6(3, 2)), from(3, addressIPv6(4, 1)))
	r.fence()
	if n := r.drops(ids.DropSource); n != 2 {
		r.Errorf("%d spoofed packets dropped, want 2", n)
	}
	r.send(3, from(3, addressIPv6(3, 1)))
	r.send(4, from(4, addressIPv6(3, 1))) // a port that is not checked
	r.receive(2, 2)
	r.noDropsBut(ids.DropSource)
}

// testECMPFlowLabel: with the flow label in the hash, the label chooses the path and ports do not.
func testECMPFlowLabel(r *rig) {
	r.six = true
	f := ecmpGroup(r, 1, 1, 1, 1)
	ports := func(change func(f *frame, i int)) map[uint32]int {
		count := map[uint32]int{}
		for i := range 64 {
			f := f
			change(&f, i)
			r.send(1, f.bytes(r.T))
			count[r.receive(anyPort, 1)[0].port]++
		}
		return count
	}
	byLabel := func(f *frame, i int) { f.flowLabel = uint32(i) << 8 }
	byPort := func(f *frame, i int) { f.srcPort = uint16(i) + 1 }
	if n := ports(byLabel); len(n) != 1 {
		r.Errorf("the five-tuple is hashed, and flow labels use ports %v", n)
	}
	r.write(hashFlowLabel(0))
	if n := ports(byLabel); len(n) != 4 {
		r.Errorf("flow labels are hashed, and use ports %v, want 4", n)
	}
	if n := ports(byPort); len(n) != 1 {
		r.Errorf("flow labels are hashed, and UDP ports use ports %v", n)
	}
	// A fragment has the flow label of the other fragments.
	fragment := func(i int) []byte {
		b := f.bytes(r.T)
		b[nextHeaderAt] = 44
		binary.BigEndian.PutUint16(b[56:], uint16(i*8))
		return b
	}
	used := map[uint32]bool{}
	for i := range 8 {
		r.send(1, fragment(i))
		used[r.receive(anyPort, 1)[0].port] = true
	}
	if len(used) != 1 {
		r.Errorf("fragments took ports %v", used)
	}
	r.noDropsBut()
}
