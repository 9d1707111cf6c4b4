package telemetry

import (
	"maps"
	"slices"
	"strconv"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/units"
)

// The tables.
var (
	portTable = &view.Table{Feature: "telemetry", Name: "ports", Keys: []string{"port", "peer"}, Columns: []view.Column{
		{Head: "DELAY", Metric: "port_queueing_delay_seconds", Help: "Queueing delay of the last packet before the last poll, on the switch's clock."},
		{Head: "BYTES", Metric: "port_transmitted_bytes", Help: "Bytes that left the port.", Counter: true},
		{Head: "PACKETS", Metric: "port_transmitted_packets", Help: "Packets that left the port.", Counter: true},
		{Head: "REFUSED", Metric: "port_refused_packets", Help: "Packets that admission refused for the port.", Counter: true},
		{Head: "POLLED", Metric: "port_last_sample_timestamp_seconds", Help: "When the last poll of the port came back."},
	}}
	queueTable = &view.Table{Feature: "telemetry", Name: "queues", Keys: []string{"port", "peer", "queue"}, Columns: []view.Column{
		{Head: "HOLDS", Metric: "port_queue_bytes", Help: "Bytes in the queue of the port at the last poll."},
	}}
)

// Tables implements feature.Monitor.
func (*telemetry) Tables() []*view.Table { return []*view.Table{portTable, queueTable} }

// Status implements feature.Monitor.
func (t *telemetry) Status(sw string) []view.Status {
	last, ok := t.last.Get(sw)
	if !ok {
		return nil
	}
	samples := last.all()
	if len(samples) == 0 {
		return nil
	}
	var ports, queues []view.Row
	for _, n := range slices.Sorted(maps.Keys(samples)) {
		s := samples[n]
		port := []string{strconv.Itoa(int(n)), s.Peer}
		ports = append(ports, view.Row{Keys: port, Values: []any{s.QueueingDelay, units.Bytes(s.DepartureBytes), s.DeparturePackets, s.Drops, s.Time}})
		for q, b := range s.QueueBytes {
			queues = append(queues, view.Row{Keys: append(port[:2:2], strconv.Itoa(q)), Values: []any{units.Bytes(b)}})
		}
	}
	return []view.Status{{Table: portTable, Rows: ports}, {Table: queueTable, Rows: queues}}
}

var _ feature.Monitor = (*telemetry)(nil)
