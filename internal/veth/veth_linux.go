// Package veth gives tests pairs of virtual Ethernet interfaces in a network namespace of
// their own.
package veth

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Pair is the names of two interfaces that are joined by a cable.
type Pair struct{ Switch, Host string }

// New moves the test's goroutine into a network namespace of its own and makes n pairs
// there, up, named s1, h1 and so on. Sockets must be opened on this goroutine; they work
// on any. The namespace ends with the test. Without root the test is skipped.
func New(t testing.TB, n int) []Pair {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: making network interfaces needs root")
	}
	// The thread keeps its namespace, so it must not go back to the others: it ends with
	// the goroutine because it is never unlocked.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("skipped: no network namespace: %v", err)
	}
	pairs := make([]Pair, n)
	for i := range pairs {
		pairs[i] = Add(t, fmt.Sprintf("s%d", i+1), fmt.Sprintf("h%d", i+1))
	}
	return pairs
}

// Add makes one more pair, up. It must run on the goroutine that called New.
func Add(t testing.TB, sw, host string) Pair {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = sw
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: host}); err != nil {
		t.Fatalf("making %s: %v", sw, err)
	}
	for _, name := range []string{sw, host} {
		// With IPv6 off, the kernel sends no frames unasked.
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0); err != nil && !os.IsNotExist(err) {
			t.Logf("IPv6 stays on: %v", err)
		}
		SetUp(t, name, true)
	}
	awaitCarrier(t, sw, host)
	return Pair{sw, host}
}

// awaitCarrier waits until the kernel has given the interfaces a queue. A work item does so some time after
// both ends of the cable are up. Frames that are sent before are lost.
func awaitCarrier(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		for try := 0; ; try++ {
			link, err := net.InterfaceByName(name)
			if err != nil {
				t.Fatalf("interface %s: %v", name, err)
			}
			if link.Flags&net.FlagRunning != 0 {
				break
			}
			if try == 10_000 {
				t.Fatalf("interface %s is up and has no carrier", name)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// SetUp takes an interface up or down. It must run on the goroutine that called New.
func SetUp(t testing.TB, name string, up bool) {
	t.Helper()
	link, err := netlink.LinkByName(name)
	if err == nil {
		if up {
			err = netlink.LinkSetUp(link)
		} else {
			err = netlink.LinkSetDown(link)
		}
	}
	if err != nil {
		t.Fatalf("interface %s: %v", name, err)
	}
}
