package agent

import (
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/hosts/transport"
	"github.com/headgate/headgate/units"
)

// Stats are an agent's counters.
type Stats struct {
	DataSent, AcksSent         uint64
	BytesSent                  units.Bytes // bytes of frames
	DataReceived, AcksReceived uint64
	BytesDelivered             units.Bytes // bytes of payload in order
	ProbesSent, ProbesReceived uint64
	CNPs                       uint64 // CNPs that arrived for a flow of this host
	CNPsSent                   uint64
	PFC                        PFCStats
	Malformed                  uint64 // frames that could not be read or make no sense
	NotOurs                    uint64 // frames for another address
	Unknown                    uint64 // acknowledgements and CNPs of no flow
	Refused                    uint64 // data that there was no room to answer
	Completions                [len(SizeBounds) + 1]Completions
}

// FlowReport is the state of a flow of this host.
type FlowReport struct {
	Key      FlowKey
	App      string
	Law      string // Config.Law
	Weight   float64
	Started  units.Time
	Finished units.Time // 0 while it runs
	Allowed  units.Rate // pacing rate that its law allows now
	Resets   uint64     // times that its receiver had forgotten it
	CNPs     uint64     // congestion notifications for the flow
	Priority int        // virtual priority, 0 for none
	Channel  channel.Channel
	Crowded  bool // the last echo of its queue was longer than its law's parameters provide for
	Waiting  bool // sends nothing until it has a channel that suits
	transport.SenderStats
}

// crowded is implemented by laws that know how long a queue their parameters allow: soze.Law.
type crowded interface{ Crowded() bool }

// Report returns the state of each flow in the order of their starts. Counts run from the flow's
// start. A caller who wants a rate subtracts two reports.
func (a *Agent) Report() []FlowReport {
	out := make([]FlowReport, 0, len(a.flows))
	for _, f := range a.inOrder() {
		l, ok := f.s.Law().(crowded)
		out = append(out, FlowReport{
			Key: f.key, App: f.app, Law: a.cfg.Law, Weight: f.weight, Started: f.started, Finished: f.finished,
			Allowed: f.s.Law().Allowance().Rate, Resets: f.resets, CNPs: f.cnps,
			Priority: f.spec.Priority, Channel: f.spec.Channel, Crowded: ok && l.Crowded(), Waiting: f.waiting || f.outdated, SenderStats: f.totals(),
		})
	}
	return out
}

// Stats returns the counts so far.
func (a *Agent) Stats() Stats { return a.counts }

// SizeBounds divides flows by size: below the first bound, from it to below the second, and so on.
var SizeBounds = [...]units.Bytes{10 * units.KB, 100 * units.KB, units.MB}

// maxPaths bounds the number of destinations whose shortest round trip is kept.
const maxPaths = 1 << 16

// Completions counts completed flows of a range of sizes, with all of their payload acknowledged.
type Completions struct {
	Flows    uint64
	FCT      uint64  // sum of times from the start to the last acknowledgement, ns modulo 2^64
	Slowdown float64 // sum of these times over those of the flow alone
}

// complete counts a flow that has just ended. Its time alone is the time of all packets but the last
// at the link's rate, and the shortest round trip seen to its destination. A flow without a known
// round trip, because all its packets were sent twice, is not counted.
func (a *Agent) complete(f *flow) {
	least := f.totals().LeastRTT
	seen, known := a.paths[f.key.Dst]
	if known && (least == 0 || seen < least) {
		least = seen
	}
	if least == 0 {
		return
	}
	if known || len(a.paths) < maxPaths {
		a.paths[f.key.Dst] = least
	}
	at := 0
	for at < len(SizeBounds) && f.size >= SizeBounds[at] {
		at++
	}
	f.frame.Payload = a.payload
	a.buf = f.frame.Append(a.buf[:0])
	alone := least + units.Time((f.size-1)/a.cfg.MSS)*a.cfg.Rate.TxTime(units.Bytes(len(a.buf)))
	took := f.finished - f.started
	c := &a.counts.Completions[at]
	c.Flows++
	c.FCT += uint64(took / units.Nanosecond)
	c.Slowdown += float64(took) / float64(alone)
}
