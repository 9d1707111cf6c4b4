package agent

import (
	"github.com/headgate/headgate/hosts/transport"
	"github.com/headgate/headgate/internal/heap"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// flow is one flow that this host sends. The agent owns it.
type flow struct {
	held     bool  // sends nothing, see Agent.Hold
	waiting  bool  // sends nothing until it has a channel
	outdated bool  // sends nothing: its channel does not suit the parameters of now
	class    uint8 // class of its packets for PFC

	key    FlowKey
	spec   FlowSpec // the spec given at the start, with the present channel
	app    string
	weight float64
	qp     uint32
	dstAt  int // place in Agent.byDst
	s      *transport.Sender
	frame  packet.Frame // its unchanging fields are set once

	started, finished units.Time
	size              units.Bytes // 0 for endless
	base              transport.SenderStats
	resets            uint64
	cnps              uint64
	forgotten         bool // its receiver asks for bytes that it had acknowledged

	tag     float64    // start tag in the NIC's virtual time
	readyAt int        // place in Agent.ready
	wake    units.Time // no later than when it wants attention
	timerAt int        // place in Agent.timers
}

// newReady returns a heap of the flows that may send now, by start tag, then by queue pair.
func newReady() heap.Heap[*flow] {
	return heap.New(func(x, y *flow) bool {
		return x.tag < y.tag || x.tag == y.tag && x.qp < y.qp
	}, func(f *flow, at int) { f.readyAt = at })
}

// newTimers returns a heap of flows, ordered by the time at which they must be looked at, then by queue pair.
func newTimers() heap.Heap[*flow] {
	return heap.New(func(x, y *flow) bool {
		return x.wake < y.wake || x.wake == y.wake && x.qp < y.qp
	}, func(f *flow, at int) { f.timerAt = at })
}

// schedule puts the flow among those that may send now, or schedules a time to look at it, as its sender's state
// requires. A scheduled time only changes to an earlier one. A flow that is looked at too early is scheduled again.
func (a *Agent) schedule(f *flow, now units.Time) {
	at := f.s.Ready(now)
	wake := f.s.Deadline()
	if f.held || f.waiting || f.outdated {
		at = units.MaxTime
	}
	at = max(at, a.counts.PFC.Classes[f.class].Until)
	if at <= now {
		if f.readyAt == heap.Outside {
			f.tag = max(f.tag, a.virtual)
			a.ready.Push(f)
		}
	} else {
		if f.readyAt != heap.Outside {
			a.ready.Remove(f.readyAt)
		}
		wake = min(wake, at)
	}
	switch {
	case wake == units.MaxTime:
	case f.timerAt == heap.Outside:
		f.wake = wake
		a.timers.Push(f)
	case wake < f.wake:
		f.wake = wake
		a.timers.Fix(f.timerAt)
	}
}

func (a *Agent) unschedule(f *flow) {
	if f.readyAt != heap.Outside {
		a.ready.Remove(f.readyAt)
	}
	if f.timerAt != heap.Outside {
		a.timers.Remove(f.timerAt)
	}
}

// totals returns the flow's counts, those before a restart included.
func (f *flow) totals() transport.SenderStats {
	st := f.s.Stats()
	st.Sent += f.base.Sent
	st.Retransmits += f.base.Retransmits
	st.Naks += f.base.Naks
	st.Timeouts += f.base.Timeouts
	st.Probes += f.base.Probes
	st.Stale += f.base.Stale
	st.Acked += f.base.Acked
	if least := f.base.LeastRTT; least > 0 && (least < st.LeastRTT || st.LeastRTT == 0) {
		st.LeastRTT = least
	}
	return st
}

// left returns the bytes that the flow's receiver has not acknowledged, 0 for an endless flow.
func (f *flow) left() units.Bytes {
	if f.size == 0 {
		return 0
	}
	return f.size - f.totals().Acked
}
