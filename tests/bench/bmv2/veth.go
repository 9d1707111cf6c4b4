package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// loopback takes the namespace's loopback interface up, for P4Runtime.
func loopback() error {
	// Without IPv6 the kernel sends nothing of its own accord.
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

// cables makes a veth pair per port, s1 and h1 and so on, and returns what removes them.
func cables() (func(), error) {
	remove := func() {
		for port := 1; port <= ports; port++ {
			if l, err := netlink.LinkByName(fmt.Sprintf("s%d", port)); err == nil {
				_ = netlink.LinkDel(l)
			}
		}
	}
	for port := 1; port <= ports; port++ {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = fmt.Sprintf("s%d", port)
		host := fmt.Sprintf("h%d", port)
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: host}); err != nil {
			return remove, fmt.Errorf("interface %s: %w", attrs.Name, err)
		}
		for _, name := range []string{attrs.Name, host} {
			l, err := netlink.LinkByName(name)
			if err == nil {
				err = netlink.LinkSetUp(l)
			}
			if err != nil {
				return remove, fmt.Errorf("interface %s: %w", name, err)
			}
		}
	}
	return remove, nil
}

// received is how many frames have reached the hosts' ends.
func received() (n uint64) {
	for port := 1; port <= ports; port++ {
		if l, err := netlink.LinkByName(fmt.Sprintf("h%d", port)); err == nil {
			n += l.Attrs().Statistics.RxPackets
		}
	}
	return n
}

func (o *options) startVeth(k kind, p *program) (t *target, clean func(), err error) {
	dir, err := os.MkdirTemp(os.Getenv(inside), "veth-")
	if err != nil {
		return nil, nil, err
	}
	remove, err := cables()
	var flags []string
	for port := 1; port <= ports; port++ {
		flags = append(flags, "-i", fmt.Sprintf("%d@s%d", port, port))
	}
	if k == ours {
		flags = append(flags, "--port-driver", o.driver)
	}
	if err == nil {
		t, err = o.start(k, p, dir, flags...)
	}
	clean = func() {
		if t != nil {
			t.stop()
		}
		remove()
		os.RemoveAll(dir)
	}
	if err != nil {
		clean()
		return nil, nil, err
	}
	time.Sleep(200 * time.Millisecond)
	return t, clean, nil
}

// lossLimit is the loss up to which a rate counts as forwarded.
const lossLimit = 0.001

// veth searches for the highest rate that the switch forwards between veth pairs without
// loss, sent on all ports in turns, and what it forwards when everything is sent at once.
func (o *options) veth(k kind, p *program) (sample, error) {
	t, clean, err := o.startVeth(k, p)
	if err != nil {
		return nil, err
	}
	defer clean()
	tx, err := newSender(p, o.size)
	if err != nil {
		return nil, err
	}
	defer tx.close()
	if _, err := o.offer(t, tx, 10000, o.seconds/4); err != nil { // warm up
		return nil, err
	}
	if o.rate > 0 {
		r, err := o.offer(t, tx, o.rate, o.seconds)
		return sample{
			{"packets/s", r.out, 1},
			{"packets lost of 1000", 1000 * r.loss(), 0},
			{"CPU ns per packet", r.cpu, -1},
		}, err
	}
	flood, err := o.offer(t, tx, 1e9, o.seconds)
	if err != nil {
		return nil, err
	}
	// Without loss: between half of what the flood gave and a little more than it.
	lo, hi := flood.out/16, flood.out*1.5
	best := trial{}
	for range 6 {
		rate := (lo + hi) / 2
		r, err := o.offer(t, tx, rate, o.seconds/2)
		if err != nil {
			return nil, err
		}
		if r.loss() <= lossLimit {
			best, lo = r, rate
		} else {
			hi = rate
		}
	}
	return sample{
		{"packets/s without loss", best.out, 1},
		{"packets/s under flood", flood.out, 1},
		{"packets/s offered by flood", flood.in, 0},
		{"packets lost of 1000 under flood", 1000 * flood.loss(), 0},
		{"CPU ns per packet without loss", best.cpu, -1},
	}, nil
}

type trial struct {
	in, out float64 // packets/s
	cpu     float64 // ns per packet forwarded
}

func (t trial) loss() float64 { return max(0, 1-t.out/t.in) }

// offer sends at a rate for some seconds and counts what comes out.
func (o *options) offer(t *target, tx *sender, rate, seconds float64) (trial, error) {
	before := received()
	u0, s0 := t.cpu()
	begin := time.Now()
	sent := 0
	for {
		elapsed := time.Since(begin).Seconds()
		if elapsed >= seconds {
			break
		}
		if float64(sent) > rate*elapsed {
			time.Sleep(50 * time.Microsecond)
			continue
		}
		n, err := tx.burst()
		if err != nil {
			return trial{}, err
		}
		sent += n
	}
	took := time.Since(begin).Seconds()
	// What still comes a little later counts, but does not lengthen the time by much.
	last, still := received(), 0
	for still < 3 {
		time.Sleep(20 * time.Millisecond)
		if n := received(); n != last {
			last, still = n, 0
		} else {
			still++
		}
	}
	u1, s1 := t.cpu()
	got := float64(last - before)
	return trial{float64(sent) / took, got / took, float64(u1+s1-u0-s0) / max(1, got)}, nil
}

// burstSize is how many frames go into one system call.
const burstSize = 32

// sender sends bursts of prepared frames on the hosts' ends, one port after another.
type sender struct {
	fds  []int
	msgs [][]mmsghdr
	port int
	at   []int
}

// mmsghdr is struct mmsghdr of <sys/socket.h>.
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
	_   uint32
}

func newSender(p *program, size int) (*sender, error) {
	s := &sender{at: make([]int, ports)}
	for port := 1; port <= ports; port++ {
		fd, err := packetSocket(fmt.Sprintf("h%d", port), 0)
		if err != nil {
			s.close()
			return nil, err
		}
		s.fds = append(s.fds, fd)
		_ = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1)
		r := rand.New(rand.NewPCG(2, uint64(port)))
		msgs := make([]mmsghdr, 1024)
		for i := range msgs {
			f := p.frame(r, port, size)
			v := &unix.Iovec{Base: &f[0]}
			v.SetLen(len(f))
			msgs[i].hdr.Iov = v
			msgs[i].hdr.SetIovlen(1)
		}
		s.msgs = append(s.msgs, msgs)
	}
	return s, nil
}

func (s *sender) close() {
	for _, fd := range s.fds {
		unix.Close(fd)
	}
}

func (s *sender) burst() (int, error) {
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
		return 0, fmt.Errorf("sending on h%d: %w", i+1, errno)
	}
	s.at[i] = (s.at[i] + burstSize) % len(s.msgs[i])
	return int(n), nil
}

// packetSocket is an AF_PACKET socket on an interface; protocol 0 receives nothing.
func packetSocket(name string, protocol uint16) (int, error) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return -1, err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	big := protocol<<8 | protocol>>8
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: big, Ifindex: l.Attrs().Index}); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}
