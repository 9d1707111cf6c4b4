package bmv2

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sender sends prepared frames on the hosts' ends until its test ends, the same number on each port.
type sender interface {
	// burst sends a few frames and returns how many it tried to send: 0 if the interface takes none now.
	burst() (int, error)
	// sent returns the number of frames given to the hosts' ends so far.
	sent(t *testing.T) uint64
}

// newSender makes the sender with a name, xdp or packet, between existing veth pairs.
func newSender(t *testing.T, name string, p *program, size int) sender {
	t.Helper()
	if name == "xdp" {
		return newMultiplier(t, p, size)
	}
	return newPacketSender(t, p, size)
}

// preparedFrames is the number of different frames of a port; a power of two.
const preparedFrames = 1024

// prepare makes a port's frames, always the same ones.
func prepare(p *program, port, size int) [][]byte {
	r := rand.New(rand.NewPCG(2, uint64(port)))
	all := make([][]byte, preparedFrames)
	for i := range all {
		all[i] = p.frame(r, port, size)
	}
	return all
}

const (
	// shortestSleep is the minimum time that a sender sleeps when it is ahead: waking up costs processor time
	// that the switch could use.
	shortestSleep = 200 * time.Microsecond
	// longestDelay is the longest delay for which a sender catches up. If it caught up with more, it would flood
	// the switch after a pause of the machine.
	longestDelay = time.Millisecond
)

// pace sends at a rate, in frames per second, for some time and returns the time taken. Frames that are late by
// more than longestDelay are not sent.
func pace(tx sender, rate float64, d time.Duration) (time.Duration, error) {
	// The thread sleeps in the kernel: Go's timers are late by up to a millisecond.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const slack = 1 // ns; by default the kernel may wake a thread 50 µs late
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, slack, 0, 0, 0)
	begin := time.Now()
	due := time.Duration(0) // time of the next frames
	for {
		now := time.Since(begin)
		switch {
		case now >= d:
			return now, nil
		case due > now:
			ts := unix.NsecToTimespec(int64(max(due-now, shortestSleep)))
			_ = unix.Nanosleep(&ts, nil)
			continue
		}
		n, err := tx.burst()
		if err != nil {
			return now, err
		}
		due = max(due, now-longestDelay) + time.Duration(float64(n)/rate*1e9)
	}
}

// burstSize is the number of frames in one system call.
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

func newPacketSender(t *testing.T, p *program, size int) *packetSender {
	s := &packetSender{at: make([]int, ports)}
	for port := 1; port <= ports; port++ {
		fd := packetSocket(t, hostEnd(port), 0)
		_ = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1)
		msgs := make([]mmsghdr, preparedFrames)
		for i, f := range prepare(p, port, size) {
			v := &unix.Iovec{Base: &f[0]}
			v.SetLen(len(f))
			msgs[i].hdr.Iov = v
			msgs[i].hdr.SetIovlen(1)
		}
		s.fds, s.msgs = append(s.fds, fd), append(s.msgs, msgs)
	}
	return s
}

func (s *packetSender) sent(*testing.T) uint64 { return s.n }

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

// packetSocket returns an AF_PACKET socket on an interface; with protocol 0 it receives nothing.
func packetSocket(t *testing.T, name string, protocol uint16) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	must(t, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol<<8 | protocol>>8, Ifindex: index(t, name)}))
	return fd
}

func index(t *testing.T, name string) int {
	t.Helper()
	i, err := net.InterfaceByName(name)
	if err != nil {
		t.Fatalf("interface %s: %v", name, err)
	}
	return i.Index
}
