// Package topology holds the connections of switches and hosts, and computes which ports lead to which host. It has
// no state: a Graph never changes, and the state of links and switches is passed in. Equal inputs give equal routes
// in the same order.
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
	hostOf   map[netip.Addr]*Host // by each of its addresses
	racks    []rack
	rackOf   map[string]int // index into racks by rackKey
	links    []config.Link
	ends     [][2]int // switches at the ends of a link, −1 for a host
}

type node struct {
	name  string
	ports []Port  // by number
	edges []edge  // an edge for each of ports
	nics  []int   // links of the hosts with one NIC here, one for each prefix of own
	own   Route   // route to the addresses of these hosts, in their order, while their links are up
	local []local // hosts with several NICs here, in the file's order
}

// local is a host with several NICs at one switch, which hashes over them.
type local struct {
	Route       // the route while all links are up
	links []int // the link of each next hop
}

// edge is the peer and the link of a port.
type edge struct{ peer, link int32 }

// Port is a used port of a switch. It is never changed.
type Port struct {
	Number   uint32
	MAC      MAC
	Link     string // name of the link on it
	Peer     string // node at the other end
	PeerPort uint32 // 0 when a host is there
	PeerMAC  MAC
	Rate     units.Rate // rate of the egress: the port's own, else the link's

	link, peer int // indices; peer is −1 when a host is there
}

func (p Port) hop() NextHop { return NextHop{Port: p.Number, SrcMAC: p.MAC, DstMAC: p.PeerMAC} }

// Host is a host with the switch port of its first link.
type Host struct {
	config.Host
	Switch string
	Port   uint32

	nics []nic
	rack int
}

// nic is a host's NIC: its switch, its link, and the next hop from the switch to it.
type nic struct {
	leaf, link int
	hop        NextHop
}

// New builds the graph of a valid configuration.
func New(c *config.Config) *Graph {
	g := &Graph{index: map[string]int{}, links: c.Links, rackOf: map[string]int{}, hostOf: map[netip.Addr]*Host{}}
	for i, s := range c.Switches {
		g.index[s.Name] = i
		g.switches = append(g.switches, node{name: s.Name})
	}
	nics := map[string][]nic{} // NICs of hosts
	for i, l := range c.Links {
		g.ends = append(g.ends, [2]int{g.end(l.A), g.end(l.B)})
		g.addPort(c, nics, i, l.A, l.B)
		g.addPort(c, nics, i, l.B, l.A)
	}
	for i := range g.switches {
		ports := g.switches[i].ports
		slices.SortFunc(ports, func(a, b Port) int { return cmp.Compare(a.Number, b.Number) })
		for _, p := range ports {
			g.switches[i].edges = append(g.switches[i].edges, edge{int32(p.peer), int32(p.link)})
		}
	}
	for _, h := range c.Hosts {
		first := nics[h.Name][0]
		g.hosts = append(g.hosts, Host{Host: h, Switch: g.switches[first.leaf].name, Port: first.hop.Port, nics: nics[h.Name]})
	}
	g.addRacks()
	g.addOwn()
	return g
}

// addOwn gives leaves the routes to their own hosts.
func (g *Graph) addOwn() {
	for i := range g.switches {
		g.switches[i].own.Destination = &Destination{}
	}
	for _, h := range g.hosts {
		for _, leaf := range h.leaves(h.nics) {
			n, prefixes := &g.switches[leaf], h.prefixes()
			here := slices.DeleteFunc(slices.Clone(h.nics), func(c nic) bool { return c.leaf != leaf })
			slices.SortFunc(here, func(a, b nic) int { return cmp.Compare(a.hop.Port, b.hop.Port) })
			if len(here) == 1 {
				for _, p := range prefixes {
					n.own.Prefixes, n.own.NextHops, n.nics = append(n.own.Prefixes, p), append(n.own.NextHops, here[0].hop), append(n.nics, here[0].link)
				}
				continue
			}
			l := local{Route: Route{Destination: &Destination{Group: uint32(len(g.switches) + len(g.racks) + len(n.local) + 1), Prefixes: prefixes}}}
			for _, c := range here {
				l.NextHops, l.links = append(l.NextHops, c.hop), append(l.links, c.link)
			}
			n.local = append(n.local, l)
		}
	}
}

