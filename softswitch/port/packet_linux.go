package port

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socket is a socket of an interface. Its calls may come after Close.
type socket struct {
	*os.File
	fd  int // the file closes it
	raw syscall.RawConn
}

func newSocket(fd int, name string) (s socket, err error) {
	s = socket{File: os.NewFile(uintptr(fd), name), fd: fd}
	s.raw, err = s.SyscallConn()
	return s, err
}

// packetSocket opens a packet socket that receives nothing before it is bound to a protocol. Frames
// of other interfaces could reach it otherwise.
func packetSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("a packet socket needs root or CAP_NET_RAW: %w", err)
	}
	return fd, nil
}

// boundSocket opens a packet socket of an interface that receives nothing. It makes the interface
// accept frames for any address until it is closed, if promiscuous is set.
func boundSocket(ifi *net.Interface, promiscuous bool) (socket, error) {
	fd, err := packetSocket()
	if err != nil {
		return socket{}, err
	}
	if promiscuous {
		err = accept(fd, ifi.Index, unix.PACKET_ADD_MEMBERSHIP)
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: ifi.Index})
	}
	if err != nil {
		return socket{}, errors.Join(fmt.Errorf("binding a packet socket: %w", err), unix.Close(fd))
	}
	return newSocket(fd, "packet:"+ifi.Name)
}

// accept makes an interface accept frames for any address for a packet socket (option
// PACKET_ADD_MEMBERSHIP), or no longer (PACKET_DROP_MEMBERSHIP).
func accept(fd, index, option int) error {
	m := unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_PROMISC}
	if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, option, &m); err != nil {
		return fmt.Errorf("promiscuous mode: %w", err)
	}
	return nil
}

// running reports whether the interface of that index in the packet socket's network namespace is up
// and has a carrier (IFF_RUNNING).
func (s socket) running(index int) (up bool) {
	_ = s.raw.Control(func(fd uintptr) {
		ask, err := unix.NewIfreq("")
		if err != nil {
			return
		}
		ask.SetUint32(uint32(index))
		if unix.IoctlIfreq(int(fd), unix.SIOCGIFNAME, ask) == nil && unix.IoctlIfreq(int(fd), unix.SIOCGIFFLAGS, ask) == nil {
			const want = unix.IFF_UP | unix.IFF_RUNNING
			up = ask.Uint16()&want == want
		}
	})
	return up
}

// gone reports whether the kernel has unbound the packet socket from its interface. It does so when
// the interface is deleted or leaves the network namespace.
func (s socket) gone(index int) (gone bool) {
	_ = s.raw.Control(func(fd uintptr) {
		address, err := unix.Getsockname(int(fd))
		if ll, ok := address.(*unix.SockaddrLinklayer); err == nil && ok {
			gone = ll.Ifindex != index
		}
	})
	return gone
}

// setBuffer sets the size of a socket's buffer by option force. If that fails it uses option, which
// net.core.wmem_max or rmem_max bounds.
func setBuffer(fd, force, option, bytes int) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, bytes) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, bytes)
	}
}

// packetPort is a network interface driven by AF_PACKET. It is promiscuous and skips the frames
// that this machine itself sends out of the interface. Its reader goroutine owns the receive ring.
// The switch's lock guards the transmit batch.
type packetPort struct {
	counters
	socket // receives
	named  Named
	index  int
	ring   rxRing

	out socket // sends; it receives nothing
	tx  txBatch
}

// OpenInterface opens a network interface as a switch port. The interface may be down, or
// go down and up again. It needs CAP_NET_RAW.
func OpenInterface(p Named) (Port, Source, error) {
	ifi, err := p.find()
	if err != nil {
		return nil, nil, err
	}
	q := &packetPort{named: p, index: ifi.Index}
	if err := q.open(ifi); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("port %d, interface %s: %w", p.Number, p.Name, err), q.Close())
	}
	return q, newReader(q), nil
}

func (p Named) find() (*net.Interface, error) {
	ifi, err := net.InterfaceByName(p.Name)
	if err == nil {
		return ifi, nil
	}
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(all))
	for i, ifi := range all {
		names[i] = ifi.Name
	}
	return nil, fmt.Errorf("port %d: no network interface %q: want one of %s", p.Number, p.Name, strings.Join(names, ", "))
}

// sendBuffer bounds the bytes that wait in the kernel to be sent. It is so large that the limit of
// a queueing discipline (Mininet's rate limits) takes effect first.
const sendBuffer = 4 << 20

// open opens the sockets. After an error Close releases what it has opened.
func (q *packetPort) open(ifi *net.Interface) error {
	fd, err := packetSocket()
	if err != nil {
		return err
	}
	if q.socket, err = newSocket(fd, "packet:"+ifi.Name); err != nil {
		return err
	}
	// PACKET_IGNORE_OUTGOING exists since Linux 4.20. On older kernels receive skips outgoing
	// frames.
	_ = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
	if err := q.ring.open(fd, ifi.MTU); err != nil {
		return err
	}
	if err := accept(fd, ifi.Index, unix.PACKET_ADD_MEMBERSHIP); err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: ifi.Index}); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	q.tx.init(ifi.MTU)
	if q.out, err = boundSocket(ifi, false); err != nil {
		return err
	}
	setBuffer(q.out.fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, sendBuffer)
	if err := unix.SetsockoptInt(q.out.fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		return fmt.Errorf("sending merged frames (PACKET_VNET_HDR): %w", err)
	}
	return nil
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }

