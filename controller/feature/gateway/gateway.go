// Package gateway is the feature that makes a leaf the gateway of its hosts: the switch itself answers
// ARP, neighbour solicitations and pings for the gateway's address, and ARP and solicitations for every
// other address as a proxy. So a host needs an address and a default route, and no neighbour entry.
package gateway

import (
	"net"
	"net/netip"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/p4src/ids"
)

// mac is the MAC address of the gateway at every leaf, so that a host may move to another leaf without learning a
// new one. It equals packet.Gateway, which host agents send to.
var mac = topology.MAC{0x02, 0, 0, 0, 0, 0xfe}

type feat struct{}

// New returns the feature; it has no loop.
func New(feature.Callbacks) feature.Feature { return feat{} }

// Name implements feature.Feature.
func (feat) Name() string { return "gateway" }

// answers are the addresses that the program answers with.
var answers = feature.Capability{
	Name:    "gateway",
	Objects: pipeline.Objects{Tables: []string{ids.TableGatewayIPv4Name, ids.TableGatewayIPv6Name}},
	Instead: "hosts need a neighbour entry for their gateway, with the MAC address " + net.HardwareAddr(mac[:]).String(),
}

// Describe implements feature.Feature.
func (feat) Describe() feature.Description {
	return feature.Description{Capabilities: []feature.Capability{answers}, Section: section()}
}

// Attach implements feature.Feature.
func (feat) Attach(*feature.Env, feature.Switch) feature.Loop { return nil }

// Desired implements feature.Feature: entries on switches with hosts.
func (feat) Desired(env *feature.Env) ([]*p4v1.Entity, error) {
	leaf := func(h topology.Host) bool { return h.Switch == env.Switch.Name }
	if !answers.In(env.Pipeline) || !slices.ContainsFunc(env.Graph.Hosts(), leaf) {
		return nil, nil
	}
	var c feature.EntityList
	answer := pipeline.Arg{Name: "mac", Value: mac[:]}
	add := func(prefix netip.Prefix, table, action string) {
		c.Add(env.Pipeline.Entry(table).LPM("addr", prefix.Addr().AsSlice(), prefix.Bits()).Action(action, answer).Entity())
	}
	cfg := Of(env.Switch)
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
