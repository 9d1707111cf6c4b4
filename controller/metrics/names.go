package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/controller/view"
)

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
	linkUp     = gauge("link_up", "1 when the link is in service.", "a", "b")

	switchState      = gauge("switch_state", "1 for the state that the switch's session is in, 0 for the others.", "switch", "state")
	switchEntries    = gauge("switch_entries", "Table entries and groups that the controller keeps on the switch.", "switch")
	switchReconciles = counter("switch_reconciles", "Times that the switch was brought in line.", "switch")

	portUp      = gauge("port_up", "1 when the port is up.", "switch", "port", "peer")
	portQueue   = gauge("port_queue_bytes", "Bytes in the queue of the port at the last poll.", "switch", "port", "peer", "queue")
	portDelay   = gauge("port_queueing_delay_seconds", "Queueing delay of the last packet before the last poll, on the switch's clock.", "switch", "port", "peer")
	portBytes   = counter("port_transmitted_bytes", "Bytes that left the port.", "switch", "port", "peer")
	portPackets = counter("port_transmitted_packets", "Packets that left the port.", "switch", "port", "peer")
	portDrops   = counter("port_refused_packets", "Packets that admission refused for the port.", "switch", "port", "peer")
	portSampled = gauge("port_last_sample_timestamp_seconds", "When the last poll of the port came back.", "switch", "port", "peer")

	bufferSize      = gauge("buffer_size_bytes", "Bytes that the buffer policy gives to the pool.", "switch", "policy", "pool")
	bufferUsed      = gauge("buffer_used_bytes", "Bytes in use of the pool at the last poll.", "switch", "pool")
	bufferPeak      = gauge("buffer_peak_bytes", "Most bytes of the pool that were ever in use since the switch started.", "switch", "pool")
	bufferThreshold = gauge("buffer_threshold_bytes", "T(t), the threshold at which queues pause, at the last poll.", "switch")
	bufferAlarms    = gauge("buffer_alarms", "Alarms of the kind that are on.", "switch", "kind")

	pfcPaused    = gauge("pfc_paused", "1 while the peer of the port is told not to send the class.", "switch", "port", "peer", "class")
	pfcTime      = counter("pfc_paused_seconds", "Time that the class was paused, as seen by polls, since the controller follows it.", "switch", "port", "peer", "class")
	pfcPauses    = counter("pfc_pause_frames", "PFC frames with a PAUSE that the port sent, without refreshes.", "switch", "port", "peer")
	pfcResumes   = counter("pfc_resume_frames", "PFC frames with a RESUME that the port sent.", "switch", "port", "peer")
	pfcRefreshes = counter("pfc_refresh_frames", "PFC frames that repeated a PAUSE.", "switch", "port", "peer")
	pfcLate      = gauge("pfc_refresh_lateness_seconds", "How long after half of a PAUSE's time the controller repeated it last.", "switch", "port", "peer")
	pfcMostLate  = gauge("pfc_refresh_lateness_max_seconds", "The most that any repetition of a PAUSE was late.", "switch", "port", "peer")
	pfcDrops     = counter("pfc_lossless_dropped_packets", "Packets of the lossless class that were dropped, which is an error.", "switch", "port", "peer", "class")
	pfcQueue     = gauge("pfc_ingress_queue_bytes", "Bytes of the class that came in by the port and are in the pool.", "switch", "port", "peer", "class", "pool")
	pfcDeparted  = counter("pfc_departed_bytes", "Bytes of lossless classes that came in by the port and left the switch.", "switch", "port", "peer")
	pfcVictim    = gauge("pfc_victim", "1 while SPFC lets the port have the whole shared pool.", "switch", "port", "peer")
	pfcTurns     = counter("pfc_victim_turns", "Times that SPFC's state of the port changed.", "switch", "port", "peer")

	weightFlows    = gauge("weight_flows", "Flows that the application has weights for.", "application")
	weightUsed     = gauge("weight_used", "Sum of the weights of the application's flows.", "application")
	weightLimit    = gauge("weight_limit", "The application's budget; absent without one.", "application")
	weightChanges  = counter("weight_changes", "Changes of weights and budgets.")
	weightRefusals = counter("weight_refusals", "Refused changes of weights and budgets.")
	weightWatchers = gauge("weight_watchers", "Clients and hosts that follow the weights.")

	busPublished   = counter("bus_published", "Events or samples published in the controller.", "bus")
	busDropped     = counter("bus_dropped", "Events or samples that subscribers missed because they read too slowly.", "bus")
	busSubscribers = gauge("bus_subscribers", "Subscribers of the events or samples.", "bus")

	all = []metric{
		generation, linkUp, switchState, switchEntries, switchReconciles, portUp, portQueue, portDelay, portBytes, portPackets, portDrops,
		portSampled, bufferSize, bufferUsed, bufferPeak, bufferThreshold, bufferAlarms, pfcPaused, pfcTime, pfcPauses, pfcResumes, pfcRefreshes,
		pfcLate, pfcMostLate, pfcDrops, pfcQueue, pfcDeparted, pfcVictim, pfcTurns, paccTicks, paccLate, paccMissed, paccLateness, paccWorst, paccUnanswered,
		paccReadErrors, paccSent, paccSendErrors, paccFlows, paccLearned, paccAged, paccEvicted, paccRefused, paccQueue, paccAverage, paccAll,
		paccGranted, paccFiltered, weightFlows, weightUsed, weightLimit, weightChanges, weightRefusals, weightWatchers, busPublished, busDropped, busSubscribers,
	}

	stateNames = map[view.SwitchState]string{
		view.Disconnected: "disconnected", view.Backup: "backup", view.Reconciling: "reconciling", view.Ready: "ready", view.Degraded: "degraded",
	}
)
