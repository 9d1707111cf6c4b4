package main

import (
	"fmt"
	"os"
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

// hostEnd and switchEnd are the names of the interfaces of a port's veth pair.
func hostEnd(port int) string   { return fmt.Sprintf("h%d", port) }
func switchEnd(port int) string { return fmt.Sprintf("s%d", port) }

// cables makes a veth pair per port and returns what removes them.
func cables() (func(), error) {
	remove := func() {
		for port := 1; port <= ports; port++ {
			removeLink(switchEnd(port))
		}
	}
	for port := 1; port <= ports; port++ {
		if err := addVeth(switchEnd(port), hostEnd(port)); err != nil {
			return remove, err
		}
	}
	return remove, nil
}

// addVeth makes a veth pair and takes both ends up.
func addVeth(name, peer string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: peer}); err != nil {
		return fmt.Errorf("interface %s: %w", name, err)
	}
	for _, end := range []string{name, peer} {
		l, err := netlink.LinkByName(end)
		if err == nil {
			err = netlink.LinkSetUp(l)
		}
		if err != nil {
			return fmt.Errorf("interface %s: %w", end, err)
		}
	}
	return nil
}

func removeLink(name string) {
	if l, err := netlink.LinkByName(name); err == nil {
		_ = netlink.LinkDel(l)
	}
}

func index(name string) (int, error) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return 0, fmt.Errorf("interface %s: %w", name, err)
	}
	return l.Attrs().Index, nil
}

// received is how many frames have reached the hosts' ends.
func received() (n uint64) {
	for port := 1; port <= ports; port++ {
		if l, err := netlink.LinkByName(hostEnd(port)); err == nil {
			n += l.Attrs().Statistics.RxPackets
		}
	}
	return n
}

// setGRO switches generic receive offload of an interface on. A veth interface takes its
// frames by NAPI then, as network cards do, and so takes what an XDP program sends to it.
func setGRO(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	value := struct{ command, data uint32 }{unix.ETHTOOL_SGRO, 1} // struct ethtool_value
	var request struct {                                          // struct ifreq
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [24 - unsafe.Sizeof(uintptr(0))]byte
	}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	request.data = unsafe.Pointer(&value)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return fmt.Errorf("interface %s: generic receive offload: %w", name, errno)
	}
	return nil
}
