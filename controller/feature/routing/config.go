package routing

import (
	"fmt"
	"math"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/internal/ecmp"
	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
)

// sectionKey is the section's.
const sectionKey = "ecmp"

// What is hashed.
const (
	fiveTuple = "five-tuple"
	queuePair = "queue-pair"
	flowLabel = "flow-label"
)

// Config is the section ecmp: how a switch chooses among next hops of equal cost. The fabric has one section, and
// a switch may override any key of it in a section of its own.
type Config struct {
	// Hash is what is hashed: five-tuple is both addresses, the protocol and the ports of TCP or UDP;
	// queue-pair adds the destination's queue pair of RoCE packets, so that a NIC that gives all its queue
	// pairs one source port uses more than one way; flow-label is the five-tuple of IPv4, and of IPv6 both
	// addresses and the flow label (RFC 6438); default five-tuple.
	Hash string
	// Seed makes another draw of all paths, 0 … 4294967295; default 0. Switches with one seed still differ, by
	// their device_id: where switches in a row hash alike, a part of the links stays empty.
	Seed uint32
}

// Of returns the section of a switch.
func Of(s *config.Switch) Config { return config.Of[Config](s, sectionKey) }

// readOver reads a section over what c is.
func (c Config) readOver(m *yamlnode.Map) any {
	c.Hash = m.OneOf("hash", c.Hash, fiveTuple, queuePair, flowLabel)
	c.Seed = uint32(m.Int("seed", int(c.Seed), 0, math.MaxUint32))
	return c
}

// Fields returns what is hashed.
func (c Config) Fields() ecmp.Fields {
	return map[string]ecmp.Fields{queuePair: ecmp.QueuePair, flowLabel: ecmp.FlowLabel}[c.Hash]
}

// SeedOf returns what a switch adds to its hash.
func SeedOf(s *config.Switch) uint32 { return ecmp.Seed(Of(s).Seed, s.DeviceID) }

func section() config.Section {
	return config.Section{
		Key:  sectionKey,
		Read: func(m *yamlnode.Map, _ *config.Config) any { return Config{Hash: fiveTuple}.readOver(m) },
		ReadSwitch: func(m *yamlnode.Map, c *config.Config) any {
			return config.Of[Config](c, sectionKey).readOver(m)
		},
	}
}

// hashCapability is a hash of the switch's own.
var hashCapability = feature.Capability{
	Name:    "routing.ecmp_seed",
	Objects: pipeline.Objects{Tables: []string{ids.TableECMPHashName, ids.TableECMPHashIPv6Name}},
	Instead: "its hash of the five-tuple has no seed",
}

// hash adds what the hash takes.
func hash(c *feature.EntityList, env *feature.Env) {
	own := Of(env.Switch).Hash
	if env.By(hashCapability) != view.ByProgram {
		if own == queuePair || own == flowLabel {
			c.Add(nil, env.Refuse(env.Config.Origin(env.Switch, sectionKey+".hash"), fmt.Sprintf("%q", own), hashCapability))
		}
		return
	}
	seed := pipeline.Arg{Name: "seed", Value: p4msg.Uint(uint64(SeedOf(env.Switch)))}
	six := ids.ActionHashFiveTupleIPv6Name
	if own == flowLabel {
		six = ids.ActionHashFlowLabelName
	}
	c.Add(env.Pipeline.Default(ids.TableECMPHashName).Action(ids.ActionHashFiveTupleName, seed).Entity())
	c.Add(env.Pipeline.Default(ids.TableECMPHashIPv6Name).Action(six, seed).Entity())
	if own == queuePair {
		c.Add(env.Pipeline.Entry(ids.TableECMPHashName).Exact("roce", p4msg.Uint(1)).Action(ids.ActionHashQueuePairName, seed).Entity())
		c.Add(env.Pipeline.Entry(ids.TableECMPHashIPv6Name).Exact("roce", p4msg.Uint(1)).Action(ids.ActionHashQueuePairIPv6Name, seed).Entity())
	}
}
