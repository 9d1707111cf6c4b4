// Package sourceguard is the IP source guard: a port that leads to a host accepts IP only from the host's addresses
// (RFC 2827, BCP 38), and IPv6 also from addresses that are valid on the link alone, which no switch forwards. Drops
// are counted with the reason source.
package sourceguard

import (
	"fmt"
	"net/netip"
	"strings"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
)

// Config is the section source_check.
type Config struct {
	// EdgePorts makes a port to a host accept IP only from the host's own addresses; default true. Set it to false
	// for hosts that also send from other addresses, such as those of containers or virtual machines.
	EdgePorts bool
}

// FromConfig returns the section of a configuration.
func FromConfig(c *config.Config) Config { return config.SectionOf[Config](c, "source_check") }

func read(m *yamlnode.Map, _ *config.Config) any {
	return Config{EdgePorts: m.Bool("edge_ports", true)}
}

// checkCapability is the table of sources.
var checkCapability = feature.Capability{
	Name: "sourcecheck.ipv4", Objects: pipeline.Objects{Tables: []string{ids.TableSourceCheckName}}, FilledBy: "hosts",
	Instead: "its hosts can send with each other's addresses",
}

// ipv6Capability is the table of IPv6 sources. A program without it does not forward IPv6.
var ipv6Capability = feature.Capability{
	Name: "sourcecheck.ipv6", Objects: pipeline.Objects{Tables: []string{ids.TableSourceCheckIPv6Name}}, FilledBy: "hosts",
	Instead: "IPv6 is not forwarded",
}

// New returns the feature.
func New(feature.Callbacks) *feature.Feature {
	return &feature.Feature{
		Name: "sourcecheck", Capabilities: []feature.Capability{checkCapability, ipv6Capability},
		Section: config.Section{Key: "source_check", Read: read}, Desired: desired, Advise: advise,
	}
}

// desired is feature.Feature.Desired. The longest prefix wins: the host's addresses are permitted, all others
// refused.
func desired(env *feature.Env) ([]*p4v1.Entity, error) {
	if !FromConfig(env.Config).EdgePorts {
		return nil, nil
	}
	var c feature.EntityList
	for _, port := range env.Graph.Ports(env.Switch.Name) {
		host := env.Config.Host(port.Peer)
		if host == nil {
			continue // the port leads to a switch
		}
		entry := func(table string, prefix netip.Prefix, action string) {
			c.Add(env.Pipeline.Entry(table).Exact("ingress_port", p4rtmsg.Uint(uint64(port.Number))).
				LPM("src_addr", prefix.Addr().AsSlice(), prefix.Bits()).Action(action).Entity())
		}
		if host.IPv4.IsValid() {
			entry(ids.TableSourceCheckName, netip.PrefixFrom(host.IPv4, 32), ids.ActionPermitSourceName)
		}
		entry(ids.TableSourceCheckName, netip.PrefixFrom(netip.IPv4Unspecified(), 0), ids.ActionRefuseSourceName)
		permitted := []netip.Prefix{netip.MustParsePrefix("fe80::/10"), netip.PrefixFrom(netip.IPv6Unspecified(), 128)}
		if host.IPv6.IsValid() {
			permitted = append(permitted, netip.PrefixFrom(host.IPv6, 128))
		}
		for _, prefix := range permitted {
			entry(ids.TableSourceCheckIPv6Name, prefix, ids.ActionPermitSourceIPv6Name)
		}
		entry(ids.TableSourceCheckIPv6Name, netip.PrefixFrom(netip.IPv6Unspecified(), 0), ids.ActionRefuseSourceIPv6Name)
	}
	return c.Result()
}

const mostPorts = 8

// advise is feature.Feature.Advise: it says which port takes which addresses.
func advise(env *feature.Env, _ *config.Switch) []string {
	if !FromConfig(env.Config).EdgePorts || !checkCapability.InProgram(env.Pipeline) {
		return nil
	}
	var ports []string
	for _, port := range env.Graph.Ports(env.Switch.Name) {
		if host := env.Config.Host(port.Peer); host != nil {
			var own []string
			for _, a := range host.Addresses() {
				own = append(own, a.String())
			}
			ports = append(ports, fmt.Sprintf("%d from %s (%s)", port.Number, strings.Join(own, " and "), host.Name))
		}
	}
	if len(ports) == 0 {
		return nil
	}
	if more := len(ports) - mostPorts; more > 0 {
		ports = append(ports[:mostPorts], fmt.Sprintf("%d more likewise", more))
	}
	return []string{fmt.Sprintf("ports accept IP only from their host's own addresses, and drop other packets, counted as source: port %s; source_check: {edge_ports: false} switches this off",
		strings.Join(ports, ", "))}
}
