package port

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// xdpPort is a network interface driven by AF_XDP. Its frames go straight to the switch, and this
// machine's network stack sees none of them. Its reader goroutine owns the receive and fill rings.
// The switch's lock guards the send and completion rings and the free chunks.
type xdpPort struct {
	counters
	named    Named
	index    int
	longest  int // largest frame that may be sent, bytes
	sockets  xdpSockets
	program  xdpProgram
	in       socket   // the socket that receives
	promisc  socket   // a packet socket that keeps the interface promiscuous and shows its state
	free     []uint64 // stack of the addresses of free chunks for sending
	detached bool     // the interface was down at the last attempt to send

	txWorker atomic.Pointer[txWorker] // nil unless its reader runs
}

// OpenXDP opens a network interface as a switch port by AF_XDP. The program runs in the
// interface's driver if the driver can do that (veth can), and otherwise in front of the network
// stack. The interface must have one receive queue and an MTU of at most 3818 (with pages of 4
// KiB). It may go down and up again. OpenXDP needs Linux 5.11, and root or CAP_NET_ADMIN,
// CAP_NET_RAW and CAP_BPF.
//
// It differs from OpenInterface in two ways. Frames bypass this machine's network stack, queueing
// disciplines and packet captures. A VLAN tag outside of the frame itself is lost, because
// programs cannot see it. If there are tags, switch off VLAN offload: on veth at the other end
// (`ethtool -K PEER txvlan off`), on hardware at this one (`ethtool -K NAME rxvlan off`).
func OpenXDP(p Named) (Port, Source, error) {
	ifi, err := p.find()
	if err != nil {
		return nil, nil, err
	}
	q, err := newXDPPort(p, ifi, false)
	if err == nil {
		if err = q.take(true); err == nil {
			return q, newReader(q), nil
		}
		err = errors.Join(err, q.Close())
	}
	return nil, nil, fmt.Errorf("port %d, interface %s: %w", p.Number, p.Name, err)
}

