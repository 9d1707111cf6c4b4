package swift_test

import (
	"container/heap"
	"testing"
)

// rules are those by which the authors of PrioPlus' code differ from Swift's Algorithm 1 (blueroaring/PrioPlus, src/dcb/model).
type rules struct {
	roundedStep bool // a window of w packets grows by ai/max(1, w + 0.999) per packet (rocev2-swift.cc, 142)
	basePace    bool // a window of less than a packet leaves within a base round trip (rocev2-congestion-ops.cc, 172)
	wholeBytes  bool // windows are cut to whole bytes (rocev2-swift.cc, 167)
}

type packetEvent struct {
	at   float64 // µs
	kind int     // a flow may send, a packet is at the switch, its acknowledgement is back
	flow int
	sent float64
}

type events []packetEvent

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(packetEvent)) }
func (e *events) Pop() (x any) {
	last := len(*e) - 1
	x, *e = (*e)[last], (*e)[:last]
	return x
}

// unused returns the part of a link of 100 Gb/s that so many flows leave between 1 and 4 ms: Swift without scaling with a
// target of 5 µs above the base round trip, ai of 0.0012 and first windows of 0.005 of the bandwidth-delay product (PrioPlus,
// fig3c.json). In flight is a window in whole packets, rounded up.
func (r rules) unused(flows int) float64 {
	const (
		packet, ack = 1054 * 8 / 100e3, 64 * 8 / 100e3 // µs on the link
		hop         = 3.0
		base        = 4*hop + 2*packet + 2*ack
		bdp         = 100e3 * base / 8
		target      = base + 5
		ai          = 0.0012 * bdp
	)
	const (
		send = iota
		arrive
		acked
	)
	window, rtt := make([]float64, flows), make([]float64, flows)
	next, mayCut := make([]float64, flows), make([]float64, flows)
	inFlight, waiting := make([]float64, flows), make([]bool, flows)
	var e events
	try := func(f int, at float64) {
		if !waiting[f] {
			waiting[f] = true
			heap.Push(&e, packetEvent{max(at, next[f]), send, f, 0})
		}
	}
	for f := range flows {
		window[f], rtt[f] = 0.005*bdp, base
		try(f, 0)
	}
	busy, used := 0.0, 0.0
	for {
		p := heap.Pop(&e).(packetEvent)
		f, now := p.flow, p.at
		switch {
		case now > 4000:
			return 1 - used/3000
		case p.kind == send:
			waiting[f] = false
			if inFlight[f] > 0 && inFlight[f]*1000 >= window[f] {
				continue // an acknowledgement lets it send
			}
			inFlight[f]++
			next[f] = now + packet
			if window[f] < 1000 {
				trip := rtt[f]
				if r.basePace {
					trip = base
				}
				next[f] = now + packet*(bdp*trip/base)/window[f]
			}
			heap.Push(&e, packetEvent{now + packet + hop, arrive, f, now})
			try(f, now)
		case p.kind == arrive:
			busy = max(busy, now) + packet
			if busy > 1000 && busy <= 4000 {
				used += packet
			}
			heap.Push(&e, packetEvent{busy + 2*hop + 2*ack + hop, acked, f, p.sent})
		default:
			inFlight[f]--
			rtt[f] = now - p.sent
			w := window[f]
			if delay := rtt[f]; delay < target {
				packets := w / 1000
				if r.roundedStep {
					packets += 0.999
				}
				w += ai / max(1, packets)
			} else if now >= mayCut[f] {
				w *= 1 - min(0.8*(delay-target)/delay, 0.5)
				mayCut[f] = now + delay
			}
			if r.wholeBytes {
				w = float64(int(w))
			}
			window[f] = max(w, 15)
			try(f, now)
		}
	}
}

// TestWhatManyFlowsLeaveUnused: PrioPlus' Figure 3c shows that 300 flows of Swift leave bandwidth unused. In the authors' code it is the
// three rules of theirs, above all the rounded step, that do so; by Algorithm 1 the link stays full, and with 100 flows it does by either.
func TestWhatManyFlowsLeaveUnused(t *testing.T) {
	authors := rules{true, true, true}
	for _, c := range []struct {
		name        string
		rules       rules
		flows       int
		least, most float64
	}{
		{"the authors' code", authors, 300, 0.025, 0.07},
		{"the authors' code, 100 flows", authors, 100, -0.001, 0.002},
		{"without the rounded step", rules{false, true, true}, 300, 0.005, 0.02},
		{"Algorithm 1", rules{}, 300, 0, 0.005},
	} {
		if u := c.rules.unused(c.flows); u < c.least || u > c.most {
			t.Errorf("%s: %.2f %% of the link are unused, want %v to %v %%", c.name, 100*u, 100*c.least, 100*c.most)
		} else {
			t.Logf("%s: %.2f %%", c.name, 100*u)
		}
	}
}
