package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/yamlnode"
)

// The bonds of Host.Bond.
const (
	LAG  = "lag"
	MLAG = "mlag"
)

// mostLeaves is the largest number of switches that a host may be connected to: each subset of them may be a
// destination of its own (package topology).
const mostLeaves = 4

// Bonded reports whether the host's links are members of one static LAG.
func (h *Host) Bonded() bool { return h.Bond == LAG || h.Bond == MLAG }

// ends returns a host link's end at the switch, and the host; nil if the link joins two switches.
func (c *Config) ends(l *Link) (Endpoint, *Host) {
	if h := c.Host(l.B.Node); h != nil && l.B.Port == 0 {
		return l.A, h
	}
	if h := c.Host(l.A.Node); h != nil && l.A.Port == 0 {
		return l.B, h
	}
	return Endpoint{}, nil
}

// addMACs gives NICs their default MAC addresses.
func (c *Config) addMACs() {
	nics := map[string]int{}
	for i := range c.Links {
		l := &c.Links[i]
		_, h := c.ends(l)
		if h == nil {
			continue
		}
		n := nics[h.Name]
		nics[h.Name]++
		switch {
		case l.MAC != [6]byte{}:
		case n == 0 || h.Bonded():
			l.MAC = h.MAC
		default:
			l.MAC = h.defaultMAC(n)
		}
	}
}

// checkNICs finds hosts whose links contradict each other. macs has the hosts' MAC addresses.
func (c *Config) checkNICs(d *yamlnode.Doc, macs yamlnode.Unique[[6]byte]) {
	leaves := map[string][]string{}
	for i := range c.Links {
		l, path := &c.Links[i], fmt.Sprintf("links[%d]", i)
		end, h := c.ends(l)
		given := d.Given(path + ".mac")
		if given {
			path += ".mac"
		}
		switch {
		case h == nil && given:
			d.Fault(path, "is %x, but no host is at the link %q, want mac only at links to hosts", l.MAC, l.Name)
		case h == nil:
		case given && h.Bonded():
			d.Fault(path, "is %x, but the members of the host %q's bond share one MAC address, want mac in the host's own entry", l.MAC, h.Name)
		case l.MAC == h.MAC && (len(leaves[h.Name]) == 0 || h.Bonded()): // the host's own
		default:
			useMAC(d, macs, l.MAC, path)
		}
		if h != nil {
			leaves[h.Name] = append(leaves[h.Name], end.Node)
		}
	}
	for i, h := range c.Hosts {
		list := slices.Compact(slices.Sorted(slices.Values(leaves[h.Name])))
		path, names := fmt.Sprintf("hosts[%d]", i), strings.Join(list, ", ")
		switch {
		case h.Bond == LAG && len(list) > 1:
			d.Fault(path+".bond", "is %q, but the links of the host %q lead to %s: want one switch, or mlag for a static LAG with members at several", h.Bond, h.Name, names)
		case h.Bond == MLAG && len(list) == 1:
			d.Fault(path+".bond", "is %q, but all links of the host %q lead to %s: want two to %d switches, or lag", h.Bond, h.Name, names, mostLeaves)
		case len(list) > mostLeaves:
			d.Fault(path, "is the host %q with links to %d switches, want at most %d", h.Name, len(list), mostLeaves)
		}
	}
}