// prefixes returns the host's addresses, a /32 or /128 each.
func (h *Host) prefixes() (list []netip.Prefix) {
	for _, ip := range h.Addresses() {
		list = append(list, netip.PrefixFrom(ip, ip.BitLen()))
	}
	return list
}

// leaves returns the switches that the given NICs of the host attach to, sorted, each once.
func (h *Host) leaves(nics []nic) (list []int) {
	for _, n := range nics {
		list = append(list, n.leaf)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// rack holds the hosts that attach to the same leaves: to one leaf, as most hosts do, or to several.
type rack struct {
	leaves []int // sorted
	*Destination
}

// rackKey is the key of Graph.rackOf.
func rackKey(leaves []int) string { return fmt.Sprint(leaves) }

// addRacks finds the racks and the fewest prefixes that cover a rack's hosts and no host of another rack. So the
// prefixes of two racks never overlap. A packet to an address that no host has ends at a leaf, which has no route
// for it. Each subset of a rack's leaves is a rack too, without prefixes. Hosts that lose some of their links move
// to it.
func (g *Graph) addRacks() {
	for _, h := range g.hosts {
		all := h.leaves(h.nics)
		for part := 1; part < 1<<len(all); part++ {
			var leaves []int
			for i, leaf := range all {
				if part>>i&1 == 1 {
					leaves = append(leaves, leaf)
				}
			}
			if _, known := g.rackOf[rackKey(leaves)]; !known {
				g.rackOf[rackKey(leaves)] = 0 // as soon as all are known
				g.racks = append(g.racks, rack{leaves, &Destination{}})
			}
		}
	}
	slices.SortFunc(g.racks, func(a, b rack) int {
		return cmp.Or(cmp.Compare(len(a.leaves), len(b.leaves)), slices.Compare(a.leaves, b.leaves))
	})
	for i, r := range g.racks {
		g.rackOf[rackKey(r.leaves)] = i
		if r.Group = uint32(r.leaves[0] + 1); len(r.leaves) > 1 {
			r.Group = uint32(len(g.switches) + i + 1)
		}
	}
	var all []address
	for i := range g.hosts {
		h := &g.hosts[i]
		h.rack = g.rackOf[rackKey(h.leaves(h.nics))]
		for _, ip := range h.Addresses() {
			g.hostOf[ip] = h
			all = append(all, address{ip, g.racks[h.rack].Destination})
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

// addPort adds the port at one end of a link and, if a host is at the other end, the host's NIC.
func (g *Graph) addPort(c *config.Config, nics map[string][]nic, link int, own, other config.Endpoint) {
	if own.Port == 0 {
		return
	}
	i := g.index[own.Node]
	l := &c.Links[link]
	p := Port{
		Number: own.Port, MAC: PortMAC(c.Switches[i].DeviceID, own.Port), Link: l.Name, Peer: other.Node, PeerPort: other.Port, PeerMAC: l.MAC,
		Rate: cmp.Or(c.Switches[i].Port(own.Port).Rate, l.Rate), link: link, peer: -1,
	}
	if other.Port == 0 {
		nics[other.Node] = append(nics[other.Node], nic{i, link, p.hop()})
	} else {
		p.peer = g.index[other.Node]
		p.PeerMAC = PortMAC(c.Switches[p.peer].DeviceID, other.Port)
	}
	g.switches[i].ports = append(g.switches[i].ports, p)
}

// Ports returns the used ports of a switch by number; nil when there is no such switch.
func (g *Graph) Ports(sw string) []Port {
	if i, ok := g.index[sw]; ok {
		return g.switches[i].ports
	}
	return nil
}

// Hosts returns the hosts in the file's order.
func (g *Graph) Hosts() []Host { return g.hosts }

// Prefixes returns how many prefixes lead to all racks, and how many of these are host routes: single addresses of
// hosts at several leaves.
func (g *Graph) Prefixes() (all, hosts int) {
	for _, r := range g.racks {
		all += len(r.Prefixes)
		for _, p := range r.Prefixes {
			if len(r.leaves) > 1 && p.IsSingleIP() {
				hosts++
			}
		}
	}
	return all, hosts
}

// ErrNoLink says that no link joins two nodes or ends.
var ErrNoLink = errors.New("no link joins")

// Between returns the names of the links between two nodes, sorted. A node may also be one end of a link, such as
// "leaf1:3". If there is none, the error wraps ErrNoLink and says where a leads.
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
