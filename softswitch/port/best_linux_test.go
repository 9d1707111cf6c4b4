package port_test

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/headgate/headgate/internal/veth"
	"github.com/headgate/headgate/softswitch/port"
)

// receiveBest is open by OpenBest, on a machine that has AF_XDP.
func receiveBest(t *testing.T, name string) (*receiver, *port.IfaceUsers) {
	t.Helper()
	driver, _ := openXDP(t, name) // skips where there is no AF_XDP
	if err := driver.Close(); err != nil {
		t.Fatal(err)
	}
	users, err := port.OpenIfaceUsers()
	if err != nil {
		t.Fatal(err)
	}
	p, src, err := port.OpenBest(port.Named{Number: 5, Name: name}, users)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := users.Close(); err != nil {
			t.Error(err)
		}
	})
	return receive(t, name, p, src), users
}

// user is something that uses an interface besides the port.
type user struct {
	name       string
	why        string // begin of the reason
	begin, end func() error
}

func usersOf(t *testing.T, name, other string) []user {
	l, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	far, err := netlink.LinkByName(other)
	if err != nil {
		t.Fatal(err)
	}
	farAbove := &netlink.Macvlan{LinkAttrs: netlink.LinkAttrs{Name: "m8", ParentIndex: far.Attrs().Index}, Mode: netlink.MACVLAN_MODE_PRIVATE}
	address := &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 9, 8, 7), Mask: net.CIDRMask(24, 32)}}
	discipline := &netlink.Tbf{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}, Rate: 1 << 30, Limit: 1 << 20, Buffer: 1 << 20}
	above := &netlink.Macvlan{LinkAttrs: netlink.LinkAttrs{Name: "m7", ParentIndex: l.Attrs().Index}, Mode: netlink.MACVLAN_MODE_PRIVATE}
	listen := func(index int) (begin, end func() error) {
		fd := -1
		begin = func() (err error) {
			if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
				return err
			}
			return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: 0x0300, Ifindex: index})
		}
		return begin, func() error { return unix.Close(fd) }
	}
	beginHere, endHere := listen(l.Attrs().Index)
	beginAll, endAll := listen(0)
	return []user{
		{"address", "it has the address 10.9.8.7/24", func() error { return netlink.AddrAdd(l, address) }, func() error { return netlink.AddrDel(l, address) }},
		{"queueing discipline", "it has the queueing discipline tbf", func() error { return netlink.QdiscAdd(discipline) }, func() error { return netlink.QdiscDel(discipline) }},
		{"interface above", "the interface m7 is on it", func() error { return netlink.LinkAdd(above) }, func() error { return netlink.LinkDel(above) }},
		{"interface above the other end", "at the other end: the interface m8 is on it", func() error { return netlink.LinkAdd(farAbove) }, func() error { return netlink.LinkDel(farAbove) }},
		{"capture", "a packet socket listens (inode ", beginHere, endHere},
		{"capture of all interfaces", "a packet socket listens (inode ", beginAll, endAll},
	}
}

// TestBest: a port leaves its interface to any other user at once, and takes it back afterwards.
// No frame is lost or arrives twice meanwhile.
func TestBest(t *testing.T) {
	p := veth.New(t, 1)[0]
	sw, users := receiveBest(t, p.Switch)
	host := open(t, p.Host)
	sent := uint32(0)
	both := func(driver, why string) {
		t.Helper()
		if err := users.Look(true); err != nil {
			t.Fatal(err)
		}
		host.port.Send(frame(sent, 100)) // under way when the driver changes
		if err := host.port.Flush(); err != nil {
			t.Fatal(err)
		}
		if d, w := sw.port.(port.Chooser).Choose(users); d != driver || !strings.HasPrefix(w, why) {
			t.Errorf("driver %s, %s; want %s, %s...", d, w, driver, why)
		}
		sw.expect(t, frame(sent, 100))
		sent++
		for range 200 {
			host.port.Send(frame(sent, 100))
			sw.port.Send(frame(sent, 100))
			if err := host.port.Flush(); err != nil {
				t.Fatal(err)
			}
			if err := sw.port.Flush(); err != nil {
				t.Fatal(err)
			}
			sw.expect(t, frame(sent, 100))
			host.expect(t, frame(sent, 100))
			sent++
		}
	}
	const alone = "nothing else uses the interface"
	both("xdp", alone)
	for _, u := range usersOf(t, p.Switch, p.Host) {
		if err := u.begin(); err != nil {
			t.Logf("%s: %v", u.name, err)
			continue
		}
		both("afpacket", u.why)
		if err := u.end(); err != nil {
			t.Fatalf("%s: %v", u.name, err)
		}
		both("xdp", alone)
	}
	if len(sw.frames)+len(host.frames) != 0 {
		t.Errorf("%d frames too many at the switch, %d at the host", len(sw.frames), len(host.frames))
	}
	exchange(t, sw, host)
	exchange(t, host, sw)
	tags(t, sw, host)
	tags(t, host, sw)
	if c := sw.port.Counters(); c != (port.Counters{}) {
		t.Errorf("counters %+v, want none", c)
	}
}

// TestBestFar: a port stops using AF_XDP when the interface's other end moves to another network
// namespace. If the other end is there from the start, the port opens no AF_XDP sockets.
func TestBestFar(t *testing.T) {
	p := veth.New(t, 1)[0]
	sw, users := receiveBest(t, p.Switch)
	here, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	there, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	if err := unix.Setns(int(here.Fd()), unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	host, err := netlink.LinkByName(p.Host)
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetNsFd(host, int(there.Fd())); err != nil {
		t.Fatal(err)
	}
	if err := users.Look(true); err != nil {
		t.Fatal(err)
	}
	const want = "its other end is in another network namespace"
	if driver, why := sw.port.(port.Chooser).Choose(users); driver != "afpacket" || !strings.HasPrefix(why, want) {
		t.Errorf("%s, %s; want afpacket, %s...", driver, why, want)
	}
}

// TestBestNone: a port uses AF_PACKET and gives the reason if its interface is not veth, or has
// another XDP program.
func TestBestNone(t *testing.T) {
	p := veth.New(t, 1)[0]
	driver, _ := openXDP(t, p.Switch)
	defer driver.Close()
	users, err := port.OpenIfaceUsers()
	if err != nil {
		t.Fatal(err)
	}
	defer users.Close()
	for name, want := range map[string]string{
		p.Switch: "the interface has an XDP program already",
		"lo":     "it is not a veth interface",
	} {
		best, _, err := port.OpenBest(port.Named{Number: 3, Name: name}, users)
		if err != nil {
			t.Fatal(err)
		}
		if driver, why := best.(port.Chooser).Choose(users); driver != "afpacket" || !strings.HasPrefix(why, want) {
			t.Errorf("%s: %s, %s; want afpacket, %s...", name, driver, why, want)
		}
		if err := best.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := port.OpenBest(port.Named{Number: 3, Name: "nosuch0"}, users); err == nil {
		t.Error("no error without an interface")
	}
}
