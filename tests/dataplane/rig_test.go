// Package dataplane holds tests of the compiled P4 program, written once and run on every
// target: the embedded switch always, BMv2 with HEADGATE_BMV2=1.
package dataplane

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
	"github.com/headgate/headgate/tests/dataplane/control"
	"github.com/headgate/headgate/tests/dataplane/target"
)

// patience bounds the wait for an expected event; a test that passes rarely waits.
const patience = 60 * time.Second

// fencePort is the port by which fences leave; tests do not use it otherwise.
const fencePort = target.Ports

// rig is a target with Headgate's program, with routes 10.0.p.0/24 and 2001:db8:0:p::/64 to every port p, and
// with the session for polls.
type rig struct {
	*testing.T
	target target.Target
	ctl    *control.Client
	six    bool // frames are of IPv6
	fences uint16
	polls  uint32
}

// newRig takes over a fresh target.
func newRig(t *testing.T, tg target.Target) *rig {
	t.Helper()
	t.Cleanup(func() {
		if err := tg.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	conn, err := tg.Dial()
	if err != nil {
		t.Fatal(err)
	}
	ctl, err := control.New(conn, target.DeviceID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ctl.Close)
	if err := ctl.Push(); err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, target: tg, ctl: ctl}
	r.write(control.PollSession())
	for p := uint32(1); p <= target.Ports; p++ {
		r.write(control.Member(p, p, switchMAC(p), hostMAC(p)))
		r.write(control.Group(p, control.Weight{Member: p, Weight: 1}))
		r.write(control.Route(netip.PrefixFrom(address(p, 0), 24), p), control.Route(netip.PrefixFrom(addressIPv6(p, 0), 64), p))
	}
	return r
}

func switchMAC(port uint32) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0, 0, byte(port)} }
func hostMAC(port uint32) net.HardwareAddr   { return net.HardwareAddr{2, 0, 0, 0, 1, byte(port)} }

// address is a host behind a port.
func address(port uint32, host byte) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, byte(port), host})
}

func addressIPv6(port uint32, host byte) netip.Addr {
	return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 7: byte(port), 15: host})
}

func (r *rig) write(updates ...*p4v1.Update) {
	r.Helper()
	if err := r.ctl.Write(updates...); err != nil {
		r.Fatalf("write %v: %v", updates, err)
	}
}

func (r *rig) send(port uint32, frames ...[]byte) {
	r.Helper()
	if err := r.target.Send(port, frames...); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) shape(port uint32, s target.Shape) {
	r.Helper()
	if err := r.target.Shape(port, s); err != nil {
		r.Fatal(err)
	}
}

// receive returns n frames that left a port.
func (r *rig) receive(port uint32, n int) []decoded {
	r.Helper()
	frames := make([]decoded, 0, n)
	for len(frames) < n {
		f, ok := r.target.Receive(port, patience)
		if !ok {
			r.Fatalf("port %d: %d frames, want %d", port, len(frames), n)
		}
		frames = append(frames, decode(r.T, f))
	}
	return frames
}

// fence waits until ingress has handled all earlier frames: it sends a frame of its own and waits for it.
func (r *rig) fence() {
	r.Helper()
	r.fences++
	f := newFrame(1, fencePort)
	f.srcPort, f.dstPort = r.fences, 9
	r.send(1, f.bytes(r.T))
	for {
		got := r.receive(fencePort, 1)[0]
		if got.udp != nil && uint16(got.udp.SrcPort) == r.fences {
			return
		}
	}
}

// silent fails if a frame has left any port.
func (r *rig) silent() {
	r.Helper()
	r.fence()
	if f, ok := r.target.Receive(target.Any, 0); ok {
		r.Errorf("port %d sent %x, want nothing", f.Port, f.Data)
	}
}

func (r *rig) drops(reason int64) int64 {
	r.Helper()
	packets, _, err := r.ctl.Counter(ids.CounterDrops, reason)
	if err != nil {
		r.Fatal(err)
	}
	return packets
}

// noDrops fails if any packet was dropped, except for the given reasons.
func (r *rig) noDropsBut(reasons ...int64) {
	r.Helper()
	counts, err := r.ctl.Counters(ids.CounterDrops)
	must(r.T, err)
	for i, n := range counts {
		if n != 0 && !slices.Contains(reasons, int64(i)) {
			r.Errorf("%d packets dropped as %s, want 0", n, ids.DropReason(i))
		}
	}
}

// packetOut sends a packet-out and waits until the switch has taken it.
func (r *rig) packetOut(p control.PacketOut) {
	r.Helper()
	if err := errors.Join(r.ctl.Send(p), r.ctl.Sync()); err != nil {
		r.Fatal(err)
	}
}

// began is the start of the targets' wall clocks.
var began = time.Now()

// now is the time on the target's clock.
func (r *rig) now() time.Duration {
	if c, ok := r.target.(target.Timed); ok {
		return c.Now()
	}
	return time.Since(began)
}

func (r *rig) sleep(d time.Duration) {
	if c, ok := r.target.(target.Timed); ok {
		c.Sleep(d)
		return
	}
	time.Sleep(d)
}

func (r *rig) packetIn() control.PacketIn {
	r.Helper()
	most := patience
	if _, ok := r.target.(target.Timed); ok {
		most = 0 // its clock stands still until the test advances it
	}
	for end := r.now() + patience; ; {
		p, err := r.ctl.Receive(most)
		if err == nil {
			return p
		}
		if r.now() >= end || !errors.Is(err, control.ErrTimeout) {
			r.Fatal(err)
		}
		r.sleep(time.Millisecond)
		must(r.T, r.ctl.Sync())
	}
}

// poll reads a port's registers.
func (r *rig) poll(port uint32) pollreport.Report {
	r.Helper()
	r.polls++
	cookie := binary.BigEndian.AppendUint32(nil, r.polls)
	r.packetOut(control.PacketOut{Port: port, Mode: ids.PacketOutPoll, Payload: cookie})
	in := r.packetIn()
	if in.Reason != ids.PacketInPoll || in.Port != port || in.Queue != ids.HighestQueue {
		r.Fatalf("answer to a poll of port %d: %+v", port, in)
	}
	report, rest, err := pollreport.Parse(in.Payload)
	if err != nil {
		r.Fatal(err)
	}
	if report.Port != port || string(rest) != string(cookie) {
		r.Fatalf("report of port %d with payload %x, want port %d with %x", report.Port, rest, port, cookie)
	}
	return report
}
