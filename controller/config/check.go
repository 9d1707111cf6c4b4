package config

import (
	"fmt"
	"sort"
	"strings"

	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/units"
)

// check finds contradictions between fields. It returns true if there is a switch and both ends of each link are
// known, which the checks of sections need.
func (c *Config) check(d *yamlnode.Doc) bool {
	c.checkNames(d)
	c.checkTargets(d)
	macs := c.checkHosts(d)
	known := c.checkLinks(d)
	if known && len(c.Switches) > 0 {
		c.checkConnected(d)
		c.checkNICs(d, macs)
		c.checkPorts(d)
	}
	c.checkController(d)
	return known && len(c.Switches) > 0
}

func (c *Config) checkNames(d *yamlnode.Doc) {
	names, ids, addresses := yamlnode.Unique[string]{}, yamlnode.Unique[uint64]{}, yamlnode.Unique[string]{}
	if len(c.Switches) == 0 {
		d.Fault("switches", "is empty, want at least one switch")
	}
	for i, s := range c.Switches {
		path := fmt.Sprintf("switches[%d]", i)
		names.Use(d, s.Name, path+".name", fmt.Sprintf("%q", s.Name))
		ids.Use(d, s.DeviceID, path+".device_id", fmt.Sprint(s.DeviceID))
		addresses.Use(d, strings.ToLower(s.Address), path+".address", fmt.Sprintf("%q", s.Address))
	}
	for i, h := range c.Hosts {
		names.Use(d, h.Name, fmt.Sprintf("hosts[%d].name", i), fmt.Sprintf("%q", h.Name))
	}
	apps := yamlnode.Unique[string]{}
	for i, a := range c.Applications {
		apps.Use(d, a.Name, fmt.Sprintf("applications[%d].name", i), fmt.Sprintf("%q", a.Name))
	}
}

// checkHosts returns the hosts' MAC addresses.
func (c *Config) checkHosts(d *yamlnode.Doc) (macs yamlnode.Unique[[6]byte]) {
	ips, macs := yamlnode.Unique[string]{}, yamlnode.Unique[[6]byte]{}
	for i, h := range c.Hosts {
		path := fmt.Sprintf("hosts[%d]", i)
		for _, ip := range h.Addresses() {
			ips.Use(d, ip.String(), path+map[bool]string{true: ".ipv4", false: ".ipv6"}[ip.Is4()], ip.String())
		}
		macPath := path + ".mac"
		if !d.Given(macPath) {
			macPath = path
		}
		useMAC(d, macs, h.MAC, macPath)
	}
	return macs
}

func useMAC(d *yamlnode.Doc, macs yamlnode.Unique[[6]byte], mac [6]byte, path string) {
	macs.Use(d, mac, path, fmt.Sprintf("the MAC address %x", mac))
}

// checkLinks reports whether every end is a known node.
func (c *Config) checkLinks(d *yamlnode.Doc) bool {
	known, used, names := true, yamlnode.Unique[Endpoint]{}, yamlnode.Unique[string]{}
	for i, l := range c.Links {
		path := fmt.Sprintf("links[%d]", i)
		namePath := path + ".name"
		if !d.Given(namePath) {
			namePath = path
		}
		names.Use(d, l.Name, namePath, fmt.Sprintf("the link %q", l.Name))
		for _, end := range []struct {
			key string
			Endpoint
		}{{"a", l.A}, {"b", l.B}} {
			known = c.checkEnd(d, path+"."+end.key, end.Endpoint) && known
			if end.Port != 0 {
				used.Use(d, end.Endpoint, path+"."+end.key, fmt.Sprintf("%q", end.String()))
			}
		}
		if c.Switch(l.A.Node) == nil && c.Switch(l.B.Node) == nil && c.Host(l.A.Node) != nil && c.Host(l.B.Node) != nil {
			d.Fault(path, "joins the hosts %q and %q, want a switch at one end", l.A.Node, l.B.Node)
		}
		if l.A.Node == l.B.Node && c.Switch(l.A.Node) != nil {
			d.Fault(path, "joins two ports of the switch %q, want two nodes", l.A.Node)
		}
		if !c.Fits(l.Delay) {
			d.Fault(path+".delay", "is %v, which is too long when multiplied by scale %d", l.Delay, c.Scale)
		}
	}
	return known
}

func (c *Config) checkEnd(d *yamlnode.Doc, path string, e Endpoint) bool {
	sw, host := c.Switch(e.Node), c.Host(e.Node)
	switch {
	case sw == nil && host == nil:
		d.Fault(path, "is %q, but there is no switch or host %q; known are %s", e.String(), e.Node, c.nodeNames())
		return false
	case sw != nil && e.Port == 0:
		d.Fault(path, "is the switch %q without a port, want \"%s:1\" or another port from 1 to %d", e.Node, e.Node, maxPort)
	case sw != nil && e.Port == sw.CPUPort:
		d.Fault(path, "is %q, but port %d of the switch %q leads to the controller (cpu_port)", e.String(), e.Port, sw.Name)
	case host != nil && sw == nil && e.Port != 0:
		d.Fault(path, "is %q, but a host has no port numbers, want %q", e.String(), e.Node)
	}
	return true
}

