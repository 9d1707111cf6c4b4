package controller

import (
	"maps"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/conduct"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/controller/feature/routing"
	"github.com/headgate/headgate/controller/feature/soze"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/internal/ecmp"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/preview/observed"
)

// Fabric returns the running configuration with the state of its links; before the first Apply the generation alone.
func (c *Controller) Fabric() *pb.GetFabricResponse {
	c.mu.RLock()
	cur, generation := c.current, c.generation
	c.mu.RUnlock()
	if cur == nil {
		return &pb.GetFabricResponse{Generation: generation}
	}
	return FabricOf(cur.config, generation, func(link string) (pb.PortStatus_State, string) {
		state, why, _ := c.links.portState(link)
		return state, why
	})
}

// FabricOf returns the fabric of a configuration, with the states of links, by name, and why one is down.
func FabricOf(cfg *config.Config, generation uint64, state func(link string) (pb.PortStatus_State, string)) *pb.GetFabricResponse {
	f := &pb.GetFabricResponse{Name: cfg.Name, Generation: generation, Config: string(cfg.Source), Scale: cfg.Scale}
	for _, s := range cfg.Switches {
		f.Switches = append(f.Switches, &pb.Switch{Name: s.Name, DeviceId: s.DeviceID, Address: s.Address})
	}
	for _, h := range cfg.Hosts {
		host := &pb.Host{Name: h.Name, Mac: net.HardwareAddr(h.MAC[:]).String()}
		if h.IPv4.IsValid() {
			host.Ipv4 = h.IPv4.String()
		}
		if h.IPv6.IsValid() {
			host.Ipv6 = h.IPv6.String()
		}
		f.Hosts = append(f.Hosts, host)
	}
	end := func(e config.Endpoint) *pb.Endpoint { return &pb.Endpoint{Node: e.Node, Port: e.Port} }
	for _, l := range cfg.Links {
		link := &pb.Link{A: end(l.A), B: end(l.B), RateBps: uint64(l.Rate), Delay: pb.Duration(cfg.Scaled(l.Delay).Duration())}
		link.State, link.Reason = state(l.Name)
		f.Links = append(f.Links, link)
	}
	return f
}

// Switches returns every switch's session, capabilities, ports and the features' status, in the order of the
// configuration.
func (c *Controller) Switches() []*pb.SwitchStatus {
	cur := c.snapshot()
	if cur == nil {
		return nil
	}
	list := make([]*pb.SwitchStatus, 0, len(cur.config.Switches))
	for _, s := range cur.config.Switches {
		list = append(list, c.oneSwitch(cur, s.Name))
	}
	return list
}

// Switch returns the status of one switch; false if there is none of that name.
func (c *Controller) Switch(name string) (*pb.SwitchStatus, bool) {
	cur := c.snapshot()
	if cur == nil || cur.devices[name] == nil {
		return nil, false
	}
	return c.oneSwitch(cur, name), true
}

func (c *Controller) oneSwitch(a *applied, name string) *pb.SwitchStatus {
	v := a.devices[name].Status()
	v.Ports, v.Features = c.ports(a, name), c.status(name)
	return v
}

func (c *Controller) ports(a *applied, name string) []*pb.PortStatus {
	var list []*pb.PortStatus
	for _, p := range a.graph.Ports(name) {
		state, why, outOfService := c.links.portState(p.Link)
		list = append(list, &pb.PortStatus{Port: p.Number, Peer: p.Peer, State: state, Reason: why, OutOfService: outOfService})
	}
	return list
}

// SwitchSummaries returns the name and the ports of the switch with the given name, or of all switches if name is "".
// With status it adds the status that features report for each switch.
func (c *Controller) SwitchSummaries(name string, status bool) []*pb.SwitchStatus {
	cur := c.snapshot()
	if cur == nil {
		return nil
	}
	var list []*pb.SwitchStatus
	for _, s := range cur.config.Switches {
		if name == "" || s.Name == name {
			v := &pb.SwitchStatus{Name: s.Name, Ports: c.ports(cur, s.Name)}
			if status {
				v.Features = c.status(s.Name)
			}
			list = append(list, v)
		}
	}
	return list
}

func (c *Controller) status(sw string) *pb.FeatureStatus {
	s := &pb.FeatureStatus{}
	for _, f := range c.features {
		if f.Status != nil {
			f.Status(sw, s)
		}
	}
	return s
}

