package nic

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/headgate/headgate/packet"
)

// resolveFor is how long the kernel may take to find the gateway's MAC address.
const resolveFor = 3 * time.Second

// gatewayMAC returns the MAC address of the interface's default gateway for ip's version of IP, from the
// kernel's neighbour table. If the table lacks it, the kernel is made to resolve it. Without a default gateway
// the result is packet.Gateway.
func gatewayMAC(index int, name string, ip netip.Addr) (packet.MAC, error) {
	family, network := netlink.FAMILY_V4, "udp4"
	if ip.Is6() {
		family, network = netlink.FAMILY_V6, "udp6"
	}
	gw, err := defaultGateway(index, family)
	if err != nil {
		return packet.MAC{}, fmt.Errorf("interface %q: %w", name, err)
	}
	if gw == nil {
		return packet.Gateway, nil
	}
	for deadline := time.Now().Add(resolveFor); ; {
		if mac, ok := neighbour(index, family, gw); ok {
			return mac, nil
		}
		if time.Now().After(deadline) {
			return packet.MAC{}, fmt.Errorf("interface %q: gateway %v does not answer, as the switches on chips do not: want its MAC address, which they do not look at: ip neighbour add %v lladdr %v dev %s", name, gw, gw, packet.Gateway, name)
		}
		// Any datagram makes the kernel resolve the address; port 9 discards.
		host := gw.String()
		if gw.IsLinkLocalUnicast() && ip.Is6() {
			host += "%" + name
		}
		if c, err := net.Dial(network, net.JoinHostPort(host, "9")); err == nil {
			_, _ = c.Write([]byte{0})
			_ = c.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// defaultGateway returns nil when there is none.
func defaultGateway(index, family int) (net.IP, error) {
	link, err := netlink.LinkByIndex(index)
	if err != nil {
		return nil, err
	}
	routes, err := netlink.RouteList(link, family)
	if err != nil {
		return nil, fmt.Errorf("routes: %w", err)
	}
	for _, r := range routes {
		if r.Gw != nil && (r.Dst == nil || r.Dst.IP.IsUnspecified()) {
			return r.Gw, nil
		}
	}
	return nil, nil
}

func neighbour(index, family int, ip net.IP) (packet.MAC, bool) {
	list, err := netlink.NeighList(index, family)
	if err != nil {
		return packet.MAC{}, false
	}
	const usable = netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE | netlink.NUD_PERMANENT | netlink.NUD_NOARP
	for _, e := range list {
		if e.IP.Equal(ip) && e.State&usable != 0 && len(e.HardwareAddr) == 6 {
			return packet.MAC(e.HardwareAddr), true
		}
	}
	return packet.MAC{}, false
}
