package softswitch

import (
	"sync/atomic"

	"github.com/headgate/headgate/internal/pfcwd"
	"github.com/headgate/headgate/internal/ring"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/port"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/units"
)

// againDelay is how long a resubmitted or recirculated packet takes back to ingress. It is
// not zero, so that a program that recirculates for ever cannot stop the clock.
const againDelay = units.Microsecond

// againLimit is how many of them may be under way: simple_switch.cpp's input buffer.
const againLimit = 1024

// roundPackets bounds a round, the work between acquiring and releasing the switch's lock, to
// about a millisecond. A packet that recirculates for ever, or that egress clones for ever, is
// processed in every round, but no round waits for its end.
const roundPackets = 1024

// control is what the core needs of a P4Runtime server.
type control interface {
	PacketIn(frame []byte)
	Digest(name string, fields [][]byte)
}

// core is a switch without clock and goroutines: the running pipeline, the traffic
// manager and the ports. The Switch's lock guards it; ingressAhead reads ports and pfc,
// which do not change, without it.
type core struct {
	tm      *tm.Manager
	ports   [maxPort + 1]*portState // nil: no such port; does not change while a Realtime runs
	control control
	pfc     *flowControl                                      // nil: MAC control frames are frames like others; does not change
	tap     func(port uint32, d port.Direction, frame []byte) // nil: none

	watch   pfcwd.Settings                            // of received pauses
	stormAt units.Time                                // when watchStorms is due; MaxTime for not at all
	stormed func(port uint32, class int, begins bool) // called when a storm begins or ends

	running atomic.Pointer[pipeline] // nil before the first; written with the lock held
	old     map[uint32]*pipeline     // others that have packets in the queues, by epoch
	epoch   uint32
	again   ring.Ring[returning]
	single  arrivals // of receive
	frame   [1]port.Frame
	burst   *engine.Burst // of the batch being processed, nil between batches
	now     units.Time    // the time of the current event; it never decreases
	budget  int           // packets that the round may still process
	stats   Stats
}

// returning is a packet on its way back to ingress.
type returning struct {
	packet   *engine.Packet
	pipeline *pipeline
	due      units.Time
}

// portState is a port of the core.
type portState struct {
	out Sender // nil: nothing attached
	up  bool

	received [packet.PFCClasses]received // pauses
	info     PortStats                   // without what the traffic manager and the driver count
}

// pipeline is one program that runs, or has packets left from when it ran. It is the
// engine's Out.
type pipeline struct {
	core    *core
	data    *engine.Instance
	epoch   uint32
	packets int // in queues or on their way back to ingress

	// ordered says that ingress and egress share registers. No egress may then run between the
	// ingress of a frame and its queueing: otherwise a RESUME that egress sends could overtake
	// the PAUSE that ingress sent before.
	ordered bool
}

// install makes d the running pipeline. Packets in the queues still pass the egress of the
// pipeline whose ingress they passed, as in BMv2.
func (c *core) install(d *engine.Instance) {
	if pl := c.running.Load(); pl != nil && pl.packets > 0 {
		c.old[pl.epoch] = pl
	}
	c.epoch++
	c.running.Store(&pipeline{core: c, data: d, epoch: c.epoch, ordered: d.Program().SharesRegisters()})
	c.stats.Pipelines++
}

// port returns a port's state, nil when it does not exist.
func (c *core) port(n uint32) *portState {
	if n > maxPort {
		return nil
	}
	return c.ports[n]
}

// next returns when to call run again; false when nothing is due.
func (c *core) next() (units.Time, bool) {
	at, ok := c.tm.Next()
	if c.again.Len() > 0 && (!ok || c.again.Front().due < at) {
		at, ok = c.again.Front().due, true
	}
	if c.pfc != nil && c.stormAt < units.MaxTime && (!ok || c.stormAt < at) {
		at, ok = c.stormAt, true
	}
	if c.budget <= 0 {
		at = max(at, c.now+againDelay) // what never ends must not stop the clock
	}
	return at, ok
}

