package softswitch

import (
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/port"
	"github.com/headgate/headgate/units"
)

// rxBatch is a batch of frames that enters the switch; every frame enters in one.
// dataplane.receiveBatch runs ingress for each frame and queues the resulting packets before the
// next frame.
//
// If the program allows it, the goroutine that read the frames may call ingressAhead first,
// without the switch's lock, so that ingress and egress use different cores. The batch then
// implements the engine's Out and keeps the packets that left ingress until receiveBatch queues
// them. One goroutine at a time owns a batch. The zero value is ready.
type rxBatch struct {
	*pipeline // the frames' pipeline, nil while there is none

	frames  []port.Frame
	next    int         // index of the first frame that is not in the switch yet
	waits   int         // rounds that the frames have waited, at most patience
	batch   *port.Batch // owner of the frames' memory, nil for none
	ahead   []arrival   // per frame, its arrival if ingressAhead ran; else empty
	results []result
	drops   []drop // drops that receiveBatch has not counted yet
	worker  engine.Worker
	early   []*engine.Packet // packets that have looked ahead, of the frames from index first on; nil for a frame that is none
	first   int
	looking []*engine.Packet // scratch memory of lookAhead
}

// arrival is the result of ingress for one frame.
type arrival struct {
	from, to int32 // indices of its packets in results
	known    bool  // the port exists
	control  bool  // it is a MAC control frame that the port obeys
	unseen   bool  // it was dropped because there is no pipeline
}

type result struct {
	packet       *engine.Packet
	recirculated bool // it goes back to ingress, not to a queue
}

type drop struct {
	port uint32
	why  engine.Drop
}

// Enqueue implements engine.Out.
func (a *rxBatch) Enqueue(p *engine.Packet) { a.results = append(a.results, result{p, false}) }

// Recirculate implements engine.Out.
func (a *rxBatch) Recirculate(p *engine.Packet) { a.results = append(a.results, result{p, true}) }

// Dropped implements engine.Out.
func (a *rxBatch) Dropped(port uint32, why engine.Drop) { a.drops = append(a.drops, drop{port, why}) }

// fill puts frames into an empty batch.
func (a *rxBatch) fill(b *port.Batch) { a.batch, a.frames = b, b.Frames }

func (a *rxBatch) reset() {
	clear(a.results)
	a.pipeline, a.frames, a.next, a.waits, a.batch = nil, nil, 0, 0, nil
	a.ahead, a.results = a.ahead[:0], a.results[:0]
}

// ingressAhead runs ingress of the running pipeline for all frames, unless the pipeline depends
// on the order of ingress and egress. It needs no lock.
func (a *rxBatch) ingressAhead(c *dataplane, now units.Time) {
	pl := c.running.Load()
	if pl == nil || pl.ordered || len(a.frames) == 0 {
		return
	}
	a.pipeline = pl
	a.worker.BeginIngress(pl.data, a.frames[0].Port)
	for i := range a.frames {
		a.ahead = append(a.ahead, a.ingress(c, i, now))
	}
	a.early, a.first = a.early[:0], 0
	a.worker.End()
}

// ingress runs ingress for a frame of the batch. Here alone PFC decides whether a frame goes to
// the port's MAC or to the pipeline.
func (a *rxBatch) ingress(c *dataplane, i int, now units.Time) arrival {
	f := &a.frames[i]
	n := int32(len(a.results))
	r := arrival{from: n, to: n}
	if r.known = c.port(f.Port) != nil; !r.known {
		return r
	}
	r.control = c.pfc.consumes(f.Port, f.Data)
	switch {
	case r.control:
	case a.pipeline == nil:
		r.unseen = true
	default:
		a.worker.Ingress(a.receive(c, i, now), now, a)
		r.to = int32(len(a.results))
	}
	return r
}

