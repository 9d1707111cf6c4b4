package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/controller/serving/tables"
)

// MaxSeries is how many time series a table of a feature, and each of port_up and link_up, may have over all
// switches: a scrape of each takes about 1 MB then. If there would be more, the series of a switch that differ only
// in port and peer are merged, with AllPorts for both. A merged counter is the sum, a time the oldest, the state of a
// port or link the worst, and any other value the largest.
const MaxSeries = 10_000

// AllPorts is the label of a series merged over all ports of a switch.
const AllPorts = "(all)"

// series are the values of one column under one set of labels.
type series struct {
	labels []string
	values []float64
	known  []bool
}

// kind is how the values of series are merged.
type kind uint8

const (
	largest kind = iota
	least
	sum
)

func kindOf(c tables.Column) kind {
	switch {
	case c.Counter:
		return sum
	case strings.HasSuffix(c.Metric, "_timestamp_seconds"):
		return least
	}
	return largest
}

// merge combines all series that have the same labels except the labels at, whose value becomes
// AllPorts. The order of the first of each is kept.
func merge(list []series, kinds []kind, at []int) []series {
	index := map[string]int{}
	var out []series
	for _, s := range list {
		for _, i := range at {
			s.labels[i] = AllPorts
		}
		key := strings.Join(s.labels, "\x00")
		i, ok := index[key]
		if !ok {
			index[key] = len(out)
			out = append(out, s)
			continue
		}
		into := &out[i]
		for c, v := range s.values {
			switch {
			case !s.known[c]:
			case !into.known[c]:
				into.values[c], into.known[c] = v, true
			case kinds[c] == sum:
				into.values[c] += v
			case kinds[c] == least:
				into.values[c] = min(into.values[c], v)
			default:
				into.values[c] = max(into.values[c], v)
			}
		}
	}
	return out
}

// bounded returns the series of a table with that many metrics, merged if there are too many, and how
// many series the merging saved.
func bounded(list []series, kinds []kind, columns int, at []int) ([]series, int) {
	if len(list)*columns <= MaxSeries || len(at) == 0 {
		return list, 0
	}
	out := merge(list, kinds, at)
	return out, (len(list) - len(out)) * columns
}

// ofPort returns the indices of the labels that name the port or peer in a table's series; label 0 is the switch.
func ofPort(t *tables.Table) (at []int) {
	for i, key := range t.Keys {
		if slices.Contains([]string{"port", "peer"}, key) {
			at = append(at, 1+i)
		}
	}
	return at
}

// Namespace begins the name of every metric of Headgate.
const Namespace = "headgate"

// metric is one family. Names end in their base unit, counters in _total.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func gauge(name, help string, labels ...string) metric {
	return metric{prometheus.NewDesc(Namespace+"_"+name, help, labels, nil), prometheus.GaugeValue}
}

func counter(name, help string, labels ...string) metric {
	return metric{prometheus.NewDesc(Namespace+"_"+name+"_total", help, labels, nil), prometheus.CounterValue}
}

// The metric families; they are never changed.
var (
	generation = gauge("config_generation", "Number of configurations applied since the state store was created.")
	linkUp     = gauge("link_up", "1 when probes come over the link both ways, 0 when they do not or an operator took it out of service; no sample while unknown.", "a", "b")

	switchState      = gauge("switch_state", "1 for the state that the switch's session is in, 0 for the others.", "switch", "state")
	switchEntries    = gauge("switch_entries", "Table entries and groups that the controller keeps on the switch.", "switch")
	switchReconciles = counter("switch_reconciles", "Times that the switch was brought in line.", "switch")
	switchDropped    = counter("switch_messages_dropped", "Messages of the switch that a loop of the controller was too slow to take; digests are dropped first, then idle timeouts.", "switch")

	hostAlarms = counter("host_alarms", "Times that the host was found to stop others by PAUSEs (pauses), to take more than its share while others starve (over_share), or to report impossible telemetry (telemetry).", "host", "alarm")

	portUp = gauge("port_up", "1 when probes come over the port's link, 0 when they do not or the link is out of service; absent while unknown.", "switch", "port", "peer")

	merged = gauge("port_merged_series", "Time series of ports that this scrape lacks, as there were too many: one of each switch, with the port \"(all)\", stands for them.")

	weightFlows    = gauge("weight_flows", "Flows that the application has weights for.", "application")
	weightUsed     = gauge("weight_used", "Sum of the weights of the application's flows.", "application")
	weightLimit    = gauge("weight_limit", "The application's budget; absent without one.", "application")
	weightChanges  = counter("weight_changes", "Changes of weights and budgets.")
	weightRefusals = counter("weight_refusals", "Refused changes of weights and budgets.")
	weightWatchers = gauge("weight_watchers", "Clients and hosts that follow the weights.")

	busPublished   = counter("bus_published", "Events or samples published in the controller.", "bus")
	busDropped     = counter("bus_dropped", "Events or samples that subscribers missed because they read too slowly.", "bus")
	busSubscribers = gauge("bus_subscribers", "Subscribers of the events or samples.", "bus")

	waitingBytes  = gauge("client_waiting_bytes", "Memory of the messages that wait for all clients.")
	waitingLimit  = gauge("client_limit_bytes", "Limit of the memory of messages that wait for all clients.")
	clientCalls   = gauge("client_calls", "Calls in progress, including streams.")
	receiving     = gauge("client_receiving_bytes", "Memory of messages from clients that have arrived in part.")
	unreadStreams = counter("client_unread_streams", "Streams that ended because their clients did not read them.")
	unreadConns   = counter("client_unread_connections", "Connections that were closed because their clients did not read the answers of calls, or did not send messages whole.")
	refusedCalls  = counter("client_refused_calls", "Calls refused because too many were in progress, or too many bytes waited for clients.")
	openConns     = gauge("client_connections", "Open connections of clients.", "listener")
	refusedConns  = counter("client_refused_connections", "Connections that were closed at once because the limit was reached.", "listener")

	all = []metric{
		generation, linkUp, switchState, switchEntries, switchReconciles, switchDropped, hostAlarms, portUp, merged,
		waitingBytes, waitingLimit, receiving, clientCalls, unreadStreams, unreadConns, refusedCalls, openConns, refusedConns,
		weightFlows, weightUsed, weightLimit, weightChanges, weightRefusals, weightWatchers, busPublished, busDropped, busSubscribers,
	}
)

// families returns the metrics of a feature's table, one for each column; a column that is not a metric has no
// description.
func families(t *tables.Table) []metric {
	labels := append([]string{"switch"}, t.Keys...)
	list := make([]metric, len(t.Columns))
	for i, c := range t.Columns {
		switch {
		case c.Metric == "":
		case c.Counter:
			list[i] = counter(c.Metric, c.Help, labels...)
		default:
			list[i] = gauge(c.Metric, c.Help, labels...)
		}
	}
	return list
}
