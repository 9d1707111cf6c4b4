// Package telemetry is the feature that asks every port for its registers: a poll packet
// goes out to the port, whose egress fills it in and sends a copy to the controller. This
// is how registers are read where P4Runtime cannot read them (BMv2).
package telemetry

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
	"github.com/headgate/headgate/units"
)

type telemetry struct{ hub feature.Hub }

// New returns the feature.
func New(hub feature.Hub) feature.Feature { return &telemetry{hub: hub} }

// Name implements feature.Feature.
func (*telemetry) Name() string { return "telemetry" }

// pollPart is the answering of polls.
var pollPart = feature.Part{
	Name:    "telemetry.polls",
	Objects: pipeline.Objects{Headers: []string{ids.HeaderPacketOutName, ids.HeaderPacketInName}},
	Queues:  ids.HighestQueue + 1,
	Instead: "there are no samples of its ports",
}

// Parts implements feature.Feature.
func (*telemetry) Parts() []feature.Part { return []feature.Part{pollPart} }

// Desired implements feature.Feature: the clone session by which reports come up.
func (*telemetry) Desired(env *feature.Env, sw string) ([]*p4v1.Entity, error) {
	s := env.Config.Switch(sw)
	if s == nil {
		return nil, fmt.Errorf("there is no switch %q", sw)
	}
	return []*p4v1.Entity{pipeline.CloneSession(ids.PollCloneSession, s.CPUPort)}, nil
}

// Attach implements feature.Feature. There is no loop when polls are off, and none where
// the switch has no queue for them: the pipeline sends polls through queue 7, and BMv2
// drops what is bound for a queue that it does not have.
func (t *telemetry) Attach(env *feature.Env, sw feature.Switch) feature.Loop {
	s := env.Config.Switch(sw.Name())
	if s == nil || env.Config.Controller.PollInterval <= 0 || pollPart.On(env.Pipeline, s).Means != feature.Program {
		return nil
	}
	return &loop{
		hub: t.hub, sw: sw, pipe: env.Pipeline, unit: env.Config.Soze.Unit(),
		ports: env.Graph.Ports(sw.Name()), interval: env.Config.Controller.PollInterval,
	}
}

// loop polls one switch; it owns nothing that changes but seq.
type loop struct {
	hub      feature.Hub
	sw       feature.Switch
	pipe     *pipeline.Pipeline
	unit     units.Time // of the reported delay
	ports    []topology.Port
	interval time.Duration
	seq      uint64
}

// Interval implements feature.Loop.
func (l *loop) Interval() time.Duration { return l.interval }

// payload tells our polls from others'.
const payload = "headgate"

// Tick implements feature.Loop: one poll to each port.
func (l *loop) Tick(context.Context, time.Time) error {
	var errs error
	l.seq++
	for _, p := range l.ports {
		out, err := l.pipe.PacketOut(binary.BigEndian.AppendUint64([]byte(payload), l.seq),
			pipeline.Arg{Name: "egress_port", Value: pipeline.Uint(uint64(p.Number))},
			pipeline.Arg{Name: "queue", Value: pipeline.Uint(ids.HighestQueue)},
			pipeline.Arg{Name: "mode", Value: pipeline.Uint(ids.PacketOutPoll)},
		)
		if err == nil {
			err = l.sw.PacketOut(out)
		}
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("poll of port %d: %w", p.Number, err))
		}
	}
	return errs
}

// Receive implements feature.Loop.
func (l *loop) Receive(now time.Time, m feature.Message) bool {
	if m.Packet == nil || m.Packet.Fields["reason"] != ids.PacketInPoll {
		return false
	}
	r, rest, err := pollreport.Parse(m.Packet.Payload)
	if err != nil || len(rest) < len(payload) || string(rest[:len(payload)]) != payload {
		return true // a poll of somebody else
	}
	s := view.Sample{
		Time: now, Switch: l.sw.Name(), Port: r.Port, QueueBytes: r.QueueBytes,
		QueueingDelay: (units.Time(r.LastDelay) * l.unit).Duration(), DepartureBytes: r.DepartedBytes,
		DeparturePackets: r.DepartedPackets, Drops: uint64(r.AdmissionDrops),
	}
	for _, p := range l.ports {
		if p.Number == r.Port {
			s.Peer = p.Peer
		}
	}
	l.hub.Sample(s)
	return true
}
