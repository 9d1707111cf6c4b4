package dataplane

import (
	"net/netip"

	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tests/dataplane/control"
)

// testSourceCheck sends spoofed addresses to a port with a source check and to one without.
func testSourceCheck(r *rig) {
	r.write(permitSource(3, address(3, 1)), permitSource(3, netip.Addr{}), control.PuntEtherType(0x88cc, 2))
	from := func(port uint32, src netip.Addr) []byte {
		f := newFrame(port, 2)
		f.src = src
		return f.bytes(r.T)
	}
	spoofed := []netip.Addr{address(3, 2), address(4, 1), netip.IPv4Unspecified()}
	for i, src := range spoofed {
		r.send(3, from(3, src))
		r.fence()
		if n := r.drops(ids.DropSource); n != int64(i+1) {
			r.Errorf("source %v at a checked port: %d drops, want %d", src, n, i+1)
		}
	}
	r.send(3, from(3, address(3, 1)), lldpFrame())
	r.send(4, from(4, address(3, 1)))
	for _, port := range []byte{3, 4} {
		if got := r.receive(2, 1)[0]; got.ip.SrcIP.String() != address(3, 1).String() {
			r.Errorf("the packet of port %d comes from %v", port, got.ip.SrcIP)
		}
	}
	if in := r.packetIn(); in.Port != 3 {
		r.Errorf("LLDP of the checked port: %+v", in)
	}
	// The controller's own packets through the pipeline have no port to check.
	r.packetOut(control.PacketOut{Mode: ids.PacketOutPipeline, Payload: from(3, address(4, 1))})
	r.receive(2, 1)
	r.noDropsBut(ids.DropSource)
}

// testPortClasses sends one DSCP from a port that maps it to another queue, with a limit of 0, and from a port
// without a map.
func testPortClasses(r *rig) {
	r.write(control.Class(8, 1, 1), control.PortClass(3, 8, 2, 2), control.QueueLimit(2, 2, 0))
	for i, port := range []uint32{3, 4, 3} {
		f := newFrame(port, 2)
		f.dscp = 8
		r.send(port, f.bytes(r.T))
		r.fence()
		if n, want := r.drops(ids.DropAdmission), int64([]int{1, 1, 2}[i]); n != want {
			r.Errorf("a packet of port %d: %d packets were in the queue without room, want %d", port, n, want)
		}
	}
	r.receive(2, 1)
	f := newFrame(3, 2) // another DSCP, at the same port
	r.send(3, f.bytes(r.T))
	r.receive(2, 1)
	r.noDropsBut(ids.DropAdmission)
}