// run is a round: it processes what is due by now.
func (c *core) run(now units.Time) {
	c.budget = roundPackets
	c.runDue(max(c.now, now))
}

// runDue processes what is due by now, in order of time, until the round's budget is used up.
// What remains is processed in later rounds, at their time, so later events do not wait for it.
func (c *core) runDue(now units.Time) {
	if c.pfc != nil && c.stormAt <= now {
		c.watchStorms(now)
	}
	for {
		at, departs := c.tm.Next()
		departs = departs && at <= now
		returns := c.again.Len() > 0 && c.again.Front().due <= now && (!departs || c.again.Front().due < at)
		if !returns && !departs {
			break
		}
		if c.budget <= 0 {
			c.stats.Unfinished++
			break
		}
		c.budget--
		if returns {
			c.reenter(c.again.Pop())
		} else {
			c.depart(at)
		}
	}
	c.now = now
}

func (c *core) reenter(r returning) {
	c.now = max(c.now, r.due)
	if t := c.burst; t.Of(r.pipeline.data) {
		t.Ingress(r.packet, c.now, r.pipeline) // a second lock of the instance could deadlock
	} else {
		r.pipeline.data.Ingress(r.packet, c.now, r.pipeline)
	}
	c.release(r.pipeline)
}

func (c *core) depart(at units.Time) {
	d, _ := c.tm.Dequeue(at)
	c.now = max(c.now, at)
	pl := c.running.Load()
	if d.Epoch != pl.epoch {
		pl = c.old[d.Epoch]
	}
	c.egress(pl, d.Packet, d.At)
	c.release(pl)
}

// pass sends a packet through the traffic manager and egress at once. It returns false when the
// packet would have to wait or something else is due before it.
func (c *core) pass(pl *pipeline, p *engine.Packet) bool {
	if !c.tm.Pass(p, c.now) {
		return false
	}
	c.egress(pl, p, c.now)
	return true
}

// egress runs egress for a packet that has left its queue at a time.
func (c *core) egress(pl *pipeline, p *engine.Packet, at units.Time) {
	if t := c.burst; t.Of(pl.data) {
		t.Egress(p, at, pl)
	} else {
		pl.data.Egress(p, at, pl)
	}
	c.tm.Done()
}

// retain counts a packet of a pipeline that enters a queue or goes back to ingress. It keeps an
// old pipeline when its first packet is queued only after the new pipeline was installed.
func (c *core) retain(pl *pipeline) {
	if pl.packets++; pl.packets == 1 && pl != c.running.Load() {
		c.old[pl.epoch] = pl
	}
}

// release is the opposite of retain. It forgets an old pipeline with its last packet.
func (c *core) release(pl *pipeline) {
	if pl.packets--; pl.packets == 0 && pl != c.running.Load() {
		delete(c.old, pl.epoch)
	}
}

// pipeline implements engine.Out.
var _ engine.Out = (*pipeline)(nil)

// Enqueue implements engine.Out.
func (pl *pipeline) Enqueue(p *engine.Packet) {
	if !pl.core.tm.Enqueue(p, pl.epoch, pl.core.now) {
		p.Free()
		return
	}
	pl.core.retain(pl)
}

// Transmit implements engine.Out.
func (pl *pipeline) Transmit(number uint32, frame []byte) {
	c := pl.core
	finish := c.tm.Sent(units.Bytes(len(frame)))
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
	p.info.TxFrames++
	p.info.TxBytes += uint64(len(frame))
	if c.tap != nil {
		c.tap(number, port.Out, frame)
	}
	p.out.Send(frame, finish)
}

// Again implements engine.Out.
func (pl *pipeline) Again(p *engine.Packet) {
	c := pl.core
	if c.again.Len() == againLimit {
		c.stats.AgainDropped++
		p.Free()
		return
	}
	c.stats.Again++
	c.retain(pl)
	*c.again.Push() = returning{p, pl, c.now + againDelay}
}

// Digest implements engine.Out.
func (pl *pipeline) Digest(name string, fields [][]byte) {
	if pl == pl.core.running.Load() { // the server knows the digests of the running program only
		pl.core.control.Digest(name, fields)
	}
}
