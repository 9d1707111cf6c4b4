package port

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// xdpPort is a network interface by AF_XDP: its frames go straight to the switch, and this
// machine's network stack sees none of them. Its reader goroutine owns the receive and
// fill rings, the switch's lock guards the send and completion rings and the free chunks.
type xdpPort struct {
	counters
	named    Named
	index    int
	longest  int // bytes of a frame that may be sent
	sockets  xdpSockets
	program  xdpProgram
	promisc  int      // a packet socket that keeps the interface promiscuous
	fd       int      // the socket that receives; the file closes it
	file     *os.File // the same, for who may come after its end
	raw      syscall.RawConn
	pool     pool
	free     []uint64 // addresses of idle chunks to send from, the last used on top
	detached bool     // the last attempt to send found the interface down
}

// OpenXDP opens a network interface as a switch port by AF_XDP, in the driver if it can
// (veth can) and else in front of the network stack. The interface must have one receive
// queue and an MTU of at most 3818 (with pages of 4 KiB); it may go down and up again.
// It needs Linux 5.11 and root, or CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF.
//
// It differs from OpenInterface in that frames pass by this machine's network stack,
// queueing disciplines and packet captures, and that a VLAN tag that is not part of the
// frame itself is lost, because programs cannot see it: switch off VLAN offload where there
// are tags, on veth at the other end (`ethtool -K PEER txvlan off`), on hardware at this one
// (`ethtool -K NAME rxvlan off`).
func OpenXDP(p Named) (Port, Source, error) {
	ifi, err := net.InterfaceByName(p.Name)
	if err != nil {
		return nil, nil, fmt.Errorf("port %d: no network interface %q: want one of %s", p.Number, p.Name, interfaceNames())
	}
	q := &xdpPort{named: p, index: ifi.Index, longest: ifi.MTU + linkHeader + vlanTag, promisc: -1, pool: newPool(batches)}
	if err := q.open(ifi); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("port %d, interface %s: %w", p.Number, p.Name, err), q.Close())
	}
	return q, q, nil
}

func (q *xdpPort) open(ifi *net.Interface) (err error) {
	q.sockets.rx, q.sockets.tx = -1, -1
	if err := oneQueue(ifi); err != nil {
		return err
	}
	if err := q.program.attach(ifi); err != nil {
		return err
	}
	// A driver that can hands frames over without a copy: not to a program outside of it.
	flags := uint16(unix.XDP_COPY)
	if q.program.native {
		flags = 0
	}
	if err := q.sockets.open(ifi, flags); err != nil {
		return err
	}
	q.giveChunks()
	if q.promisc, err = promiscuous(ifi); err != nil {
		return err
	}
	if err := q.program.deliver(q.sockets.rx); err != nil {
		return err
	}
	q.file = os.NewFile(uintptr(q.sockets.rx), "xdp:"+ifi.Name)
	q.fd, q.sockets.rx = q.sockets.rx, -1 // the file closes it
	q.raw, err = q.file.SyscallConn()
	return err
}

// promiscuous makes an interface take frames for any address until the returned socket,
// which receives nothing, is closed.
func promiscuous(ifi *net.Interface) (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("promiscuous mode: %w", err)
	}
	m := unix.PacketMreq{Ifindex: int32(ifi.Index), Type: unix.PACKET_MR_PROMISC}
	if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &m); err != nil {
		return -1, errors.Join(fmt.Errorf("promiscuous mode: %w", err), unix.Close(fd))
	}
	return fd, nil
}

// giveChunks gives the first half of the chunks to the kernel and the second to Send.
func (q *xdpPort) giveChunks() {
	s := &q.sockets
	q.free = make([]uint64, 0, xdpFrames)
	for i := range xdpFrames {
		s.fill.push(uint64(i * s.chunk))
		q.free = append(q.free, uint64((xdpFrames+i)*s.chunk))
	}
	s.fill.publish()
}

// Mode is where the frames are taken: "native", in the interface's driver, perhaps
// "native, zero-copy", or "generic", in front of the network stack.
func (q *xdpPort) Mode() string {
	switch {
	case q.sockets.zeroCopy:
		return "native, zero-copy"
	case q.program.native:
		return "native"
	}
	return "generic"
}

// Run reads frames until ctx ends.
func (q *xdpPort) Run(ctx context.Context, deliver func(*Batch)) error {
	// An error is that the interface is gone: nothing to take note of.
	return q.pool.read(ctx, q.fd, q.take, func() {}, deliver)
}

// take moves received frames into b and their chunks back to the kernel, and reports
// whether there was anything.
func (q *xdpPort) take(b *Batch) bool {
	s := &q.sockets
	n := s.received.ready()
	if n == 0 {
		return false
	}
	for ; n > 0; n-- {
		d := s.received.at(s.received.next)
		if !b.Add(q.named.Number, s.umem[d.Addr:d.Addr+uint64(d.Len)]) {
			break // the next batch takes it
		}
		s.fill.push(d.Addr &^ uint64(s.chunk-1))
		s.received.next++
	}
	s.received.done()
	s.fill.publish()
	if s.fill.needsWakeup() { // zero-copy drivers only
		_, _, _ = unix.Syscall6(unix.SYS_RECVFROM, uintptr(q.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	}
	return true
}

// Counters asks the kernel what it dropped. Frames too long for a chunk count as overruns.
func (q *xdpPort) Counters() Counters {
	_ = q.raw.Control(func(fd uintptr) {
		var st unix.XDPStatistics
		if xdpGetsockopt(int(fd), unix.XDP_STATISTICS, &st) == nil {
			q.rxOverruns.Store(st.Rx_dropped + st.Rx_ring_full)
		}
	})
	return q.counters.Counters()
}

// Up reports whether the interface is up and has a carrier (IFF_RUNNING).
func (q *xdpPort) Up() bool {
	ifi, err := net.InterfaceByIndex(q.index)
	return err == nil && ifi.Flags&net.FlagUp != 0 && ifi.Flags&net.FlagRunning != 0
}

// Close detaches the program first, so that no frame goes to a socket that is gone.
func (q *xdpPort) Close() error {
	err := q.program.close()
	if q.file != nil {
		err = errors.Join(err, q.file.Close())
	}
	if q.promisc >= 0 {
		err = errors.Join(err, unix.Close(q.promisc))
		q.promisc = -1
	}
	return errors.Join(err, q.sockets.close())
}

var _ Port = (*xdpPort)(nil)
var _ Source = (*xdpPort)(nil)
