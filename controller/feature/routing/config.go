package routing

import (
	"fmt"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
)

// sectionKey is the section's.
const sectionKey = "ecmp"

// What is hashed.
const (
	fiveTuple = "five-tuple"
	flowLabel = "flow-label"
)

// Config is the section ecmp: how a switch chooses among next hops of equal cost. The fabric has one section, and
// a switch may override any key of it in a section of its own.
type Config struct {
	// Hash is what is hashed: five-tuple is both addresses, the protocol and the ports of TCP or UDP;
	// flow-label is that of IPv4, and of IPv6 both addresses and the flow label (RFC 6438); default
	// five-tuple.
	Hash string
}

// Of returns the section of a switch.
func Of(s *config.Switch) Config { return config.Of[Config](s, sectionKey) }

// readOver reads a section over what c is.
func (c Config) readOver(m *yamlnode.Map) any {
	c.Hash = m.OneOf("hash", c.Hash, fiveTuple, flowLabel)
	return c
}

func section() config.Section {
	return config.Section{
		Key:  sectionKey,
		Read: func(m *yamlnode.Map, _ *config.Config) any { return Config{Hash: fiveTuple}.readOver(m) },
		ReadSwitch: func(m *yamlnode.Map, c *config.Config) any {
			return config.Of[Config](c, sectionKey).readOver(m)
		},
	}
}

// hash adds what the hash takes.
func hash(c *feature.EntityList, env *feature.Env) {
	own := Of(env.Switch).Hash
	switch {
	case ipv6Capability.In(env.Pipeline):
		action := ids.ActionHashFiveTupleIPv6Name
		if own == flowLabel {
			action = ids.ActionHashFlowLabelName
		}
		c.Add(env.Pipeline.Default(ids.TableECMPHashIPv6Name).Action(action).Entity())
	case own == flowLabel:
		c.Add(nil, env.Refuse(env.Config.Origin(env.Switch, sectionKey+".hash"), fmt.Sprintf("%q", own), ipv6Capability))
	}
}