func (q *packetPort) descriptors() []int { return []int{q.fd} }

// fill moves frames from the ring to b and reports whether there were any.
func (q *packetPort) fill(b *Batch) bool {
	n := len(b.Frames)
	for q.ring.receive(b, q.named.Number, &q.counters) {
	}
	return len(b.Frames) > n
}

func (q *packetPort) failed() {
	_ = q.raw.Control(func(fd uintptr) {
		_, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
	})
}

// Counters first adds the frames that the kernel dropped since the last call.
func (q *packetPort) Counters() Counters {
	_ = q.raw.Control(func(fd uintptr) {
		if st, err := unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
			q.rxOverruns.Add(uint64(st.Drops)) // reading resets the kernel's counter
		}
	})
	return q.counters.Counters()
}

// Up reports whether the interface is up and has a carrier.
func (q *packetPort) Up() bool { return q.running(q.index) }

// Gone reports whether the interface was deleted or moved to another network namespace.
func (q *packetPort) Gone() bool { return q.gone(q.index) }

// Silence makes the socket receive nothing more.
func (q *packetPort) Silence() error {
	var err error
	control := q.raw.Control(func(fd uintptr) {
		_ = accept(int(fd), q.index, unix.PACKET_DROP_MEMBERSHIP) // fails if the interface vanished
		err = unix.Bind(int(fd), &unix.SockaddrLinklayer{Protocol: 0})
	})
	return errors.Join(control, err)
}

func (q *packetPort) Send(frame []byte) {
	if !q.tx.add(frame) {
		_ = q.Flush()
		q.tx.add(frame)
	}
}

// Flush sends the frames that Send kept. It drops and counts frames that the interface refuses.
func (q *packetPort) Flush() error {
	if len(q.tx.frames) == 0 {
		return nil
	}
	return q.out.raw.Control(func(fd uintptr) {
		q.txErrors.Add(uint64(q.tx.flush(int(fd))))
	})
}

func (q *packetPort) Close() error {
	var errs error
	for _, s := range []socket{q.socket, q.out} {
		if s.File != nil {
			errs = errors.Join(errs, s.Close())
		}
	}
	return errors.Join(errs, q.ring.close())
}

// txBatch gathers frames that are sent by one system call (sendmmsg(2)). A virtio_net header stands
// in front of each.
type txBatch struct {
	frames []mmsghdr
	vecs   []unix.Iovec
	parts  []int // number of frames that were joined to each frame, plus itself
	slab   []byte
	start  int // start of the last frame's bytes in the slab
	last   joined
	mtu    int // MTU of the interface when it was opened; longer segments are not joined
}

// mmsghdr is struct mmsghdr of <sys/socket.h>.
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
	_   [(unsafe.Sizeof(uintptr(0)) - 4)]byte
}

func (t *txBatch) init(mtu int) {
	t.mtu = mtu
	t.frames = make([]mmsghdr, 0, batchFrames)
	t.vecs = make([]unix.Iovec, batchFrames)
	t.parts = make([]int, batchFrames)
	t.slab = make([]byte, 0, 2*batchBytes)
}

// add copies a frame into the batch. It returns false if the batch is full. A frame that is larger
// than an empty batch is cut.
func (t *txBatch) add(frame []byte) bool {
	n := len(t.frames)
	switch {
	case len(frame) == 0:
		return true
	case n > 0 && len(t.slab)+vnetHeader+len(frame) > cap(t.slab):
		return false
	case t.last.add(t.slab[t.start:], frame):
		t.slab = append(t.slab, frame[t.last.data:]...)
		t.vecs[n-1].SetLen(vnetHeader + len(t.slab) - t.start)
		t.parts[n-1]++
		return true
	case n == cap(t.frames):
		return false
	}
	t.finish()
	t.slab = append(t.slab, make([]byte, vnetHeader)...)
	t.start = len(t.slab)
	t.slab = append(t.slab, frame[:min(len(frame), cap(t.slab)-t.start)]...)
	if longSegments.Load() && len(frame) <= linkHeader+t.mtu {
		t.last = first(frame)
	}
	t.parts[n] = 1
	v := &t.vecs[n]
	v.Base = &t.slab[t.start-vnetHeader]
	v.SetLen(vnetHeader + len(t.slab) - t.start)
	m := mmsghdr{}
	m.hdr.Iov = v
	m.hdr.SetIovlen(1)
	t.frames = append(t.frames, m)
	return true
}

// finish completes the last frame.
func (t *txBatch) finish() {
	t.last.finish(t.slab[max(0, t.start-vnetHeader):], t.slab[t.start:])
	t.last = joined{}
}

// flush sends the batch and returns how many frames the kernel refused.
func (t *txBatch) flush(fd int) (refused int) {
	t.finish()
	left := t.frames
	for len(left) > 0 {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&left[0])), uintptr(len(left)), unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == unix.EINTR:
		case errno != 0:
			// The kernel refused the first remaining frame: too long, buffers full, or interface
			// down.
			refused += t.parts[len(t.frames)-len(left)]
			left = left[1:]
		default:
			left = left[n:]
		}
	}
	t.frames, t.slab, t.start = t.frames[:0], t.slab[:0], 0
	return refused
}
