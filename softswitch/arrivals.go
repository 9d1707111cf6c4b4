package softswitch

import (
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/port"
	"github.com/headgate/headgate/units"
)

// arrivals is a batch of frames on its way through the switch. A source's goroutine takes
// the frames through ingress, as one of several cores; the switch's goroutine then does the
// rest, in the order in which batches are handed over. It is the engine's Out meanwhile.
// Who holds it owns it.
type arrivals struct {
	batch    *port.Batch
	core     *core
	pipeline *pipeline // that the frames went through; nil when ingress is still to come
	turn     engine.Turn
	results  []result
	ends     []int // index into results behind those of each frame
}

// result is a packet that left ingress.
type result struct {
	packet *engine.Packet
	again  bool // bound for ingress once more, not for a queue
}

var _ engine.Out = (*arrivals)(nil)

// Enqueue implements engine.Out.
func (a *arrivals) Enqueue(p *engine.Packet) { a.results = append(a.results, result{p, false}) }

// Again implements engine.Out.
func (a *arrivals) Again(p *engine.Packet) { a.results = append(a.results, result{p, true}) }

// Transmit implements engine.Out; nothing leaves the switch in ingress.
func (a *arrivals) Transmit(uint32, []byte, units.Time) {}

// Digest implements engine.Out.
func (a *arrivals) Digest(name string, fields [][]byte) { a.pipeline.Digest(name, fields) }

// ingress takes the frames through ingress of the running pipeline.
func (a *arrivals) ingress(now units.Time) {
	pl := a.core.running.Load()
	if pl == nil || len(a.batch.Frames) == 0 {
		return // the switch's goroutine counts them
	}
	a.pipeline = pl
	a.turn.BeginIngress(pl.data, a.batch.Frames[0].Port)
	for _, f := range a.batch.Frames {
		if a.core.port(f.Port) != nil && !a.core.pfc.consumes(f.Port, f.Data) {
			a.turn.Ingress(a.turn.Receive(f.Port, f.Data, now), now, a)
		}
		a.ends = append(a.ends, len(a.results))
	}
	a.turn.End()
}

// reset makes a ready for another batch.
func (a *arrivals) reset() {
	clear(a.results)
	a.batch, a.pipeline, a.results, a.ends = nil, nil, a.results[:0], a.ends[:0]
}

// arrive does what is left to do for frames that have been through ingress, at time now.
func (c *core) arrive(a *arrivals, now units.Time) {
	pl, from := a.pipeline, 0
	a.turn.BeginEgress(pl.data, a.batch.Frames[0].Port)
	c.turn = &a.turn
	c.advance(now)
	for i, f := range a.batch.Frames {
		to := a.ends[i]
		if c.arrived(f.Port, f.Data) && c.pfc.takes(f.Port, f.Data) {
			c.flowControl(f.Port, f.Data, now)
		}
		c.now = now
		for _, r := range a.results[from:to] {
			switch {
			case r.again:
				pl.Again(r.packet)
			case to-from == 1 && c.pass(pl, r.packet): // others would have to be queued before it leaves
			default:
				pl.Enqueue(r.packet)
			}
		}
		from = to
		c.advance(now)
	}
	c.turn = nil
	a.turn.End()
}
