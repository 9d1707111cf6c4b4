package standalone

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/headgate/headgate/internal/veth"
)

// ordinaryHost is a network namespace with one interface and the offloads that the kernel gives it.
// Functions run on its thread, where they make sockets.
type ordinaryHost chan func()

// newOrdinaryHost moves the interface into a namespace of its own. It knows the other
// host's MAC address. testdata/wire.json joins ports 1 and 2.
func newOrdinaryHost(t *testing.T, name string, number byte) ordinaryHost {
	t.Helper()
	link, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	h, ready := make(ordinaryHost), make(chan int)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its namespace
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Error(err)
		}
		ready <- unix.Gettid()
		for f := range h {
			f()
		}
	}()
	t.Cleanup(func() { close(h) })
	ns, err := os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", <-ready))
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if err := netlink.LinkSetNsFd(link, int(ns.Fd())); err != nil {
		t.Fatal(err)
	}
	h.do(func() {
		mac := func(n byte) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0, 0, n} }
		link, err := netlink.LinkByName(name)
		if err != nil {
			t.Error(err)
			return
		}
		for _, err := range []error{
			netlink.LinkSetHardwareAddr(link, mac(number)),
			netlink.LinkSetUp(link),
			netlink.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: address(number), Mask: net.CIDRMask(24, 32)}}),
			netlink.NeighSet(&netlink.Neigh{LinkIndex: link.Attrs().Index, State: netlink.NUD_PERMANENT, IP: address(3 - number), HardwareAddr: mac(3 - number)}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return h
}

func (h ordinaryHost) do(f func()) {
	done := make(chan struct{})
	h <- func() { defer close(done); f() }
	<-done
}

func address(n byte) net.IP { return net.IPv4(10, 9, 0, n) }

// TestOrdinaryHosts: TCP and UDP of hosts with the kernel's default offloads, which leave checksums and
// segmentation to the interface, pass the switch by either driver.
func TestOrdinaryHosts(t *testing.T) {
	for _, driver := range []string{"afpacket", "xdp", "auto"} {
		t.Run(driver, func(t *testing.T) {
			pairs := veth.New(t, 2)
			log := &output{}
			startLogged(t, slog.New(slog.NewTextHandler(log, nil)), "--port-driver", driver, "-i", "1@"+pairs[0].Switch, "-i", "2@"+pairs[1].Switch, "testdata/wire.json", "--", "--grpc-server-addr", "127.0.0.1:0")
			a, b := newOrdinaryHost(t, pairs[0].Host, 1), newOrdinaryHost(t, pairs[1].Host, 2)

			sent := make([]byte, 20<<20)
			for i := 0; i < len(sent); i += 8 {
				copy(sent[i:], fmt.Appendf(nil, "%08x", rand.Uint32()))
			}
			var lis net.Listener
			var conn net.Conn
			var err error
			b.do(func() { lis, err = net.Listen("tcp4", "10.9.0.2:5000") })
			if err != nil {
				t.Fatal(err)
			}
			defer lis.Close()
			received := make(chan []byte, 1)
			go func() {
				c, err := lis.Accept()
				if err != nil {
					received <- nil
					return
				}
				defer c.Close()
				all, _ := io.ReadAll(c)
				received <- all
			}()
			start := time.Now()
			a.do(func() { conn, err = net.DialTimeout("tcp4", "10.9.0.2:5000", 20*time.Second) })
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			if _, err := conn.Write(sent); err != nil {
				t.Fatal(err)
			}
			_ = conn.(*net.TCPConn).CloseWrite()
			if got := <-received; !bytes.Equal(got, sent) {
				t.Fatalf("TCP: %d bytes came, want the %d sent", len(got), len(sent))
			}
			t.Logf("TCP: %.2f Gb/s", float64(len(sent))*8/time.Since(start).Seconds()/1e9)

			datagram(t, a, b, 100)
			for _, c := range []struct{ total, segment int }{{20_000, 1400}, {20_100, 500}, {300, 100}} {
				merged(t, a, b, c.total, c.segment)
			}
			if driver == "afpacket" { // an interface with an XDP program takes no such MTU
				for _, p := range pairs {
					raiseMTU(t, p.Switch)
				}
				a.do(func() { raiseMTU(t, pairs[0].Host) })
				b.do(func() { raiseMTU(t, pairs[1].Host) })
				datagram(t, a, b, 8000)
			}
			for _, p := range []string{"port=1", "port=2"} {
				if n := strings.Count(log.String(), `the switch completes them; said once a port" `+p); n != 1 {
					t.Errorf("%s: the log says %d times that the switch completes checksums, want once:\n%s", p, n, log)
				}
			}
		})
	}
}

// merged sends UDP datagrams of segment bytes from a to b as one (UDP_SEGMENT), so many bytes in total. The sender's
// interface would have divided them.
func merged(t *testing.T, a, b ordinaryHost, total, segment int) {
	t.Helper()
	var from, to net.PacketConn
	var err error
	b.do(func() { to, err = net.ListenPacket("udp4", "10.9.0.2:5002") })
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	a.do(func() { from, err = net.ListenPacket("udp4", "10.9.0.1:5002") })
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	raw, err := from.(*net.UDPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if control := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT, segment) }); control != nil || err != nil {
		t.Fatal(control, err)
	}
	sent := make([]byte, total)
	for i := range sent {
		sent[i] = byte(i / segment)
	}
	if _, err := from.WriteTo(sent, &net.UDPAddr{IP: address(2), Port: 5002}); err != nil {
		t.Fatal(err)
	}
	_ = to.SetDeadline(time.Now().Add(20 * time.Second))
	for got := make([]byte, 65_536); len(sent) > 0; {
		want := sent[:min(segment, len(sent))]
		if n, _, err := to.ReadFrom(got); err != nil || !bytes.Equal(got[:n], want) {
			t.Fatalf("datagrams of %d bytes: %d bytes came, %v; want %d", segment, n, err, len(want))
		}
		sent = sent[len(want):]
	}
}

func raiseMTU(t *testing.T, name string) {
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkSetMTU(link, 9000)
	}
	if err != nil {
		t.Error(err)
	}
}

// datagram sends one of so many bytes from a to b.
func datagram(t *testing.T, a, b ordinaryHost, size int) {
	t.Helper()
	var from, to net.PacketConn
	var err error
	b.do(func() { to, err = net.ListenPacket("udp4", "10.9.0.2:5001") })
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	a.do(func() { from, err = net.ListenPacket("udp4", "10.9.0.1:5001") })
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	_ = to.SetDeadline(time.Now().Add(20 * time.Second))
	sent, got := bytes.Repeat([]byte("headgate"), size/8), make([]byte, 10_000)
	if _, err := from.WriteTo(sent, &net.UDPAddr{IP: address(2), Port: 5001}); err != nil {
		t.Fatal(err)
	}
	if n, _, err := to.ReadFrom(got); err != nil || !bytes.Equal(got[:n], sent) {
		t.Errorf("UDP: %d bytes, %v; want %d", n, err, len(sent))
	}
}
