// Package routing is the feature that forwards IPv4: one /32 entry a host, one group of
// next hops for each destination switch, one member for each port. Member ids are port
// numbers and group ids number the destination switches, so that a lost link changes the
// members of a few groups and nothing else.
package routing

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/p4src/ids"
)

type routing struct{}

// New returns the feature; it has no loop.
func New(feature.Hub) feature.Feature { return routing{} }

// Name implements feature.Feature.
func (routing) Name() string { return "routing" }

// Parts implements feature.Feature.
func (routing) Parts() []feature.Part {
	return []feature.Part{{
		Name:    "routing.ipv4",
		Objects: pipeline.Objects{Tables: []string{ids.TableIPv4LPMName}, Profiles: []string{ids.ProfileECMPName}},
		Instead: "nothing is forwarded",
	}}
}

// Attach implements feature.Feature.
func (routing) Attach(*feature.Env, feature.Switch) feature.Loop { return nil }

// Desired implements feature.Feature.
func (routing) Desired(env *feature.Env, sw string) ([]*p4v1.Entity, error) {
	var c feature.Collect
	p := env.Pipeline
	members, groups := map[uint32]bool{}, map[uint32]bool{}
	for _, r := range env.Routes[sw] {
		var ports []uint32
		for _, hop := range r.NextHops {
			ports = append(ports, hop.Port)
			if !members[hop.Port] {
				members[hop.Port] = true
				c.Add(member(p, hop))
			}
		}
		addr := r.Prefix.Addr().As4()
		entry := p.Entry(ids.TableIPv4LPMName).LPM("dst_addr", addr[:], r.Prefix.Bits())
		if r.Group == 0 {
			c.Add(entry.Member(ports[0]).Entity())
			continue
		}
		if !groups[r.Group] {
			groups[r.Group] = true
			c.Add(p.Group(ids.ProfileECMPName, r.Group, ports))
		}
		c.Add(entry.Group(r.Group).Entity())
	}
	return c.Result()
}

func member(p *pipeline.Pipeline, hop topology.NextHop) (*p4v1.Entity, error) {
	return p.Member(ids.ProfileECMPName, hop.Port, ids.ActionSetNextHopName,
		pipeline.Arg{Name: "port", Value: pipeline.Uint(uint64(hop.Port))},
		pipeline.Arg{Name: "src_mac", Value: hop.SrcMAC[:]},
		pipeline.Arg{Name: "dst_mac", Value: hop.DstMAC[:]},
	)
}
