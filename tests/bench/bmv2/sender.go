package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sender sends prepared frames on the hosts' ends, as many on one port as on another.
type sender interface {
	// burst sends a few frames and returns how many it means to have sent: 0 when the
	// interface takes none now.
	burst() (int, error)
	// sent is how many frames were given to the hosts' ends so far.
	sent() (uint64, error)
	close() error
}

// newSender makes the sender of a name, on cables that exist.
func newSender(name string, p *program, size int) (sender, error) {
	switch name {
	case "xdp":
		return newMultiplier(p, size)
	case "packet":
		return newPacketSender(p, size)
	}
	return nil, fmt.Errorf("sender %q: want xdp or packet", name)
}

// preparedFrames is how many different frames there are for a port; a power of two.
const preparedFrames = 1024

// prepare makes the frames of a port, always the same ones.
func prepare(p *program, port, size int) [][]byte {
	r := rand.New(rand.NewPCG(2, uint64(port)))
	all := make([][]byte, preparedFrames)
	for i := range all {
		all[i] = p.frame(r, port, size)
	}
	return all
}

// burstSize is how many frames go into one system call.
const burstSize = 32

// packetSender sends bursts by AF_PACKET, one port after another.
type packetSender struct {
	fds  []int
	msgs [][]mmsghdr
	port int
	at   []int
	n    uint64
}

// mmsghdr is struct mmsghdr of <sys/socket.h>.
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
	_   uint32
}

func newPacketSender(p *program, size int) (*packetSender, error) {
	s := &packetSender{at: make([]int, ports)}
	for port := 1; port <= ports; port++ {
		fd, err := packetSocket(hostEnd(port), 0)
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.fds = append(s.fds, fd)
		_ = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1)
		msgs := make([]mmsghdr, preparedFrames)
		for i, f := range prepare(p, port, size) {
			v := &unix.Iovec{Base: &f[0]}
			v.SetLen(len(f))
			msgs[i].hdr.Iov = v
			msgs[i].hdr.SetIovlen(1)
		}
		s.msgs = append(s.msgs, msgs)
	}
	return s, nil
}

func (s *packetSender) close() (err error) {
	for _, fd := range s.fds {
		err = errors.Join(err, unix.Close(fd))
	}
	return err
}

func (s *packetSender) sent() (uint64, error) { return s.n, nil }

func (s *packetSender) burst() (int, error) {
	i := s.port
	s.port = (i + 1) % ports
	m := s.msgs[i][s.at[i]:]
	n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(s.fds[i]), uintptr(unsafe.Pointer(&m[0])), burstSize, unix.MSG_DONTWAIT, 0, 0)
	switch errno {
	case 0:
	case unix.ENOBUFS, unix.EAGAIN, unix.EINTR:
		runtime.Gosched()
		return 0, nil
	default:
		return 0, fmt.Errorf("sending on %s: %w", hostEnd(i+1), errno)
	}
	s.at[i] = (s.at[i] + burstSize) % len(s.msgs[i])
	s.n += uint64(n)
	return int(n), nil
}

// packetSocket is an AF_PACKET socket on an interface; protocol 0 receives nothing.
func packetSocket(name string, protocol uint16) (int, error) {
	ifindex, err := index(name)
	if err != nil {
		return -1, err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	big := protocol<<8 | protocol>>8
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: big, Ifindex: ifindex}); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}
