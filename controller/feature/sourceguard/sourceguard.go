// Package sourceguard is the IP source guard, which keeps hosts to their own addresses: a port that
// leads to a host takes IP only from the host's addresses (RFC 2827, BCP 38), and IPv6 from what is good
// on the link alone, which no switch forwards. What it drops is counted as source.
package sourceguard

import (
	"net/netip"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
)

// Config is the section source_check.
type Config struct {
	// EdgePorts says that ports to hosts are checked; default false.
	EdgePorts bool
}

// Of returns the section of a configuration.
func Of(c *config.Config) Config { return config.Of[Config](c, "source_check") }

// read is config.Section.Read.
func read(m *yamlnode.Map, _ *config.Config) any {
	return Config{EdgePorts: m.Bool("edge_ports", false)}
}

type feat struct{}

// New returns the feature; it has no loop.
func New(feature.Callbacks) feature.Feature { return feat{} }

// Name implements feature.Feature.
func (feat) Name() string { return "sourcecheck" }

// checkCapability is the table of sources.
var checkCapability = feature.Capability{
	Name:     "sourcecheck.ipv4",
	Objects:  pipeline.Objects{Tables: []string{ids.TableSourceCheckName}},
	FilledBy: "hosts",
	Instead:  "source_check.edge_ports must be false",
}

// ipv6Capability is the same of IPv6; a program without it does not forward IPv6.
var ipv6Capability = feature.Capability{
	Name:     "sourcecheck.ipv6",
	Objects:  pipeline.Objects{Tables: []string{ids.TableSourceCheckIPv6Name}},
	FilledBy: "hosts",
	Instead:  "IPv6 is not forwarded",
}

// Describe implements feature.Feature.
func (feat) Describe() feature.Description {
	return feature.Description{
		Capabilities: []feature.Capability{checkCapability, ipv6Capability},
		Section:      config.Section{Key: "source_check", Read: read},
	}
}

// Attach implements feature.Feature.
func (feat) Attach(*feature.Env, feature.Switch) feature.Loop { return nil }

// Desired implements feature.Feature. The longer prefix wins: the host's address is permitted,
// all others are refused.
func (feat) Desired(env *feature.Env) ([]*p4v1.Entity, error) {
	if !Of(env.Config).EdgePorts {
		return nil, nil
	}
	if !checkCapability.In(env.Pipeline) {
		return nil, env.Refuse("source_check.edge_ports", "true", checkCapability)
	}
	var c feature.EntityList
	for _, port := range env.Graph.Ports(env.Switch.Name) {
		host := env.Config.Host(port.Peer)
		if host == nil {
			continue // it leads to a switch
		}
		entry := func(table string, prefix netip.Prefix, action string) {
			c.Add(env.Pipeline.Entry(table).Exact("ingress_port", p4msg.Uint(uint64(port.Number))).
				LPM("src_addr", prefix.Addr().AsSlice(), prefix.Bits()).Action(action).Entity())
		}
		entry(ids.TableSourceCheckName, netip.PrefixFrom(host.IPv4, 32), ids.ActionPermitSourceName)
		entry(ids.TableSourceCheckName, netip.PrefixFrom(netip.IPv4Unspecified(), 0), ids.ActionRefuseSourceName)
		if !ipv6Capability.In(env.Pipeline) {
			continue
		}
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
