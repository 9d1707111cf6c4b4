package agent

import (
	"container/heap"

	"github.com/headgate/headgate/hosts/transport"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// flow is one flow that this host sends. The agent owns it.
type flow struct {
	held    bool  // sends nothing, see Agent.Hold
	waiting bool  // sends nothing until it has a channel
	class   uint8 // of its packets, for PFC

	key    FlowKey
	spec   FlowSpec // as it was started, but for the channel of now
	app    string
	weight float64
	qp     uint32
	s      *transport.Sender
	frame  packet.Frame // its unchanging fields are set once

	started, finished units.Time
	size              units.Bytes // 0 for endless
	base              transport.SenderStats
	resets            uint64
	cnps              uint64
	forgotten         bool // its receiver asks for what it had acknowledged

	tag     float64    // start tag in the NIC's virtual time
	readyAt int        // index in readyHeap, -1 outside
	wake    units.Time // no later than when it wants attention
	timerAt int        // index in timerHeap, -1 outside
}

const outside = -1

// readyHeap orders the flows that may send now by start tag, then by queue pair.
type readyHeap []*flow

func (h readyHeap) Len() int { return len(h) }
func (h readyHeap) Less(i, j int) bool {
	return h[i].tag < h[j].tag || (h[i].tag == h[j].tag && h[i].qp < h[j].qp)
}
func (h readyHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].readyAt, h[j].readyAt = i, j
}
func (h *readyHeap) Push(x any) {
	f := x.(*flow)
	f.readyAt = len(*h)
	*h = append(*h, f)
}
func (h *readyHeap) Pop() any {
	f := (*h)[len(*h)-1]
	f.readyAt = outside
	*h = (*h)[:len(*h)-1]
	return f
}

// timerHeap orders flows by when they want attention, then by queue pair.
type timerHeap []*flow

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	return h[i].wake < h[j].wake || (h[i].wake == h[j].wake && h[i].qp < h[j].qp)
}
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].timerAt, h[j].timerAt = i, j
}
func (h *timerHeap) Push(x any) {
	f := x.(*flow)
	f.timerAt = len(*h)
	*h = append(*h, f)
}
func (h *timerHeap) Pop() any {
	f := (*h)[len(*h)-1]
	f.timerAt = outside
	*h = (*h)[:len(*h)-1]
	return f
}

// schedule puts the flow where its sender's state says: among those that may send now, or
// to be looked at later. Times already scheduled are only moved forward; a flow that is
// looked at too early is scheduled again.
func (a *Agent) schedule(f *flow, now units.Time) {
	at := f.s.Ready(now)
	wake := f.s.Deadline()
	if f.held || f.waiting {
		at = units.MaxTime
	}
	at = max(at, a.counts.PFC.Until[f.class])
	if at <= now {
		if f.readyAt == outside {
			f.tag = max(f.tag, a.virtual)
			heap.Push(&a.ready, f)
		}
	} else {
		if f.readyAt != outside {
			heap.Remove(&a.ready, f.readyAt)
		}
		wake = min(wake, at)
	}
	switch {
	case wake == units.MaxTime:
	case f.timerAt == outside:
		f.wake = wake
		heap.Push(&a.timers, f)
	case wake < f.wake:
		f.wake = wake
		heap.Fix(&a.timers, f.timerAt)
	}
}

// unschedule takes the flow out of both heaps.
func (a *Agent) unschedule(f *flow) {
	if f.readyAt != outside {
		heap.Remove(&a.ready, f.readyAt)
	}
	if f.timerAt != outside {
		heap.Remove(&a.timers, f.timerAt)
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
	return st
}
