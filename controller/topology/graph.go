// Package topology knows who is connected to whom, and computes from it which ports lead
// to which host. It is pure: a Graph never changes, the state of links and switches is
// passed in, and equal inputs give equal routes, in the same order.
package topology

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/units"
)

// MAC is an Ethernet address.
type MAC [6]byte

// PortMAC returns the MAC address of a switch's port: 02, the 24 low bits of the device
// id, the port in 16 bits. It is locally administered and unicast (IEEE 802, clause 8).
func PortMAC(deviceID uint64, port uint32) MAC {
	return MAC{2, byte(deviceID >> 16), byte(deviceID >> 8), byte(deviceID), byte(port >> 8), byte(port)}
}

// Graph is the fabric's switches, hosts and links. It is immutable.
type Graph struct {
	switches []node // in the file's order; index 0 is destination 1, …
	index    map[string]int
	hosts    []Host
	leaves   []int // switches with hosts
	links    []config.Link
	ends     [][2]int       // switches at the ends of a link, −1 for a host
	hostLink map[string]int // host → index into links
}

type node struct {
	name  string
	ports []port       // by number
	edges []edge       // of ports
	hosts []int        // indices, one for each prefix of own
	rack  *Destination // of its hosts for other switches; nil without hosts
	own   Route        // to the addresses of its hosts, in their order, while their links are up
}

// edge is the peer and the link of a port.
type edge struct{ peer, link int32 }

// port is one used port of a switch. peer is the index of the switch at its other end,
// −1 when a host is there.
type port struct {
	number   uint32
	link     int
	peer     int
	peerName string
	peerPort uint32
	rate     units.Rate
	mac      MAC // own
	peerMAC  MAC
}

func (p port) hop() NextHop { return NextHop{Port: p.number, SrcMAC: p.mac, DstMAC: p.peerMAC} }

// Host is a host with its switch port.
type Host struct {
	config.Host
	Switch string
	Port   uint32

	link int
}

// New builds the graph of a configuration that was found free of faults.
func New(c *config.Config) *Graph {
	g := &Graph{index: map[string]int{}, links: c.Links, hostLink: map[string]int{}}
	for i, s := range c.Switches {
		g.index[s.Name] = i
		g.switches = append(g.switches, node{name: s.Name})
	}
	macs := make(map[string]MAC, len(c.Hosts))
	for _, h := range c.Hosts {
		macs[h.Name] = h.MAC
	}
	for i, l := range c.Links {
		g.ends = append(g.ends, [2]int{g.end(l.A), g.end(l.B)})
		g.addPort(c, macs, i, l.A, l.B)
		g.addPort(c, macs, i, l.B, l.A)
	}
	for i := range g.switches {
		ports := g.switches[i].ports
		slices.SortFunc(ports, func(a, b port) int { return cmp.Compare(a.number, b.number) })
		for _, p := range ports {
			g.switches[i].edges = append(g.switches[i].edges, edge{int32(p.peer), int32(p.link)})
		}
	}
	for _, h := range c.Hosts {
		link := g.hostLink[h.Name]
		end := c.Links[link].A
		if end.Port == 0 {
			end = c.Links[link].B
		}
		leaf := &g.switches[g.index[end.Node]]
		at, _ := slices.BinarySearchFunc(leaf.ports, end.Port, func(p port, n uint32) int { return cmp.Compare(p.number, n) })
		if leaf.own.Destination == nil {
			leaf.own.Destination = &Destination{}
		}
		for _, ip := range h.Addresses() {
			leaf.hosts = append(leaf.hosts, len(g.hosts))
			leaf.own.Prefixes = append(leaf.own.Prefixes, netip.PrefixFrom(ip, ip.BitLen()))
			leaf.own.NextHops = append(leaf.own.NextHops, leaf.ports[at].hop())
		}
		g.hosts = append(g.hosts, Host{Host: h, Switch: end.Node, Port: end.Port, link: link})
	}
	g.addRacks()
	return g
}

// addRacks finds the prefixes of each leaf's hosts, as few as cover no host of another leaf. So the
// prefixes of two leaves never overlap, and a packet to an address in them that no host has ends at
// the leaf, which has no route for it.
func (g *Graph) addRacks() {
	for i := range g.switches {
		if len(g.switches[i].hosts) > 0 {
			g.leaves = append(g.leaves, i)
			g.switches[i].rack = &Destination{Group: uint32(i + 1)}
		}
	}
	var all []address
	for _, h := range g.hosts {
		for _, ip := range h.Addresses() {
			all = append(all, address{ip, g.switches[g.index[h.Switch]].rack})
		}
	}
	slices.SortFunc(all, func(a, b address) int { return a.ip.Compare(b.ip) }) // IPv4 comes first
	six, _ := slices.BinarySearchFunc(all, netip.IPv6Unspecified(), func(a address, ip netip.Addr) int { return a.ip.Compare(ip) })
	cover(all[:six])
	cover(all[six:])
}

