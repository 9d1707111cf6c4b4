// Package telemetry is the feature that has every port polled (package poll) and
// publishes the reports' queues, delays and departures.
package telemetry

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/feature/soze"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/units"
)

type telemetry struct {
	callbacks feature.Callbacks

	mu   sync.Mutex
	last map[string]map[uint32]feature.Sample // last samples by switch and port
}

// pollCapability is the answering of polls.
var pollCapability = feature.Capability{
	Name: "telemetry.polls", Objects: pipeline.Objects{Headers: []string{ids.HeaderPacketOutName, ids.HeaderPacketInName}},
	Queues: ids.HighestQueue + 1, Instead: "there are no samples of its ports",
}

// New returns the feature.
func New(callbacks feature.Callbacks) *feature.Feature {
	t := &telemetry{callbacks: callbacks, last: map[string]map[uint32]feature.Sample{}}
	return &feature.Feature{
		Name: "telemetry", Capabilities: []feature.Capability{pollCapability}, Desired: desired, Attach: t.attach, Status: t.status,
	}
}

// desired implements feature.Feature.Desired: the clone session that sends reports to the controller.
func desired(env *feature.Env) ([]*p4v1.Entity, error) {
	return []*p4v1.Entity{pipeline.CloneSession(ids.PollCloneSession, env.Switch.CPUPort)}, nil
}

// attach implements feature.Feature.Attach. There is no loop if polls are off, or if the switch lacks queue 7, which
// polls use: BMv2 drops packets for a queue that it does not have.
func (t *telemetry) attach(env *feature.Env, sw feature.Switch) feature.Loop {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.last, sw.Name())
	if env.Config.Controller.PollInterval <= 0 || env.Provider(pollCapability) != pb.ByProgram {
		return nil
	}
	l := &loop{
		telemetry: t, own: map[uint32]feature.Sample{}, sw: sw, unit: soze.FromConfig(env.Config).Unit(), interval: env.Config.Controller.PollInterval,
		peers: map[uint32]string{}, due: map[uint32]time.Time{},
	}
	t.last[sw.Name()] = l.own
	for _, p := range env.Graph.Ports(sw.Name()) {
		l.ports = append(l.ports, p.Number)
		l.peers[p.Number] = p.Peer
	}
	return l
}

// loop has the ports of one switch polled; it owns due.
type loop struct {
	*telemetry
	own      map[uint32]feature.Sample // by port; guarded by mu
	sw       feature.Switch
	unit     units.Time // unit of the reported delay
	ports    []uint32
	peers    map[uint32]string // by port
	interval time.Duration
	due      map[uint32]time.Time // the next sample of a port
}

// Interval implements feature.Loop.
func (l *loop) Interval() time.Duration { return l.interval }

// Tick implements feature.Loop. A port that was polled for others lately is not polled
// again; a quarter of the interval is left for ticks that come early.
func (l *loop) Tick(_ context.Context, now time.Time) error {
	return l.sw.Poll(now, l.interval*3/4, l.ports...)
}

// Receives implements feature.Loop.
func (l *loop) Receives() feature.Kinds { return feature.Reports }

// Receive implements feature.Loop: it publishes one report of each port per interval.
func (l *loop) Receive(now time.Time, m feature.Message) {
	r := m.Report
	if r == nil || now.Before(l.due[r.Port].Add(-l.interval/4)) {
		return
	}
	l.due[r.Port] = l.due[r.Port].Add(l.interval)
	if l.due[r.Port].Before(now) {
		l.due[r.Port] = now.Add(l.interval)
	}
	s := feature.Sample{
		Time: now, Switch: l.sw.Name(), Port: r.Port, Peer: l.peers[r.Port], QueueBytes: r.QueueBytes,
		QueueingDelay: (units.Time(r.LastDelay) * l.unit).Duration(), DepartureBytes: r.DepartedBytes,
		DeparturePackets: r.DepartedPackets, Drops: uint64(r.AdmissionDrops),
	}
	l.mu.Lock()
	l.own[s.Port] = s
	l.mu.Unlock()
	l.callbacks.Sample(s)
}

func (t *telemetry) status(sw string, s *pb.FeatureStatus) {
	t.mu.Lock()
	defer t.mu.Unlock()
	samples := t.last[sw]
	if len(samples) == 0 {
		return
	}
	s.Telemetry = &pb.TelemetryStatus{}
	for _, n := range slices.Sorted(maps.Keys(samples)) {
		p := samples[n]
		s.Telemetry.Ports = append(s.Telemetry.Ports, &pb.TelemetryPort{
			Port: n, Peer: p.Peer, Delay: pb.Duration(p.QueueingDelay), TransmittedBytes: p.DepartureBytes,
			TransmittedPackets: p.DeparturePackets, RefusedPackets: p.Drops, Polled: pb.Stamp(p.Time),
		})
		for q, b := range p.QueueBytes {
			s.Telemetry.Queues = append(s.Telemetry.Queues, &pb.TelemetryQueue{Port: n, Peer: p.Peer, Queue: uint32(q), HeldBytes: uint64(b)})
		}
	}
}