// receive makes a packet of frame i. If the program has large tables, it looks up some frames at once.
func (a *rxBatch) receive(c *dataplane, i int, now units.Time) *engine.Packet {
	if !a.worker.LooksAhead() {
		return a.worker.Receive(a.frames[i].Port, a.frames[i].Data, now)
	}
	if i >= a.first+len(a.early) {
		a.early, a.looking, a.first = a.early[:0], a.looking[:0], i
		for _, f := range a.frames[i:min(i+engine.AheadPackets, len(a.frames))] {
			var p *engine.Packet
			if c.port(f.Port) != nil && !c.pfc.consumes(f.Port, f.Data) {
				p = a.worker.Receive(f.Port, f.Data, now)
				a.looking = append(a.looking, p)
			}
			a.early = append(a.early, p)
		}
		a.worker.Ahead(a.looking)
	}
	return a.early[i-a.first]
}

// forget discards packets that have looked ahead and that the round does not reach. The program and its
// entries may change before the next round.
func (a *rxBatch) forget() {
	for _, p := range a.early[min(max(a.next-a.first, 0), len(a.early)):] {
		p.Free()
	}
	a.early, a.first = a.early[:0], 0
}

// patience is the number of rounds for which a batch waits for events that were due before it. It
// is enough to catch up after the machine stalled for a while. It bounds the wait if a packet
// recirculates for ever.
const patience = 16

// receiveBatch runs frames through ingress and queues their packets at time now, with the lock
// held. It first processes the events that were due before now, so that packets that should have
// left do not count against the queues' limits. It returns true if the round ends before the last
// frame. The caller then releases the lock, acquires it and calls again.
func (c *dataplane) receiveBatch(a *rxBatch, now units.Time) (more bool) {
	c.run(now)
	late := c.budget <= 0
	if late && a.waits < patience {
		a.waits++
		return true
	}
	ahead := len(a.ahead) > 0
	if !ahead {
		a.pipeline = c.running.Load()
	}
	if pl := a.pipeline; pl != nil && a.next < len(a.frames) {
		if first := a.frames[a.next].Port; ahead {
			a.worker.BeginEgress(pl.data, first)
		} else {
			a.worker.BeginIngress(pl.data, first)
		}
		c.worker = &a.worker
	}
	for c.budget = roundPackets; a.next < len(a.frames) && c.budget > 0; a.next++ {
		c.budget--
		f := &a.frames[a.next]
		if ahead {
			c.forward(a, f, a.ahead[a.next])
		} else {
			a.results = a.results[:0]
			c.forward(a, f, a.ingress(c, a.next, c.now))
		}
		if !late {
			c.runDue(c.now)
		}
	}
	a.forget()
	if c.worker != nil {
		c.worker.End()
		c.worker = nil
	}
	for _, d := range a.drops {
		c.dropped(d.port, d.why)
	}
	a.drops = a.drops[:0]
	return a.next < len(a.frames)
}

// receive does what receiveBatch does for one frame. It waits at most one round for earlier events.
func (c *dataplane) receive(number uint32, frame []byte, now units.Time) {
	a := &c.single
	c.frame[0] = port.Frame{Port: number, Data: frame}
	a.frames, a.waits = c.frame[:], patience
	c.receiveBatch(a, now)
	a.reset()
}

// forward counts a frame. It obeys the frame if it is a MAC control frame, and queues the packets
// that ingress made from it.
func (c *dataplane) forward(a *rxBatch, f *port.Frame, r arrival) {
	if !r.known {
		c.stats.UnknownPort++
		return
	}
	p := c.ports[f.Port]
	p.info.RxFrames++
	p.info.RxBytes += uint64(len(f.Data))
	if c.tap != nil {
		c.tap(f.Port, port.In, f.Data)
	}
	if r.control {
		c.obey(f.Port, p, f.Data, c.now)
		for class := range p.received {
			c.stormAt = min(c.stormAt, p.received[class].next(c.watch))
		}
		c.runDue(c.now) // packets of queues that it resumed
	}
	if r.unseen {
		c.stats.NoPipeline++
	}
	for _, x := range a.results[r.from:r.to] {
		switch {
		case x.recirculated:
			a.pipeline.Recirculate(x.packet)
		case r.to-r.from == 1 && c.pass(a.pipeline, x.packet): // with several packets, those behind would have to be queued before the first leaves
		default:
			a.pipeline.Enqueue(x.packet)
		}
	}
}
