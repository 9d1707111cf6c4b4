package telemetry

import (
	"maps"
	"slices"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/view"
)

// Status implements feature.Monitor.
func (t *telemetry) Status(sw string, s *pb.FeatureStatus) {
	last, ok := t.last.Get(sw)
	if !ok {
		return
	}
	samples := last.all()
	if len(samples) == 0 {
		return
	}
	s.Telemetry = &pb.TelemetryStatus{}
	for _, n := range slices.Sorted(maps.Keys(samples)) {
		p := samples[n]
		s.Telemetry.Ports = append(s.Telemetry.Ports, &pb.TelemetryPort{
			Port: n, Peer: p.Peer, DelayNs: view.Nanoseconds(p.QueueingDelay), TransmittedBytes: p.DepartureBytes,
			TransmittedPackets: p.DeparturePackets, RefusedPackets: p.Drops, Polled: view.Stamp(p.Time),
		})
		for q, b := range p.QueueBytes {
			s.Telemetry.Queues = append(s.Telemetry.Queues, &pb.TelemetryQueue{Port: n, Peer: p.Peer, Queue: uint32(q), HeldBytes: uint64(b)})
		}
	}
}

var _ feature.Monitor = (*telemetry)(nil)
