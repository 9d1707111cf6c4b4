package port_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/headgate/headgate/internal/veth"
	"github.com/headgate/headgate/softswitch/port"
)

// openXDP opens an interface, or skips the test on a machine that has no AF_XDP.
func openXDP(t testing.TB, name string) (port.Port, port.Source) {
	t.Helper()
	p, src, err := port.OpenXDP(port.Named{Number: 5, Name: name})
	if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		t.Skipf("skipped: no AF_XDP here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p, src
}

// receiveXDP is open by AF_XDP.
func receiveXDP(t *testing.T, name string) *receiver {
	t.Helper()
	p, src := openXDP(t, name)
	return receive(t, name, p, src)
}

// attached reports whether an interface has an XDP program. It must run on the goroutine
// that called veth.New.
func attached(t *testing.T, name string) bool {
	t.Helper()
	l, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	x := l.Attrs().Xdp
	return x != nil && x.Attached
}

func TestXDP(t *testing.T) {
	for _, far := range []struct {
		name string
		open func(*testing.T, string) *receiver
	}{{"AF_PACKET", open}, {"AF_XDP", receiveXDP}} {
		t.Run(far.name, func(t *testing.T) {
			p := veth.New(t, 1)[0]
			sw, host := receiveXDP(t, p.Switch), far.open(t, p.Host)
			exchange(t, sw, host)
			exchange(t, host, sw)
			tags(t, sw, host)
			tags(t, host, sw)
			if m := sw.port.(interface{ Mode() string }).Mode(); m != "native" {
				t.Errorf("mode %s on veth, want native", m)
			}
			if c := sw.port.Counters(); c != (port.Counters{}) {
				t.Errorf("counters %+v, want none", c)
			}
		})
	}
}

// TestXDPGeneric uses an interface whose driver has no XDP of its own.
func TestXDPGeneric(t *testing.T) {
	p := veth.New(t, 1)[0]
	below, err := netlink.LinkByName(p.Switch)
	if err != nil {
		t.Fatal(err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.ParentIndex = "m1", below.Attrs().Index
	if err := netlink.LinkAdd(&netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_PASSTHRU}); err != nil {
		t.Skipf("skipped: no macvlan here: %v", err)
	}
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/m1/disable_ipv6", []byte("1"), 0); err != nil && !os.IsNotExist(err) {
		t.Logf("IPv6 stays on: %v", err)
	}
	veth.SetUp(t, "m1", true)
	sw, host := receiveXDP(t, "m1"), open(t, p.Host)
	if m := sw.port.(interface{ Mode() string }).Mode(); m != "generic" {
		t.Errorf("mode %s on macvlan, want generic", m)
	}
	exchange(t, sw, host)
	exchange(t, host, sw)
	tags(t, sw, host) // those that come in, the lower interface has taken off
}

// exchange sends more frames than any ring holds from one port to the other, and checks that they arrive complete
// and in order.
func exchange(t *testing.T, from, to *receiver) {
	t.Helper()
	const n, window = 5000, 100
	for i := range uint32(n) {
		from.port.Send(frame(i, 60+int(i%1455)))
		if i%window == window-1 {
			if err := from.port.Flush(); err != nil {
				t.Fatal(err)
			}
			for j := i - (window - 1); j <= i; j++ {
				to.expect(t, frame(j, 60+int(j%1455)))
			}
		}
	}
	if len(from.frames) != 0 {
		t.Errorf("the sender received %d of its own frames", len(from.frames))
	}
}

// tags checks that VLAN tags that are part of a frame stay.
func tags(t *testing.T, from, to *receiver) {
	t.Helper()
	for _, tag := range [][]byte{{0x81, 0, 0xa0, 5}, {0x88, 0xa8, 0, 7, 0x81, 0, 0, 9}} {
		plain := frame(1, 100)
		tagged := append(append(bytes.Clone(plain[:12]), tag...), plain[12:]...)
		from.port.Send(tagged)
		if err := from.port.Flush(); err != nil {
			t.Fatal(err)
		}
		to.expect(t, tagged)
	}
}

func TestXDPRefusedFrames(t *testing.T) {
	p := veth.New(t, 1)[0]
	sw, host := receiveXDP(t, p.Switch), open(t, p.Host)
	for _, f := range [][]byte{frame(1, 1600), frame(1, 60)[:13], frame(2, 1518), frame(3, 18)} {
		sw.port.Send(f)
	}
	if err := sw.port.Flush(); err != nil {
		t.Fatal(err)
	}
	host.expect(t, frame(2, 1518))
	host.expect(t, frame(3, 18))
	if c := sw.port.Counters(); c.TxErrors != 2 {
		t.Errorf("counters %+v, want two transmit errors", c)
	}
}

// TestXDPDown sends more than the ring holds to an interface that is down, then takes it up.
func TestXDPDown(t *testing.T) {
	p := veth.New(t, 1)[0]
	sw, host := receiveXDP(t, p.Switch), open(t, p.Host)
	if !sw.port.Up() {
		t.Error("the port is down")
	}
	veth.SetUp(t, p.Switch, false)
	if sw.port.Up() {
		t.Error("the port of an interface that is down is up")
	}
	const n, perFlush = 6400, 64
	for i := range uint32(n) {
		sw.port.Send(frame(i, 100))
		if i%perFlush == perFlush-1 {
			if err := sw.port.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if c := sw.port.Counters(); c.TxErrors < n-perFlush || c.TxErrors > n {
		t.Errorf("counters %+v, want about %d transmit errors", c, n)
	}
	veth.SetUp(t, p.Switch, true)
	// The carrier takes a moment; until then frames are lost.
	for _, way := range []struct{ from, to *receiver }{{host, sw}, {sw, host}} {
		want := frame(n, 100)
		for try := 0; ; try++ {
			way.from.port.Send(want)
			if err := way.from.port.Flush(); err != nil {
				t.Fatal(err)
			}
			var got []byte
			select {
			case got = <-way.to.frames:
			case <-time.After(10 * time.Millisecond):
			}
			if bytes.Equal(got, want) {
				break
			}
			if try == 500 {
				t.Fatal("no frame after the interface came up again")
			}
		}
	}
}

func TestXDPDetaches(t *testing.T) {
	p := veth.New(t, 1)[0]
	for i := range 5 { // Close gives everything back
		driver, _ := openXDP(t, p.Switch)
		if !attached(t, p.Switch) {
			t.Error("no XDP program on an open port")
		}
		if i == 0 {
			_, _, err := port.OpenXDP(port.Named{Number: 6, Name: p.Switch})
			if err == nil || !strings.Contains(err.Error(), "has an XDP program already") {
				t.Errorf("opened twice: error %v", err)
			}
		}
		if err := driver.Close(); err != nil {
			t.Fatal(err)
		}
		if attached(t, p.Switch) {
			t.Error("the XDP program is still there after Close")
		}
	}
}

// TestXDPProcessEnds kills a process that has an open port.
func TestXDPProcessEnds(t *testing.T) {
	const variable = "HEADGATE_TEST_XDP_INTERFACE"
	if name := os.Getenv(variable); name != "" {
		if _, _, err := port.OpenXDP(port.Named{Name: name}); err != nil {
			t.Fatal(err)
		}
		_, _ = os.Stdout.WriteString("ready\n")
		select {}
	}
	p := veth.New(t, 1)[0]
	driver, _ := openXDP(t, p.Switch) // skips where there is no AF_XDP
	if err := driver.Close(); err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run=^TestXDPProcessEnds$") // in this thread's namespace
	child.Env = append(os.Environ(), variable+"="+p.Switch)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 6)
	if _, err := out.Read(line); err != nil || string(line) != "ready\n" {
		t.Errorf("the process says %q, %v", line, err)
	}
	if !attached(t, p.Switch) {
		t.Error("no XDP program while the process runs")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // killed
	for range 200 {
		if !attached(t, p.Switch) {
			return
		}
		time.Sleep(10 * time.Millisecond) // the kernel takes it off when it frees the link
	}
	t.Error("the XDP program outlives its process")
}

func TestXDPInterfaceGoes(t *testing.T) {
	p := veth.New(t, 1)[0]
	sw := receiveXDP(t, p.Switch)
	l, err := netlink.LinkByName(p.Switch)
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkDel(l); err != nil {
		t.Fatal(err)
	}
	if sw.port.Up() {
		t.Error("the port of an interface that is gone is up")
	}
	for range 3 {
		sw.port.Send(frame(1, 100))
		if err := sw.port.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if c := sw.port.Counters(); c.TxErrors < 2 {
		t.Errorf("counters %+v, want transmit errors", c)
	}
}

func TestXDPErrors(t *testing.T) {
	p := veth.New(t, 1)[0]
	driver, _ := openXDP(t, p.Switch) // skips where there is no AF_XDP
	if err := driver.Close(); err != nil {
		t.Fatal(err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.NumRxQueues, attrs.NumTxQueues = "many", 2, 2
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "few"}); err != nil {
		t.Fatal(err)
	}
	attrs = netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = "long", 9000
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "long2"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"nosuch0": `port 3: no network interface "nosuch0": want one of `,
		"many":    "port 3, interface many: 2 receive queues: the AF_XDP driver wants one: `ethtool -L many combined 1`",
		"long":    "port 3, interface long: MTU 9000: AF_XDP takes at most ",
	} {
		_, _, err := port.OpenXDP(port.Named{Number: 3, Name: name})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s...", name, err, want)
		}
	}
}

func TestXDPSendAllocations(t *testing.T) {
	p := veth.New(t, 1)[0]
	driver, _ := openXDP(t, p.Switch)
	defer driver.Close()
	f := frame(1, 128)
	if n := testing.AllocsPerRun(100, func() {
		for range 200 {
			driver.Send(f)
		}
		if err := driver.Flush(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations for 200 frames, want none", n)
	}
	if c := driver.Counters(); c.TxErrors != 0 {
		t.Errorf("counters %+v, want none", c)
	}
}
