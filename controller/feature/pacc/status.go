package pacc

import (
	"strconv"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/view"
)

// state is how the loop of a switch stands.
type state struct {
	cnpgen.LoopStats
	ports []cnpgen.PortStats
}

// The tables. All counters begin at 0 with a new configuration and a new session.
var (
	loopTable = &view.Table{Feature: "pacc", Name: "loops", Columns: []view.Column{
		{Head: "TICKS", Metric: "pacc_ticks", Help: "Periods of the PACC loop of the switch.", Counter: true},
		{Head: "LATE", Metric: "pacc_late_ticks", Help: "Ticks of a group of ports that began more than a quarter of a period late.", Counter: true},
		{Head: "MISSED", Metric: "pacc_missed_ticks", Help: "Periods without a tick of a group of ports because the loop was late.", Counter: true},
		{Head: "LATE IN ALL", Metric: "pacc_lateness_seconds", Help: "Time by which all ticks together were late.", Counter: true},
		{Head: "MOST LATE", Metric: "pacc_lateness_max_seconds", Help: "The most that any tick was late."},
		{Head: "UNANSWERED", Metric: "pacc_unanswered_polls", Help: "Ports whose poll did not come back within a period.", Counter: true},
		{Head: "READ ERRORS", Metric: "pacc_read_errors", Help: "Periods in which the counters could not be read.", Counter: true},
		{Head: "CNPS", Metric: "pacc_cnps", Help: "Congestion notifications that were sent.", Counter: true},
		{Head: "CNP ERRORS", Metric: "pacc_cnp_errors", Help: "Congestion notifications that could not be sent.", Counter: true},
		{Head: "FLOWS", Metric: "pacc_flows", Help: "Flows in the flow table."},
		{Head: "LEARNED", Metric: "pacc_learned_flows", Help: "Flows that entered the flow table.", Counter: true},
		{Head: "AGED", Metric: "pacc_aged_flows", Help: "Flows that left the flow table because they were idle.", Counter: true},
		{Head: "EVICTED", Metric: "pacc_evicted_flows", Help: "Flows that left a full flow table for others, the least congested first.", Counter: true},
		{Head: "REFUSED", Metric: "pacc_refused_flows", Help: "Flows that found no place in the flow table.", Counter: true},
		{Head: "QUEUE PAIRS", Metric: "pacc_queue_pairs", Help: "Queue pairs of sources that acknowledgements have named; notifications go to them."},
	}}
	portTable = &view.Table{Feature: "pacc", Name: "ports", Keys: []string{"port"}, Columns: []view.Column{
		{Head: "QUEUE", Metric: "pacc_queue_bytes", Help: "Bytes in the watched queue at the last tick."},
		{Head: "AVERAGE", Metric: "pacc_queue_average_bytes", Help: "The filtered queue, which is held against the burst threshold."},
		{Head: "ALL", Metric: "pacc_all", Help: "Congestion notifications that the last tick asked for."},
		{Head: "GRANTED", Metric: "pacc_granted_cnps", Help: "Congestion notifications that were given to flows.", Counter: true},
		{Head: "FILTERED", Metric: "pacc_filtered_ticks", Help: "Ticks that the burst filter held back.", Counter: true},
	}}
)

// Tables implements feature.Monitor.
func (*feat) Tables() []*view.Table { return []*view.Table{loopTable, portTable} }

// Status implements feature.Monitor; there is nothing where the loop is the switch's own.
func (f *feat) Status(sw string) []view.Status {
	s, ok := f.latest.Get(sw)
	if !ok {
		return nil
	}
	loop := view.Row{Values: []any{
		s.Ticks, s.Late, s.Missed, s.Lateness.Duration(), s.WorstLateness.Duration(), s.Unanswered, s.ReadErrors,
		s.CNPs, s.CNPErrors, s.Flows, s.Learned, s.Aged, s.Evicted, s.Refused, s.QueuePairs,
	}}
	var ports []view.Row
	for _, p := range s.ports {
		ports = append(ports, view.Row{
			Keys:   []string{strconv.Itoa(int(p.Port))},
			Values: []any{p.Queue, p.QueueAvg, p.All, p.Stats.CNPs, p.Filtered},
		})
	}
	return []view.Status{{Table: loopTable, Rows: []view.Row{loop}}, {Table: portTable, Rows: ports}}
}

var _ feature.Monitor = (*feat)(nil)