func (c *Config) nodeNames() string {
	var names []string
	for _, s := range c.Switches {
		names = append(names, s.Name)
	}
	for _, h := range c.Hosts {
		names = append(names, h.Name)
	}
	sort.Strings(names)
	const most = 20
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("and %d more", len(names)-most))
	}
	return strings.Join(names, ", ")
}

// checkConnected reports nodes that cannot be reached from the first switch.
func (c *Config) checkConnected(d *yamlnode.Doc) {
	next := map[string][]string{}
	for _, l := range c.Links {
		next[l.A.Node] = append(next[l.A.Node], l.B.Node)
		next[l.B.Node] = append(next[l.B.Node], l.A.Node)
	}
	start := c.Switches[0].Name
	reached, queue := map[string]bool{start: true}, []string{start}
	for i := 0; i < len(queue); i++ {
		for _, n := range next[queue[i]] {
			if !reached[n] {
				reached[n] = true
				queue = append(queue, n)
			}
		}
	}
	for i, h := range c.Hosts {
		path := fmt.Sprintf("hosts[%d]", i)
		switch links := len(next[h.Name]); {
		case links == 0:
			d.Fault(path, "is the host %q, which no link joins to a switch", h.Name)
		case !reached[h.Name]:
			d.Fault(path, "is the host %q, which no path of links joins to the switch %q", h.Name, start)
		}
	}
	for i, s := range c.Switches {
		if !reached[s.Name] {
			path := fmt.Sprintf("switches[%d]", i)
			d.Fault(path, "is the switch %q, which no path of links joins to the switch %q", s.Name, start)
		}
	}
}

func (c *Config) checkPorts(d *yamlnode.Doc) {
	rates := map[Endpoint]units.Rate{}
	for _, l := range c.Links {
		rates[l.A], rates[l.B] = l.Rate, l.Rate
	}
	for i, s := range c.Switches {
		seen := yamlnode.Unique[uint32]{}
		for j, p := range s.Ports {
			path := fmt.Sprintf("switches[%d].ports[%d]", i, j)
			seen.Use(d, p.Number, path+".number", fmt.Sprint(p.Number))
			rate, linked := rates[Endpoint{s.Name, p.Number}]
			if !linked {
				d.Fault(path+".number", "is %d, but no link uses port %d of %s", p.Number, p.Number, s.Name)
			} else if p.Rate > rate {
				d.Fault(path+".rate", "is %v, want at most the link's %v", p.Rate, rate)
			}
		}
	}
}

// Line returns the line of a field such as controller.listen, or of the section that would contain it;
// 0 if the file has neither.
func (c *Config) Line(path string) int { return c.lines.Line(path) }

// Given reports whether the file has a field or section.
func (c *Config) Given(path string) bool { return c.lines.Given(path) }

func (c *Config) checkController(d *yamlnode.Doc) {
	k := c.Controller
	if k.FlapHoldMax < k.FlapHold {
		d.Fault("controller.flap_hold_max", "is %v, want at least flap_hold, which is %v", k.FlapHoldMax, k.FlapHold)
	}
	if k.ProbeInterval > 0 && k.ProbeTimeout < 2*k.ProbeInterval {
		d.Fault("controller.probe_timeout", "is %v, want at least two probe intervals, which are %v", k.ProbeTimeout, 2*k.ProbeInterval)
	}
	if k.Listen == k.Metrics && !strings.HasSuffix(k.Listen, ":0") {
		d.Fault("controller.metrics", "is %q, the same as controller.listen, want another address", k.Metrics)
	}
}

// checkTargets finds keys of switches that their target does not use.
func (c *Config) checkTargets(d *yamlnode.Doc) {
	servers := yamlnode.Unique[string]{}
	for i, s := range c.Switches {
		path := fmt.Sprintf("switches[%d]", i)
		for _, k := range []struct {
			key, value, what string
			ok               bool
			with             string
		}{
			{"device_config", s.DeviceConfig, "its program is built in", s.Target.Chip() != "", "tofino1 or tofino2"},
			{keyBFRuntime, s.BFRuntime, "it has no BF Runtime server", s.Target.Chip() != "", "tofino1 or tofino2"},
			{keyThrift, s.Thrift, "it has no Thrift service", s.Target == BMv2, "bmv2"},
		} {
			if k.value != "" && !k.ok {
				d.Fault(path+"."+k.key, "is %q, but the target of the switch %q is %s: %s; want it with %s only", k.value, s.Name, s.Target, k.what, k.with)
			}
		}
		key, server := s.TrafficManager()
		if server == "" {
			continue
		}
		at := path + "." + key
		servers.Use(d, strings.ToLower(server), at, fmt.Sprintf("%q", server))
		if strings.EqualFold(server, s.Address) {
			d.Fault(at, "is %q, which is the address of the P4Runtime server, want that of the traffic manager's server", server)
		}
	}
}
