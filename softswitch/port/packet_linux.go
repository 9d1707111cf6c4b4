package port

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// packetPort is a network interface driven by AF_PACKET. It is promiscuous and skips the frames
// that this machine itself sends out of the interface. Its reader goroutine owns the receive ring.
// The switch's lock guards the transmit batch.
type packetPort struct {
	counters
	named Named
	index int
	fd    int      // the socket; the file closes it
	file  *os.File // the same socket, for calls that may come after Close
	raw   syscall.RawConn
	ring  rxRing

	out *os.File // the sending socket; the receiving one would need a virtio_net header in front of each frame sent
	to  syscall.RawConn
	tx  txBatch
}

// OpenInterface opens a network interface as a switch port. The interface may be down, or
// go down and up again. It needs CAP_NET_RAW.
func OpenInterface(p Named) (Port, Source, error) {
	ifi, err := net.InterfaceByName(p.Name)
	if err != nil {
		return nil, nil, fmt.Errorf("port %d: no network interface %q: want one of %s", p.Number, p.Name, interfaceNames())
	}
	// With protocol 0 the socket receives nothing until bind. Otherwise it would receive
	// frames of other interfaces.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("port %d, interface %s: a packet socket needs root or CAP_NET_RAW: %w", p.Number, p.Name, err)
	}
	q := &packetPort{named: p, index: ifi.Index}
	if err := q.open(fd, ifi); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("port %d, interface %s: %w", p.Number, p.Name, err), q.ring.close(), unix.Close(fd))
	}
	if err := q.openSender(ifi); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("port %d, interface %s: %w", p.Number, p.Name, err), q.Close())
	}
	return q, newReader(q), nil
}

func interfaceNames() string {
	all, err := net.Interfaces()
	if err != nil {
		return err.Error()
	}
	names := make([]string, len(all))
	for i, ifi := range all {
		names[i] = ifi.Name
	}
	return strings.Join(names, ", ")
}

// sendBuffer bounds the bytes that wait in the kernel to be sent. It is so large that the limit of
// a queueing discipline (Mininet's rate limits) takes effect first.
const sendBuffer = 4 << 20

func (q *packetPort) open(fd int, ifi *net.Interface) error {
	// PACKET_IGNORE_OUTGOING exists since Linux 4.20. On older kernels receive skips outgoing
	// frames.
	_ = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
	if err := q.ring.open(fd, ifi.MTU); err != nil {
		return err
	}
	promiscuous := unix.PacketMreq{Ifindex: int32(ifi.Index), Type: unix.PACKET_MR_PROMISC}
	if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &promiscuous); err != nil {
		return fmt.Errorf("promiscuous mode: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: ifi.Index}); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	q.fd = fd
	q.file = os.NewFile(uintptr(fd), "packet:"+ifi.Name)
	var err error
	q.raw, err = q.file.SyscallConn()
	return err
}

// openSender opens the socket that sends. It receives nothing.
func (q *packetPort) openSender(ifi *net.Interface) error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("packet socket to send: %w", err)
	}
	q.tx.init()
	q.out = os.NewFile(uintptr(fd), "packet:"+ifi.Name)
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, sendBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, sendBuffer) // bounded by net.core.wmem_max
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: ifi.Index}); err != nil {
		return fmt.Errorf("bind to send: %w", err)
	}
	q.to, err = q.out.SyscallConn()
	return err
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }

// descriptors implements input.
func (q *packetPort) descriptors() []int { return []int{q.fd} }

// fill moves frames from the ring to b and reports whether there were any.
func (q *packetPort) fill(b *Batch) bool {
	n := len(b.Frames)
	for q.ring.receive(b, q.named.Number, &q.counters) {
	}
	return len(b.Frames) > n
}

// failed clears the socket's error.
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

// Up reports whether the interface is up and has a carrier (IFF_RUNNING).
func (q *packetPort) Up() bool { return running(q.raw, q.index) }

// Gone reports whether the interface was deleted or moved to another network namespace.
func (q *packetPort) Gone() bool { return unbound(q.raw, q.index) }

// unbound reports whether the kernel has unbound a packet socket. It does so when the socket's
// interface leaves the network namespace.
func unbound(socket syscall.RawConn, index int) (gone bool) {
	_ = socket.Control(func(fd uintptr) {
		address, err := unix.Getsockname(int(fd))
		if ll, ok := address.(*unix.SockaddrLinklayer); err == nil && ok {
			gone = ll.Ifindex != index
		}
	})
	return gone
}

// Silence makes the socket receive nothing more.
func (q *packetPort) Silence() error {
	var err error
	control := q.raw.Control(func(fd uintptr) {
		m := unix.PacketMreq{Ifindex: int32(q.index), Type: unix.PACKET_MR_PROMISC}
		_ = unix.SetsockoptPacketMreq(int(fd), unix.SOL_PACKET, unix.PACKET_DROP_MEMBERSHIP, &m) // fails if the interface vanished
		err = unix.Bind(int(fd), &unix.SockaddrLinklayer{Protocol: 0})
	})
	return errors.Join(control, err)
}

// running reports whether an interface is up and has a carrier, as a packet socket tells. The
// answer is about the interface of that index in the socket's network namespace.
func running(socket syscall.RawConn, index int) (up bool) {
	_ = socket.Control(func(fd uintptr) {
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
	err := q.to.Control(func(fd uintptr) {
		q.txErrors.Add(uint64(q.tx.flush(int(fd))))
	})
	return err
}

func (q *packetPort) Close() error {
	err := q.file.Close()
	if q.out != nil {
		err = errors.Join(err, q.out.Close())
	}
	return errors.Join(err, q.ring.close())
}

var _ Port = (*packetPort)(nil)
var _ input = (*packetPort)(nil)
