// Package routing is the feature that forwards IPv4 and IPv6: an entry for each prefix of another leaf's
// hosts, a /32 or /128 entry for each address of a host of the switch, one group of next hops for each other leaf, one
// member for each port. Member ids are port numbers and group ids number the leaves, so that a lost
// link changes the members of a few groups and nothing else.
package routing

import (
	"fmt"
	"math"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/internal/ecmp"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/units"
)

// ipv6Capability is the forwarding of IPv6.
var ipv6Capability = feature.Capability{
	Name:     "routing.ipv6",
	Objects:  pipeline.Objects{Tables: []string{ids.TableIPv6LPMName, ids.TableECMPHashIPv6Name}, Profiles: []string{ids.ProfileECMPName}},
	FilledBy: "hosts", Instead: "IPv6 is not forwarded",
}

var ipv4Capability = feature.Capability{
	Name: "routing.ipv4", Objects: pipeline.Objects{Tables: []string{ids.TableIPv4LPMName}, Profiles: []string{ids.ProfileECMPName}},
	FilledBy: "hosts", // each switch with hosts also has a group
	Instead:  "nothing is forwarded",
}

// New returns the feature.
func New(feature.Callbacks) *feature.Feature {
	return &feature.Feature{
		Name: "routing", Capabilities: []feature.Capability{ipv4Capability, ipv6Capability, hashCapability, labelCapability}, Section: section(),
		Desired: desired, Route: route, Advise: advise,
	}
}

// advise is feature.Feature.Advise: it counts the host routes that hosts at several leaves cost each switch.
func advise(env *feature.Env, _ *config.Switch) []string {
	all, hosts := env.Graph.Prefixes()
	if hosts == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %s to all racks are host routes, for hosts at several leaves: those at the same leaves share a route where their addresses have a prefix to themselves",
		hosts, units.Count(all, "route"))}
}

// desired is feature.Feature.Desired: a member for each port, and the hash that chooses among them.
func desired(env *feature.Env) ([]*p4v1.Entity, error) {
	var c feature.EntityList
	hash(&c, env)
	for _, p := range env.Graph.Ports(env.Switch.Name) {
		for _, profile := range profiles(env.Pipeline) {
			c.Add(env.Pipeline.Member(profile, p.Number, ids.ActionSetNextHopName,
				feature.Arg("port", uint64(p.Number)), pipeline.Arg{Name: "src_mac", Value: p.MAC[:]}, pipeline.Arg{Name: "dst_mac", Value: p.PeerMAC[:]}))
		}
	}
	return c.Result()
}

var ipv6Profile = pipeline.Objects{Profiles: []string{ids.ProfileECMPIPv6Name}}

// profiles returns the action profiles of next hops. A chip's program has one for each version of IP.
func profiles(p *pipeline.Pipeline) []string {
	list := []string{ids.ProfileECMPName}
	if len(p.Lacks(ipv6Profile)) == 0 {
		list = append(list, ids.ProfileECMPIPv6Name)
	}
	return list
}

// route is feature.Feature.Route: an entry for each prefix and, towards other leaves, their group.
func route(env *feature.Env, r topology.Route) ([]*p4v1.Entity, error) {
	var c feature.EntityList
	for i, prefix := range r.Prefixes {
		table := ids.TableIPv4LPMName
		if prefix.Addr().Is6() {
			table = ids.TableIPv6LPMName
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
		// Stratum refuses watch ports (bfrt_action_profile_manager.cc). simple_switch_grpc accepts them, but dies
		// of SIGFPE when a packet goes to a group without a live port. BMv2 also considers ports dead if /sys
		// belongs to another network namespace, because it then finds no carrier of any interface.
		group = env.Pipeline.Group
	}
	var ports []uint32
	for _, hop := range r.NextHops {
		ports = append(ports, hop.Port)
	}
	for _, profile := range profiles(env.Pipeline) {
		c.Add(group(profile, r.Group, ports))
	}
	return c.Result()
}

const sectionKey = "ecmp"

// Values of Config.Hash.
const (
	fiveTuple = "five-tuple"
	queuePair = "queue-pair"
	flowLabel = "flow-label"
)

// Config is the section ecmp: how a switch chooses among next hops of equal cost. The fabric has one section, and a
// switch may override any of its keys in its own section.
type Config struct {
	// Hash selects the hashed fields; default five-tuple: both addresses, the protocol and the ports of TCP or UDP.
	// queue-pair adds the destination queue pair of RoCE packets, so that a NIC with one source port for all queue
	// pairs uses several paths. flow-label hashes the five-tuple of IPv4, and of IPv6 both addresses and the flow
	// label (RFC 6438).
	Hash string
	// Seed changes the choice of all paths, 0 … 4294967295; default 0. Switches with the same seed still differ, by
	// their device_id: if switches in a row used the same hash, some links would stay unused.
	Seed uint32
}

// FromSwitch returns the section of a switch.
func FromSwitch(s *config.Switch) Config { return config.SectionOf[Config](s, sectionKey) }

func readOver(m *yamlnode.Map, c Config) Config {
	c.Hash = m.OneOf("hash", c.Hash, fiveTuple, queuePair, flowLabel)
	c.Seed = uint32(m.Int("seed", int(c.Seed), 0, math.MaxUint32))
	return c
}

// Fields returns the hashed fields.
func (c Config) Fields() ecmp.Fields {
	return map[string]ecmp.Fields{queuePair: ecmp.QueuePair, flowLabel: ecmp.FlowLabel}[c.Hash]
}

// SeedOf returns the seed of a switch's hash.
func SeedOf(s *config.Switch) uint32 { return ecmp.Seed(FromSwitch(s).Seed, s.DeviceID) }

func section() config.Section {
	return config.Overridable(sectionKey, func(*config.Config) Config { return Config{Hash: fiveTuple} }, readOver)
}

// hashCapability is a hash of the switch's own.
var hashCapability = feature.Capability{
	Name: "routing.ecmp_seed", Objects: pipeline.Objects{Tables: []string{ids.TableECMPHashName}},
	Instead: "its hash of the five-tuple has no seed",
}

// labelCapability is a hash of IPv6's flow label.
var labelCapability = feature.Capability{
	Name: "routing.flow_label", Objects: pipeline.Objects{Tables: []string{ids.TableECMPHashIPv6Name}},
	Instead: "five-tuple and queue-pair are what it hashes",
}

// hash adds the entries that configure the hash.
func hash(c *feature.EntityList, env *feature.Env) {
	own := FromSwitch(env.Switch).Hash
	seed := feature.Arg("seed", uint64(SeedOf(env.Switch)))
	six := ids.ActionHashFiveTupleIPv6Name
	if own == flowLabel {
		six = ids.ActionHashFlowLabelName
	}
	add := func(table, all, pair string) {
		c.Add(env.Pipeline.Default(table).Action(all, seed).Entity())
		if own == queuePair {
			c.Add(env.Pipeline.Entry(table).Exact("roce", p4rtmsg.Uint(1)).Action(pair, seed).Entity())
		}
	}
	add(ids.TableECMPHashName, ids.ActionHashFiveTupleName, ids.ActionHashQueuePairName)
	add(ids.TableECMPHashIPv6Name, six, ids.ActionHashQueuePairIPv6Name)
}
