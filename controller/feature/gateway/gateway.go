// Package gateway is the feature that makes a leaf the gateway of its hosts: the switch itself answers
// ARP, neighbour solicitations and pings for the gateway's address, and ARP and solicitations for every
// other address as a proxy. So a host needs an address and a default route, and no neighbour entry.
package gateway

import (
	"net"
	"net/netip"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
)

// mac is the gateway's MAC address, the same at every leaf so that a host may move. It equals packet.Gateway, to
// which host agents send.
var mac = topology.MAC{0x02, 0, 0, 0, 0, 0xfe}

// New returns the feature.
func New(feature.Callbacks) *feature.Feature {
	return &feature.Feature{Name: "gateway", Capabilities: []feature.Capability{answers}, Section: section(), Desired: desired}
}

// answers are the addresses that the program answers with.
var answers = feature.Capability{
	Name: "gateway", Objects: pipeline.Objects{Tables: []string{ids.TableGatewayIPv4Name, ids.TableGatewayIPv6Name}},
	Chip:    "its ingress has no stages left",
	Instead: "hosts need a neighbour entry for their gateway, with the MAC address " + net.HardwareAddr(mac[:]).String(),
}

// desired is feature.Feature.Desired: entries on switches with hosts.
func desired(env *feature.Env) ([]*p4v1.Entity, error) {
	toHost := func(p topology.Port) bool { return p.PeerPort == 0 }
	if !slices.ContainsFunc(env.Graph.Ports(env.Switch.Name), toHost) {
		return nil, nil
	}
	if !answers.InProgram(env.Pipeline) {
		if field := env.Config.Origin(env.Switch, sectionKey); env.Config.Given(field) {
			return nil, env.Refuse(field, "set", answers)
		}
		return nil, nil
	}
	var c feature.EntityList
	answer := pipeline.Arg{Name: "mac", Value: mac[:]}
	add := func(prefix netip.Prefix, table, action string) {
		c.Add(env.Pipeline.Entry(table).LPM("addr", prefix.Addr().AsSlice(), prefix.Bits()).Action(action, answer).Entity())
	}
	cfg := FromSwitch(env.Switch)
	if cfg.IPv4.IsValid() {
		add(netip.PrefixFrom(cfg.IPv4, 32), ids.TableGatewayIPv4Name, ids.ActionOwnIPv4Name)
	}
	if cfg.IPv6.IsValid() {
		add(netip.PrefixFrom(cfg.IPv6, 128), ids.TableGatewayIPv6Name, ids.ActionOwnIPv6Name)
	}
	if cfg.Proxy {
		add(netip.PrefixFrom(netip.IPv4Unspecified(), 0), ids.TableGatewayIPv4Name, ids.ActionProxyIPv4Name)
		add(netip.PrefixFrom(netip.IPv6Unspecified(), 0), ids.TableGatewayIPv6Name, ids.ActionProxyIPv6Name)
	}
	return c.Result()
}

const sectionKey = "gateway"

// Config is the section gateway: the addresses for which a leaf answers its hosts. The fabric has one section, and
// a switch may override any of its keys in its own section. Targets: all but tofino1, where plan
// refuses the section and hosts need a neighbour entry for their gateway.
type Config struct {
	// IPv4 is the gateway's address. All leaves have it, and no host may have it. Default 169.254.1.1, a
	// link-local address (RFC 3927), which works for hosts with any prefix; "off" for none.
	IPv4 netip.Addr
	// IPv6 is the gateway's IPv6 address; default fe80::1; "off" for none.
	IPv6 netip.Addr
	// Proxy makes a leaf also answer for every other address (RFC 1027; RFC 4861, 7.2.8). Then any address works as a
	// gateway, and hosts reach other hosts of their prefix. Switches route between all ports, so no other device could
	// answer; default true.
	Proxy bool
}

// FromSwitch returns the section of a switch.
func FromSwitch(s *config.Switch) Config { return config.SectionOf[Config](s, sectionKey) }

func readOver(m *yamlnode.Map, c Config) Config {
	c.IPv4 = address(m, "ipv4", c.IPv4, `a unicast IPv4 address such as "10.0.1.254"`, netip.Addr.Is4)
	c.IPv6 = address(m, "ipv6", c.IPv6, `a unicast IPv6 address such as "fe80::1"`, netip.Addr.Is6)
	c.Proxy = m.Bool("proxy", c.Proxy)
	return c
}

const off = "off"

func address(m *yamlnode.Map, key string, def netip.Addr, want string, is func(netip.Addr) bool) netip.Addr {
	return yamlnode.Scalar(m, key, def, want+", or "+off, func(s string) (netip.Addr, error) {
		a, err := netip.ParseAddr(s)
		switch {
		case s == off:
			return netip.Addr{}, nil
		case err != nil || !is(a) || a.Zone() != "" || a.Is4In6() || a.IsMulticast() || a.IsLoopback() || a.IsUnspecified():
			return a, yamlnode.ErrNotAllowed
		}
		return a, nil
	})
}

func section() config.Section {
	s := config.Overridable(sectionKey, func(*config.Config) Config {
		return Config{IPv4: netip.AddrFrom4([4]byte{169, 254, 1, 1}), IPv6: netip.MustParseAddr("fe80::1"), Proxy: true}
	}, readOver)
	s.Check = check
	return s
}

// check is config.Section.Check: a gateway's address is no host's.
func check(c *config.Config, d *yamlnode.Doc) {
	for i := range c.Switches {
		s := &c.Switches[i]
		for n, ip := range []netip.Addr{FromSwitch(s).IPv4, FromSwitch(s).IPv6} {
			if at := slices.IndexFunc(c.Hosts, func(h config.Host) bool { return ip.IsValid() && slices.Contains(h.Addresses(), ip) }); at >= 0 {
				d.Fault(c.Origin(s, sectionKey+[]string{".ipv4", ".ipv6"}[n]), "is %v, which is the host %q's: want an address that no host has", ip, c.Hosts[at].Name)
				return
			}
		}
	}
}
