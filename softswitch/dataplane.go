package softswitch

import (
	"sync/atomic"

	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/internal/ring"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/port"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/units"
)

// recirculationDelay is the time from the end of a pass to the next ingress of a resubmitted or
// recirculated packet. It is not zero, so that a packet that recirculates for ever cannot stop the
// clock.
const recirculationDelay = units.Microsecond

// recirculationLimit bounds the packets on their way back to ingress. It is the size of the input
// buffer in BMv2's simple_switch.cpp.
const recirculationLimit = 1024

// roundPackets bounds a round to about a millisecond. A round is the work between acquiring and
// releasing the switch's lock. A packet that recirculates for ever, or is cloned in egress for
// ever, is processed in every round, but no round waits for its end.
const roundPackets = 1024

// control is what the data plane needs of a P4Runtime server.
type control interface {
	PacketIn(frame []byte)
	Digest(name string, fields [][]byte)
}

// dataplane is the part of a switch without clock and goroutines: the running pipeline, the
// traffic manager and the ports. The Switch's lock guards it. Only ingressAhead runs without the
// lock; it reads ports and pfc, which do not change.
type dataplane struct {
	tm      *tm.Manager
	ports   [maxPort + 1]*portState // indexed by port number, nil: no such port; does not change while a Realtime runs
	control control
	pfc     *flowControl                                      // nil: MAC control frames pass the pipeline like other frames; does not change
	tap     func(port uint32, d port.Direction, frame []byte) // captures frames; nil for none

	watch    externs.Settings                          // the PFC watchdog's settings
	lossless externs.Lossless                          // the queues that a received PAUSE of each class stops
	obeyed   externs.Obeyed                            // ports that differ in the classes of lossless
	stormAt  units.Time                                // when watchStorms is due; MaxTime for never
	stormed  func(port uint32, class int, begins bool) // called when a storm begins or ends

	running        atomic.Pointer[pipeline] // nil before the first commit; written with the lock held
	old            map[uint32]*pipeline     // replaced pipelines that still have packets in the queues, by epoch
	epoch          uint32
	recirculations ring.Ring[recirculation]
	single         rxBatch // used by receive
	frame          [1]port.Frame
	worker         *engine.Worker // worker of the batch being processed, nil between batches
	now            units.Time     // the time of the current event; it never decreases
	budget         int            // packets that the round may still process
	stats          Stats
	sent           uint64 // frames sent by all ports
}

type recirculation struct {
	packet   *engine.Packet
	pipeline *pipeline
	due      units.Time
}

type portState struct {
	out Sender // nil: no driver or cable is attached
	up  bool

	received [packet.PFCClasses]received // pauses that the port's peer sent, by class
	info     PortStats                   // without the counters of the traffic manager and the driver
}

// pipeline is a program that is running, or that was replaced and still has packets in the queues.
// It is the engine's Out.
type pipeline struct {
	dataplane *dataplane
	data      *engine.Instance
	worker    engine.Worker // processes packets outside of batches; the switch's lock guards it
	epoch     uint32
	packets   int // packets in queues or on their way back to ingress

	// ordered is set if ingress and egress share registers. Then no egress may run between the
	// ingress of a frame and its queueing. Otherwise a RESUME that egress sends could overtake an
	// earlier PAUSE of ingress.
	ordered bool
}

// install makes d the running pipeline. Packets in the queues still pass the egress of the
// pipeline that they entered by, as in BMv2.
func (c *dataplane) install(d *engine.Instance) {
	if pl := c.running.Load(); pl != nil && pl.packets > 0 {
		c.old[pl.epoch] = pl
	}
	c.epoch++
	c.running.Store(&pipeline{dataplane: c, data: d, worker: d.Worker(), epoch: c.epoch, ordered: d.Program().SharesRegisters()})
	c.stats.Pipelines++
}

func (c *dataplane) port(n uint32) *portState {
	if n > maxPort {
		return nil
	}
	return c.ports[n]
}

func (c *dataplane) classes(yield func(number uint32, class int, p *portState)) {
	for number, p := range c.ports {
		for class := 0; p != nil && class < packet.PFCClasses; class++ {
			yield(uint32(number), class, p)
		}
	}
}

// next returns the time of the next event, at which run must be called. It returns false if no
// event is due.
func (c *dataplane) next() (units.Time, bool) {
	at, ok := c.tm.Next()
	if c.recirculations.Len() > 0 && (!ok || c.recirculations.Front().due < at) {
		at, ok = c.recirculations.Front().due, true
	}
	if c.pfc != nil && c.stormAt < units.MaxTime && (!ok || c.stormAt < at) {
		at, ok = c.stormAt, true
	}
	if c.budget <= 0 {
		at = max(at, c.now+recirculationDelay) // a packet that recirculates for ever must not stop the clock
	}
	return at, ok
}

// run is one round: it processes the events that are due by now.
func (c *dataplane) run(now units.Time) {
	c.budget = roundPackets
	c.runDue(max(c.now, now))
}