// newXDPPort opens an interface. Its frames still go to the kernel until take. beside is
// xdpProgram's.
func newXDPPort(p Named, ifi *net.Interface, beside bool) (*xdpPort, error) {
	q := &xdpPort{named: p, index: ifi.Index, longest: ifi.MTU + linkHeader + vlanTag, program: xdpProgram{beside: beside}}
	if err := q.open(ifi); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

func (q *xdpPort) open(ifi *net.Interface) (err error) {
	q.sockets.rx, q.sockets.tx = -1, -1
	if err := oneQueue(ifi); err != nil {
		return err
	}
	if err := q.program.attach(ifi); err != nil {
		return err
	}
	// A driver that can do so passes frames without a copy, but only if the program is
	// attached in the driver.
	flags := uint16(unix.XDP_COPY)
	if q.program.native {
		flags = 0
	}
	if err := q.sockets.open(ifi, flags); err != nil {
		return err
	}
	q.shareChunks()
	if q.promisc, err = boundSocket(ifi, true); err != nil {
		return err
	}
	q.in, err = newSocket(q.sockets.rx, "xdp:"+ifi.Name)
	q.sockets.rx = -1 // the file closes it
	return err
}

// take makes the interface's frames go to the port if on is set, and otherwise to the kernel.
func (q *xdpPort) take(on bool) error { return q.program.take(q.in.fd, on) }

// Gone reports whether the interface was deleted or moved to another network namespace.
func (q *xdpPort) Gone() bool { return q.promisc.gone(q.index) }

// Silence detaches the program. Frames then go to the kernel, and another program can be attached.
func (q *xdpPort) Silence() error { return q.program.close() }

// shareChunks gives the first xdpIn of the chunks to the kernel and the others to Send.
func (q *xdpPort) shareChunks() {
	s := &q.sockets
	for i := range xdpIn {
		s.fill.push(uint64(i * s.chunk))
	}
	q.free = make([]uint64, 0, xdpOut)
	for i := range xdpOut {
		q.free = append(q.free, uint64((xdpIn+i)*s.chunk))
	}
	s.fill.publish()
}

// Mode returns where frames leave the kernel: "native" or "native, zero-copy" in the interface's
// driver, or "generic" in front of the network stack.
func (q *xdpPort) Mode() string {
	switch {
	case q.sockets.zeroCopy:
		return "native, zero-copy"
	case q.program.native:
		return "native"
	}
	return "generic"
}

func (q *xdpPort) descriptors() []int { return []int{q.in.fd} }

// failed does nothing. The only possible error is that the interface is gone, which needs no
// action here.
func (q *xdpPort) failed() {}

// fill moves received frames into b and returns their chunks to the kernel. It reports whether
// there were any frames.
func (q *xdpPort) fill(b *Batch) bool {
	s := &q.sockets
	n := s.received.ready()
	if n == 0 {
		return false
	}
	for ; n > 0; n-- {
		d := s.received.at(s.received.next)
		if !b.Add(q.named.Number, s.umem[d.Addr:d.Addr+uint64(d.Len)]) {
			break // the frame stays in the ring for the next batch
		}
		finishChecksum(b.Frames[len(b.Frames)-1].Data, &q.counters) // AF_XDP does not say which checksums are partial
		s.fill.push(d.Addr &^ uint64(s.chunk-1))
		s.received.next++
	}
	s.received.done()
	s.fill.publish()
	if s.fill.needsWakeup() { // zero-copy drivers only
		_, _, _ = unix.Syscall6(unix.SYS_RECVFROM, uintptr(q.in.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	}
	return true
}

// Counters reads the kernel's counters. Frames too long for a chunk count as overruns.
func (q *xdpPort) Counters() Counters {
	_ = q.in.raw.Control(func(fd uintptr) {
		var st unix.XDPStatistics
		if xdpGetsockopt(int(fd), unix.XDP_STATISTICS, &st) == nil {
			q.rxOverruns.Store(st.Rx_dropped + st.Rx_ring_full)
		}
	})
	return q.counters.Counters()
}

// Up reports whether the interface is up and has a carrier. An XDP socket does not answer this
// question.
func (q *xdpPort) Up() bool { return q.promisc.running(q.index) }

// Close detaches the program first, so that no frame goes to a closed socket.
func (q *xdpPort) Close() error {
	err := q.program.close()
	for _, s := range []socket{q.in, q.promisc} {
		if s.File != nil {
			err = errors.Join(err, s.Close())
		}
	}
	return errors.Join(err, q.sockets.close())
}

func (q *xdpPort) Send(frame []byte) {
	if len(frame) < linkHeader || len(frame) > q.longest {
		q.txErrors.Add(1)
		return
	}
	if len(q.free) == 0 {
		q.reap()
	}
	if len(q.free) == 0 {
		_ = q.Flush()
		q.reap()
	}
	if len(q.free) == 0 { // the interface is slower than the switch
		q.txErrors.Add(1)
		return
	}
	s := &q.sockets
	addr := q.free[len(q.free)-1]
	q.free = q.free[:len(q.free)-1]
	copy(s.umem[addr:], frame)
	s.send.push(unix.XDPDesc{Addr: addr, Len: uint32(len(frame))})
	if s.send.unpublished() >= batchFrames {
		_ = q.Flush()
	}
}

// Flush sends the frames that Send kept. While the interface is down, the frames in the ring wait,
// and further frames are dropped and counted.
func (q *xdpPort) Flush() error {
	s := &q.sockets
	if q.detached {
		if q.kick(); q.detached {
			q.discard()
			return nil
		}
	}
	if s.send.unpublished() > 0 {
		s.send.publish()
	}
	if s.send.pending() > 0 {
		if !q.txWorker.Load().takes(q) {
			q.kick()
		}
		q.reap()
	}
	return nil
}

// kick makes the kernel send the frames in the ring. One system call may send only a part of them.
func (q *xdpPort) kick() {
	s := &q.sockets
	q.detached = false
	for left := s.send.pending(); left > 0 && s.send.needsWakeup(); {
		errno := q.submit()
		now := s.send.pending()
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.ENETDOWN || errno == unix.ENXIO:
			q.detached = true
			return
		case now == left:
			return // the kernel's buffers are full: the next Flush tries again
		case refused(errno):
			q.txErrors.Add(1)
		}
		left = now
	}
}

func (q *xdpPort) reap() {
	c := &q.sockets.completion
	n := c.ready()
	if n == 0 {
		return
	}
	for range n {
		q.free = append(q.free, c.pop())
	}
	c.done()
}

func (q *xdpPort) discard() {
	r := &q.sockets.send
	for range r.unpublished() {
		r.next--
		q.free = append(q.free, r.at(r.next).Addr)
		q.txErrors.Add(1)
	}
}
