package agent

import "github.com/headgate/headgate/units"

// SizeBounds part flows by their size: below the first bound, from it to below the second, and so on.
var SizeBounds = [...]units.Bytes{10 * units.KB, 100 * units.KB, units.MB}

// maxPaths bounds the destinations of which the shortest round trip is kept.
const maxPaths = 1 << 16

// Completions counts flows of a range of sizes that have ended with all of their payload acknowledged.
type Completions struct {
	Flows    uint64
	FCT      uint64  // sum of times from the start to the last acknowledgement, ns modulo 2^64
	Slowdown float64 // sum of these times over those of the flow alone
}

// complete counts a flow that has just ended. Alone, its packets but the last would have left at the
// rate of the link, and the last would have had the shortest round trip to its destination that was seen. A
// flow of which nobody knows that, since all of its packets were sent twice, is not counted.
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
