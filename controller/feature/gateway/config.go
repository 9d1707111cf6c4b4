package gateway

import (
	"net/netip"
	"slices"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/yamlnode"
)

// sectionKey is the section's.
const sectionKey = "gateway"

// Config is the section gateway: what a leaf answers its hosts. The fabric has one section, and a switch
// may override any key of it in a section of its own. Targets: bmv2 and embedded; elsewhere it does nothing.
type Config struct {
	// IPv4 is the gateway's address, which every leaf has and no host; default 169.254.1.1, of a link
	// alone (RFC 3927), so that it suits hosts of any prefix; "off" for none.
	IPv4 netip.Addr
	// IPv6 is the same of IPv6; default fe80::1; "off" for none.
	IPv6 netip.Addr
	// Proxy makes a leaf answer for every other address, too (RFC 1027; RFC 4861, 7.2.8): any address is
	// then good as a gateway, and hosts whose prefix has other hosts in it reach them. Nobody else could
	// answer, since switches route between all ports; default true.
	Proxy bool
}

// Of returns the section of a switch.
func Of(s *config.Switch) Config { return config.Of[Config](s, sectionKey) }

// readOver reads a section over what c is.
func (c Config) readOver(m *yamlnode.Map) any {
	c.IPv4 = address(m, "ipv4", c.IPv4, `a unicast IPv4 address such as "10.0.1.254"`, netip.Addr.Is4)
	c.IPv6 = address(m, "ipv6", c.IPv6, `a unicast IPv6 address such as "fe80::1"`, netip.Addr.Is6)
	c.Proxy = m.Bool("proxy", c.Proxy)
	return c
}

// off is none of an address.
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
	return config.Section{
		Key: sectionKey,
		Read: func(m *yamlnode.Map, _ *config.Config) any {
			return Config{IPv4: netip.AddrFrom4([4]byte{169, 254, 1, 1}), IPv6: netip.MustParseAddr("fe80::1"), Proxy: true}.readOver(m)
		},
		ReadSwitch: func(m *yamlnode.Map, c *config.Config) any {
			return config.Of[Config](c, sectionKey).readOver(m)
		},
		Check: check,
	}
}

// check is config.Section.Check: a gateway's address is no host's.
func check(c *config.Config, d *yamlnode.Doc) {
	for i := range c.Switches {
		s := &c.Switches[i]
		for n, ip := range []netip.Addr{Of(s).IPv4, Of(s).IPv6} {
			if at := slices.IndexFunc(c.Hosts, func(h config.Host) bool { return ip.IsValid() && slices.Contains(h.Addresses(), ip) }); at >= 0 {
				d.Fault(c.Origin(s, sectionKey+[]string{".ipv4", ".ipv6"}[n]), "is %v, which is the host %q's: want an address that no host has", ip, c.Hosts[at].Name)
				return
			}
		}
	}
}
