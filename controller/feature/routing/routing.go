// Package routing is the feature that forwards IPv4 and IPv6: an entry for each prefix of another leaf's
// hosts, a /32 or /128 entry for each address of a host of the switch, one group of next hops for each other leaf, one
// member for each port. Member ids are port numbers and group ids number the leaves, so that a lost
// link changes the members of a few groups and nothing else.
package routing

import (
	"fmt"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/p4src/ids"
)

type routing struct{}

// ipv6Capability is the forwarding of IPv6.
var ipv6Capability = feature.Capability{
	Name:     "routing.ipv6",
	Objects:  pipeline.Objects{Tables: []string{ids.TableIPv6LPMName, ids.TableECMPHashIPv6Name}, Profiles: []string{ids.ProfileECMPName}},
	FilledBy: "hosts",
	Instead:  "hosts must have no ipv6",
}

// New returns the feature; it has no loop.
func New(feature.Callbacks) feature.Feature { return routing{} }

// Name implements feature.Feature.
func (routing) Name() string { return "routing" }

// Describe implements feature.Feature.
func (routing) Describe() feature.Description {
	return feature.Description{
		Capabilities: []feature.Capability{{
			Name:     "routing.ipv4",
			Objects:  pipeline.Objects{Tables: []string{ids.TableIPv4LPMName}, Profiles: []string{ids.ProfileECMPName}},
			FilledBy: "hosts", // and each switch with hosts has a group
			Instead:  "nothing is forwarded",
		}, ipv6Capability, hashCapability},
		Section: section(),
	}
}

// Attach implements feature.Feature.
func (routing) Attach(*feature.Env, feature.Switch) feature.Loop { return nil }

// Desired implements feature.Feature: a member for each port, and the hash that chooses among them.
func (routing) Desired(env *feature.Env) ([]*p4v1.Entity, error) {
	var c feature.EntityList
	hash(&c, env)
	if !ipv6Capability.In(env.Pipeline) {
		for i, h := range env.Config.Hosts {
			if h.IPv6.IsValid() {
				c.Add(nil, env.Refuse(fmt.Sprintf("hosts[%d].ipv6", i), h.IPv6.String(), ipv6Capability))
				break
			}
		}
	}
	for _, p := range env.Graph.Ports(env.Switch.Name) {
		c.Add(env.Pipeline.Member(ids.ProfileECMPName, p.Number, ids.ActionSetNextHopName,
			pipeline.Arg{Name: "port", Value: p4msg.Uint(uint64(p.Number))},
			pipeline.Arg{Name: "src_mac", Value: p.MAC[:]},
			pipeline.Arg{Name: "dst_mac", Value: p.PeerMAC[:]},
		))
	}
	return c.Result()
}

var _ feature.Router = routing{}

// Route implements feature.Router: an entry for each prefix and, towards another leaf, the group that
// these lead to.
func (routing) Route(env *feature.Env, r topology.Route) ([]*p4v1.Entity, error) {
	var c feature.EntityList
	for i, prefix := range r.Prefixes {
		table := ids.TableIPv4LPMName
		if prefix.Addr().Is6() {
			if table = ids.TableIPv6LPMName; !ipv6Capability.In(env.Pipeline) {
				continue // Desired refuses it
			}
		}
		entry := env.Pipeline.Entry(table).LPM("dst_addr", prefix.Addr().AsSlice(), prefix.Bits())
		if r.Group == 0 {
			c.Add(entry.Member(r.NextHops[i].Port).Entity())
		} else {
			c.Add(entry.Group(r.Group).Entity())
		}
	}
	if r.Group == 0 {
		return c.Result()
	}
	group := env.Pipeline.PortGroup // a switch that loses a port goes on with the others at once
	if env.Switch.Target != config.Embedded {
		// Stratum refuses watch ports (bfrt_action_profile_manager.cc). simple_switch_grpc takes them
		// and dies of SIGFPE at a packet to a group whose members all lost their ports, or seem to:
		// in a network namespace whose /sys is not its own BMv2 finds no carrier of any interface.
		group = env.Pipeline.Group
	}
	var ports []uint32
	for _, hop := range r.NextHops {
		ports = append(ports, hop.Port)
	}
	c.Add(group(ids.ProfileECMPName, r.Group, ports))
	return c.Result()
}
