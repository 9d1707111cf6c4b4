package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/controller/view"
)

// The metric families of PACC's loops; they are never changed. All begin at 0 with a new
// configuration and a new session.
var (
	paccTicks      = counter("pacc_ticks", "Periods of the PACC loop of the switch.", "switch")
	paccLate       = counter("pacc_late_ticks", "Periods that began more than a quarter of a period late.", "switch")
	paccMissed     = counter("pacc_missed_ticks", "Periods that were left out because the loop was late.", "switch")
	paccLateness   = counter("pacc_lateness_seconds", "Time by which all ticks together were late.", "switch")
	paccWorst      = gauge("pacc_lateness_max_seconds", "The most that any tick was late.", "switch")
	paccUnanswered = counter("pacc_unanswered_polls", "Ports whose poll did not come back within a period.", "switch")
	paccReadErrors = counter("pacc_read_errors", "Periods in which the counters could not be read.", "switch")
	paccSent       = counter("pacc_cnps", "Congestion notifications that were sent.", "switch")
	paccSendErrors = counter("pacc_cnp_errors", "Congestion notifications that could not be sent.", "switch")

	paccFlows   = gauge("pacc_flows", "Flows in the flow table.", "switch")
	paccLearned = counter("pacc_learned_flows", "Flows that entered the flow table.", "switch")
	paccAged    = counter("pacc_aged_flows", "Flows that left the flow table because they were idle.", "switch")
	paccEvicted = counter("pacc_evicted_flows", "Flows that left a full flow table for others, the least congested first.", "switch")
	paccRefused = counter("pacc_refused_flows", "Flows that found no place in the flow table.", "switch")

	paccQueue    = gauge("pacc_queue_bytes", "Bytes in the watched queue at the last tick.", "switch", "port")
	paccAverage  = gauge("pacc_queue_average_bytes", "The filtered queue, which is held against the burst threshold.", "switch", "port")
	paccAll      = gauge("pacc_all", "Congestion notifications that the last tick asked for.", "switch", "port")
	paccGranted  = counter("pacc_granted_cnps", "Congestion notifications that were given to flows.", "switch", "port")
	paccFiltered = counter("pacc_filtered_ticks", "Ticks that the burst filter held back.", "switch", "port")
)

func paccLoop(ch chan<- prometheus.Metric, sw string, p *view.PACC) {
	for _, v := range []struct {
		metric
		value float64
	}{
		{paccTicks, float64(p.Ticks)}, {paccLate, float64(p.Late)}, {paccMissed, float64(p.Missed)},
		{paccLateness, p.Lateness.Seconds()}, {paccWorst, p.WorstLateness.Seconds()},
		{paccUnanswered, float64(p.Unanswered)}, {paccReadErrors, float64(p.ReadErrors)},
		{paccSent, float64(p.CNPs)}, {paccSendErrors, float64(p.CNPErrors)},
		{paccFlows, float64(p.Flows)}, {paccLearned, float64(p.Learned)}, {paccAged, float64(p.Aged)},
		{paccEvicted, float64(p.Evicted)}, {paccRefused, float64(p.Refused)},
	} {
		v.send(ch, v.value, sw)
	}
	for _, port := range p.PortLoops {
		at := []string{sw, number(port.Port)}
		paccQueue.send(ch, float64(port.Queue), at...)
		paccAverage.send(ch, float64(port.QueueAvg), at...)
		paccAll.send(ch, port.All, at...)
		paccGranted.send(ch, float64(port.CNPs), at...)
		paccFiltered.send(ch, float64(port.Filtered), at...)
	}
}