// address is a host's, and the rack that it is in.
type address struct {
	ip   netip.Addr
	rack *Destination
}

// cover gives the racks the prefixes of sorted addresses of one family.
func cover(all []address) {
	if len(all) == 0 {
		return
	}
	first, last := all[0], all[len(all)-1]
	prefix := netip.PrefixFrom(first.ip, first.ip.BitLen())
	for !prefix.Contains(last.ip) {
		prefix, _ = first.ip.Prefix(prefix.Bits() - 1)
	}
	if !slices.ContainsFunc(all, func(a address) bool { return a.rack != first.rack }) {
		first.rack.Prefixes = append(first.rack.Prefixes, prefix)
		return
	}
	half, _ := last.ip.Prefix(prefix.Bits() + 1)
	n := slices.IndexFunc(all, func(a address) bool { return half.Contains(a.ip) })
	cover(all[:n])
	cover(all[n:])
}

func (g *Graph) end(e config.Endpoint) int {
	if e.Port == 0 {
		return -1
	}
	return g.index[e.Node]
}

func (g *Graph) addPort(c *config.Config, macs map[string]MAC, link int, own, other config.Endpoint) {
	if own.Port == 0 {
		g.hostLink[own.Node] = link
		return
	}
	i := g.index[own.Node]
	p := port{
		number: own.Port, link: link, peer: -1, peerName: other.Node, peerPort: other.Port,
		rate: cmp.Or(c.Switches[i].Port(own.Port).Rate, c.Links[link].Rate), mac: PortMAC(c.Switches[i].DeviceID, own.Port),
	}
	if other.Port == 0 {
		p.peerMAC = macs[other.Node]
	} else {
		p.peer = g.index[other.Node]
		p.peerMAC = PortMAC(c.Switches[p.peer].DeviceID, other.Port)
	}
	g.switches[i].ports = append(g.switches[i].ports, p)
}

// Port is a used port of a switch, as others see it.
type Port struct {
	Number   uint32
	MAC      MAC
	Link     string // name of the link on it
	Peer     string // node at the other end
	PeerPort uint32 // 0 when a host is there
	PeerMAC  MAC
	Rate     units.Rate // of the egress: the port's own, else the link's
}

// Ports returns the used ports of a switch by number; nil when there is no such switch.
func (g *Graph) Ports(sw string) []Port {
	i, ok := g.index[sw]
	if !ok {
		return nil
	}
	ports := make([]Port, 0, len(g.switches[i].ports))
	for _, p := range g.switches[i].ports {
		ports = append(ports, Port{
			Number: p.number, MAC: p.mac, Link: g.links[p.link].Name,
			Peer: p.peerName, PeerPort: p.peerPort, PeerMAC: p.peerMAC, Rate: p.rate,
		})
	}
	return ports
}

// Hosts returns the hosts in the file's order.
func (g *Graph) Hosts() []Host { return g.hosts }

// ErrNoLink says that no link joins two nodes or ends.
var ErrNoLink = errors.New("no link joins")

// Between returns the names of the links between two nodes, or by an end such as "leaf1:3",
// sorted; an error that wraps ErrNoLink, and says where a leads, when there is none.
func (g *Graph) Between(a, b string) ([]string, error) {
	is := func(e config.Endpoint, name string) bool { return e.Node == name || e.String() == name }
	var names, peers []string
	for _, l := range g.links {
		for _, end := range [2][2]config.Endpoint{{l.A, l.B}, {l.B, l.A}} {
			if !is(end[0], a) {
				continue
			}
			if peers = append(peers, end[1].Node); is(end[1], b) {
				names = append(names, l.Name)
			}
		}
	}
	slices.Sort(names)
	slices.Sort(peers)
	switch {
	case len(names) > 0:
		return slices.Compact(names), nil
	case len(peers) == 0:
		return nil, fmt.Errorf("%w %q and %q: the fabric has no link at %q", ErrNoLink, a, b, a)
	}
	return nil, fmt.Errorf("%w %q and %q: %q has links to %s", ErrNoLink, a, b, a, strings.Join(slices.Compact(peers), ", "))
}
