// Package lldp is the feature that finds out which links between switches work.
// P4Runtime has no port state, and a port that is up need not lead anywhere, so each switch
// sends an LLDP frame (IEEE 802.1AB) out of every port that leads to another switch, and punts
// those that arrive to the controller. Who misses the probes of a link, and what follows, is decided by the controller.
package lldp

import (
	"context"
	"errors"
	"fmt"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/p4src/ids"
)

type lldp struct{ callbacks feature.Callbacks }

// New returns the feature.
func New(callbacks feature.Callbacks) feature.Feature { return &lldp{callbacks: callbacks} }

// Name implements feature.Feature.
func (*lldp) Name() string { return "linkprobe" }

// Describe implements feature.Feature.
func (*lldp) Describe() feature.Description {
	return feature.Description{
		Capabilities: []feature.Capability{probeCapability, limitCapability},
		Section:      config.Section{Key: "punt", Read: read},
	}
}

var probeCapability = feature.Capability{
	Name: "linkprobe.lldp",
	Objects: pipeline.Objects{
		Tables:  []string{ids.TablePuntTableName},
		Headers: []string{ids.HeaderPacketOutName, ids.HeaderPacketInName},
	},
	Instead: "its links to switches are never seen to work",
}

// limitCapability is the bound on what a port may send to the controller.
var limitCapability = feature.Capability{
	Name:    "linkprobe.punt_limit",
	Objects: pipeline.Objects{Tables: []string{ids.TablePuntLimitName}},
	Instead: "punt.rate is not kept: a host can send the controller as many frames as its link carries",
}

// Desired implements feature.Feature. LLDP frames go to the controller and no further, whether or not
// this controller probes. Their number is limited for each port.
func (*lldp) Desired(env *feature.Env) ([]*p4v1.Entity, error) {
	var c feature.EntityList
	c.Add(env.Pipeline.Entry(ids.TablePuntTableName).
		Ternary("ether_type", p4msg.Uint(etherType), p4msg.Uint(0xffff)).Priority(10).
		Action(ids.ActionPuntToCPUName, pipeline.Arg{Name: "reason", Value: p4msg.Uint(feature.ProbeReason)}).Entity())
	if limitCapability.In(env.Pipeline) {
		c.Add(env.Pipeline.Default(ids.TablePuntLimitName).Action(ids.ActionSetPuntLimitName, Of(env.Config).args()...).Entity())
	}
	return c.Result()
}

// Attach implements feature.Feature.
func (f *lldp) Attach(env *feature.Env, sw feature.Switch) feature.Loop {
	if env.Config.Controller.ProbeInterval <= 0 {
		return nil
	}
	l := &loop{
		callbacks: f.callbacks, sw: sw, pipe: env.Pipeline, fabric: env.Config.Name, queue: env.Switch.PriorityQueues - 1,
		interval: env.Config.Controller.ProbeInterval, ttl: env.Config.Controller.ProbeTimeout, by: map[uint32]topology.Port{},
	}
	for _, p := range env.Graph.Ports(sw.Name()) {
		if p.PeerPort != 0 {
			l.ports = append(l.ports, p)
			l.by[p.Number] = p
		}
	}
	return l
}

// loop probes the links of one switch; it owns wrong.
type loop struct {
	callbacks feature.Callbacks
	sw        feature.Switch
	pipe      *pipeline.Pipeline
	fabric    string
	queue     int
	ports     []topology.Port
	by        map[uint32]topology.Port // ports by number
	interval  time.Duration
	ttl       time.Duration
	wrong     map[uint32]bool // ports with another neighbour than the configured one
}

// Interval implements feature.Loop.
func (l *loop) Interval() time.Duration { return l.interval }

// Tick implements feature.Loop: one probe out of each port.
func (l *loop) Tick(context.Context, time.Time) error {
	var errs error
	for _, p := range l.ports {
		frame := probe{fabric: l.fabric, node: l.sw.Name(), port: p.Number, ttl: l.ttl}.encode(p.MAC)
		out, err := l.pipe.PacketOut(frame,
			pipeline.Arg{Name: "egress_port", Value: p4msg.Uint(uint64(p.Number))},
			pipeline.Arg{Name: "queue", Value: p4msg.Uint(uint64(l.queue))},
			pipeline.Arg{Name: "mode", Value: p4msg.Uint(ids.PacketOutPort)},
		)
		if err == nil {
			err = l.sw.PacketOut(out)
		}
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("probe of port %d: %w", p.Number, err))
		}
	}
	return errs
}

// Receive implements feature.Loop.
func (l *loop) Receive(_ time.Time, m feature.Message) {
	if m.Packet == nil || m.Packet.Fields["reason"] != feature.ProbeReason {
		return
	}
	got, err := decode(m.Packet.Payload)
	if err != nil || got.fabric != l.fabric {
		return // LLDP of something that is not ours
	}
	port := uint32(m.Packet.Fields["ingress_port"])
	if p := l.by[port]; p.PeerPort != 0 && p.Peer == got.node && p.PeerPort == got.port {
		l.rewired(port)
		l.callbacks.LinkSeen(p.Link, l.sw.Name())
		return
	}
	l.miswired(port, config.Endpoint{Node: got.node, Port: got.port}.String())
}

// rewired tells once that a port has the neighbour that the file says again.
func (l *loop) rewired(port uint32) {
	if !l.wrong[port] {
		return
	}
	delete(l.wrong, port)
	l.callbacks.Event(view.Event{
		Severity: view.Info, Subject: l.sw.Name(), Kind: "link.miswired_over", Port: port,
		Message: fmt.Sprintf("port %d is connected as the configuration says", port),
	})
}

// miswired tells once that a port has another neighbour than the file says; who else says that
// he is one does not matter until it has the right one.
func (l *loop) miswired(port uint32, neighbour string) {
	if l.wrong[port] {
		return
	}
	if l.wrong == nil {
		l.wrong = map[uint32]bool{}
	}
	l.wrong[port] = true
	want := "nothing"
	if p := l.by[port]; p.PeerPort != 0 {
		want = config.Endpoint{Node: p.Peer, Port: p.PeerPort}.String()
	}
	l.callbacks.Event(view.Event{
		Severity: view.Error, Subject: l.sw.Name(), Kind: "link.miswired", Port: port,
		Message: fmt.Sprintf("port %d is connected to %s, the configuration says %s", port, neighbour, want),
	})
}