// runDue processes the events that are due by now, in order of time, until the round's budget is
// used up. Later rounds process the rest.
func (c *dataplane) runDue(now units.Time) {
	if c.pfc != nil && c.stormAt <= now {
		c.watchStorms(now)
	}
	for {
		at, departs := c.tm.Next()
		departs = departs && at <= now
		returns := c.recirculations.Len() > 0 && c.recirculations.Front().due <= now && (!departs || c.recirculations.Front().due < at)
		if !returns && !departs {
			break
		}
		if c.budget <= 0 {
			c.stats.Unfinished++
			break
		}
		c.budget--
		if returns {
			c.reenter(c.recirculations.Pop())
		} else {
			c.depart(at)
		}
	}
	c.now = now
}

func (c *dataplane) reenter(r recirculation) {
	c.now = max(c.now, r.due)
	c.workerOf(r.pipeline).Ingress(r.packet, c.now, r.pipeline)
	c.release(r.pipeline)
}

func (c *dataplane) depart(at units.Time) {
	d, _ := c.tm.Dequeue(at)
	c.now = max(c.now, at)
	pl := c.running.Load()
	if d.Epoch != pl.epoch {
		pl = c.old[d.Epoch]
	}
	c.egress(pl, d.Packet, d.At)
	c.release(pl)
}

// pass sends a packet through the traffic manager and egress at once. It returns false if the
// packet must wait in a queue or another event is due first.
func (c *dataplane) pass(pl *pipeline, p *engine.Packet) bool {
	if !c.tm.TryBypass(p, c.now) {
		return false
	}
	c.egress(pl, p, c.now)
	return true
}

// egress runs egress for a packet that left its queue at time at.
func (c *dataplane) egress(pl *pipeline, p *engine.Packet, at units.Time) {
	c.workerOf(pl).Egress(p, at, pl)
	c.tm.Complete()
}

// workerOf returns the worker for packets of pipeline pl. During a batch of pl it is the batch's
// worker, because locking the instance a second time could deadlock. Otherwise it is the
// pipeline's own.
func (c *dataplane) workerOf(pl *pipeline) *engine.Worker {
	if c.worker.Runs(pl.data) {
		return c.worker
	}
	return &pl.worker
}

// retain counts a packet of pl that enters a queue or goes back to ingress. If pl was replaced
// before its first packet was queued, retain adds it to the old pipelines.
func (c *dataplane) retain(pl *pipeline) {
	if pl.packets++; pl.packets == 1 && pl != c.running.Load() {
		c.old[pl.epoch] = pl
	}
}

// release undoes one retain. It forgets a replaced pipeline when the last packet that retained it is gone.
func (c *dataplane) release(pl *pipeline) {
	if pl.packets--; pl.packets == 0 && pl != c.running.Load() {
		delete(c.old, pl.epoch)
	}
}

// Enqueue implements engine.Out.
func (pl *pipeline) Enqueue(p *engine.Packet) {
	if !pl.dataplane.tm.Enqueue(p, pl.epoch, pl.dataplane.now) {
		p.Note("Dropping packet: the queue is full")
		p.Free()
		return
	}
	pl.dataplane.retain(pl)
}

// Dropped implements engine.Out.
func (pl *pipeline) Dropped(port uint32, why engine.Drop) { pl.dataplane.dropped(port, why) }

func (c *dataplane) dropped(number uint32, why engine.Drop) {
	if p := c.port(number); p != nil {
		p.info.Drops[why]++
	} else {
		c.stats.UnknownPort++
	}
}

// Transmit implements engine.Out.
func (pl *pipeline) Transmit(number uint32, frame []byte) {
	c := pl.dataplane
	finish := c.tm.OnTransmit(units.Bytes(len(frame)))
	p := c.port(number)
	if p == nil {
		c.stats.UnknownPort++
		return
	}
	if p.out == nil || !p.up {
		p.info.TxLost++
		return
	}
	if c.drops(p, c.tm.Sending()) {
		return
	}
	c.sent++
	p.info.TxFrames++
	p.info.TxBytes += uint64(len(frame))
	if c.tap != nil {
		c.tap(number, port.Out, frame)
	}
	p.out.Send(frame, finish)
}

// Recirculate implements engine.Out.
func (pl *pipeline) Recirculate(p *engine.Packet) {
	c := pl.dataplane
	if c.recirculations.Len() == recirculationLimit {
		c.stats.RecirculationsDropped++
		p.Free()
		return
	}
	c.stats.Recirculated++
	c.retain(pl)
	*c.recirculations.Push() = recirculation{p, pl, c.now + recirculationDelay}
}

// Digest implements engine.Out.
func (pl *pipeline) Digest(name string, fields [][]byte) {
	if pl == pl.dataplane.running.Load() { // the P4Runtime server knows only the running program's digests
		pl.dataplane.control.Digest(name, fields)
	}
}