// Config returns the running configuration, nil before the first Apply. It is immutable.
func (c *Controller) Config() *config.Config {
	if cur := c.snapshot(); cur != nil {
		return cur.config
	}
	return nil
}

// HostParameters returns the parameters that all hosts share, in one order; nil before the first Apply.
func (c *Controller) HostParameters() []*pb.HostParameter {
	if cfg := c.Config(); cfg != nil {
		return c.hostParameters(cfg)
	}
	return nil
}

func (c *Controller) hostParameters(cfg *config.Config) []*pb.HostParameter {
	var list []*pb.HostParameter
	for _, f := range c.features {
		if f.HostParameters != nil {
			list = append(list, f.HostParameters(cfg)...)
		}
	}
	for _, p := range c.opts.Participants {
		if s, ok := p.(interface {
			HostParameters(c *config.Config) []*pb.HostParameter
		}); ok {
			list = append(list, s.HostParameters(cfg)...)
		}
	}
	return list
}

// Counted returns the flow counters of each host's first-hop switch, so a pair of hosts is counted
// once.
func (c *Controller) Counted() []observed.Source {
	cfg := c.Config()
	if cfg == nil {
		return nil
	}
	by := map[string]observed.Traffic{}
	for _, s := range cfg.Switches {
		for _, f := range c.features {
			if f.Counted != nil {
				if t, counts := f.Counted(s.Name); counts {
					by[s.Name] = t
				}
			}
		}
	}
	var list []observed.Source
	for _, l := range cfg.Links {
		sw, host := l.A.Node, l.B.Node
		if cfg.Host(host) == nil {
			sw, host = host, sw
		}
		if t, counts := by[sw]; counts && cfg.Host(host) != nil {
			list = append(list, t.Source(host, cfg.Host(host).Addresses(), sw))
		}
	}
	return list
}

// Conduct returns the judge of hosts' reports.
func (c *Controller) Conduct() *conduct.Judge { return c.conduct }

// Path returns the switch ports that a flow leaves by under the running configuration, the first switch's first, or
// nil if that is not known (see topology.Routes.Path). A flow to the UDP port of RoCEv2 or of maxQD's shim is
// UDP; others are TCP.
func (c *Controller) Path(src, dst netip.AddrPort) []config.Endpoint {
	cur := c.snapshot()
	if cur == nil {
		return nil
	}
	routes := cur.routes.Load()
	if routes == nil {
		return nil
	}
	f := ecmp.Flow{Src: src.Addr(), Dst: dst.Addr(), Protocol: unix.IPPROTO_TCP, SrcPort: src.Port(), DstPort: dst.Port()}
	if dst.Port() == ids.UDPPortRoCE || dst.Port() == soze.FromConfig(cur.config).UDPPort {
		f.Protocol = unix.IPPROTO_UDP
	}
	return routes.Path(f, func(sw string) topology.Hashing {
		s := cur.config.Switch(sw)
		return topology.Hashing{Seed: routing.SeedOf(s), By: routing.FromSwitch(s).Fields()}
	})
}

// judged returns the ports of a fabric for the judge of hosts' reports.
func judged(cfg *config.Config, g *topology.Graph) (ports []conduct.Port) {
	queue := int(qos.FromConfig(cfg).ClassOf(soze.FromConfig(cfg).DSCP).Queue)
	for _, s := range cfg.Switches {
		for _, p := range g.Ports(s.Name) {
			port := conduct.Port{Endpoint: config.Endpoint{Node: s.Name, Port: p.Number}, Peer: p.Peer, Rate: p.Rate, Queue: queue}
			if host := cfg.Host(p.Peer); host != nil {
				port.Addresses = [2]netip.Addr{host.IPv4, host.IPv6}
			}
			ports = append(ports, port)
		}
	}
	return ports
}

// HostAlarms returns, for each host, how often each event of the kinds host.* was raised.
func (c *Controller) HostAlarms() map[conduct.HostAlarm]uint64 {
	c.alarmsMu.Lock()
	defer c.alarmsMu.Unlock()
	return maps.Clone(c.alarms)
}

// countAlarm counts an event that names a host of the fabric.
func (c *Controller) countAlarm(e *pb.Event) {
	kind, ours := strings.CutPrefix(e.Kind, "host.")
	if !ours || strings.HasSuffix(kind, "_over") {
		return
	}
	c.alarmsMu.Lock()
	defer c.alarmsMu.Unlock()
	c.alarms[conduct.HostAlarm{Host: e.Subject, Alarm: kind}]++
}
