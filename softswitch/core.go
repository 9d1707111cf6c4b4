package softswitch

import (
	"sync/atomic"

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

// control is what the core needs of a P4Runtime server.
type control interface {
	PacketIn(frame []byte)
	Digest(name string, fields [][]byte)
}

// core is a switch without clock and goroutines: the running pipeline, the traffic
// manager and the ports. The Switch's lock guards it, but for what arrivals need.
type core struct {
	tm      *tm.Manager
	ports   [maxPort + 1]*portState // nil: no such port; does not change while a Realtime runs
	control control
	pfc     *flowControl                                      // nil: MAC control frames are frames like others; does not change
	tap     func(port uint32, d port.Direction, frame []byte) // nil: none

	running atomic.Pointer[pipeline] // nil before the first; written with the lock held
	old     map[uint32]*pipeline     // others that have packets in the queues, by epoch
	epoch   uint32
	again   ring[returning]
	turn    *engine.Turn // of the batch being processed, nil between batches
	now     units.Time   // of the packet being processed
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
	out  Sender // nil: nothing attached
	up   bool
	info PortStats // without what the traffic manager and the driver count
}

// pipeline is one program that runs, or has packets left from when it ran. It is the
// engine's Out.
type pipeline struct {
	core  *core
	data  *engine.Instance
	epoch uint32
	held  int // packets in queues or on their way back to ingress
}

// swap makes d the running pipeline. Packets in the queues leave through the egress that
// goes with their ingress, as BMv2 has it.
func (c *core) swap(d *engine.Instance) {
	if pl := c.running.Load(); pl != nil && pl.held > 0 {
		c.old[pl.epoch] = pl
	}
	c.epoch++
	c.running.Store(&pipeline{core: c, data: d, epoch: c.epoch})
	c.stats.Pipelines++
}

// receive takes a frame that arrived on a port at time now, which never decreases, after
// all that was due before it.
func (c *core) receive(number uint32, frame []byte, now units.Time) {
	c.advance(now)
	if !c.arrived(number, frame) {
		return
	}
	if c.pfc.takes(number, frame) {
		c.flowControl(number, frame, now)
		if c.pfc.consumes(number, frame) {
			return
		}
	}
	pl := c.running.Load()
	if pl == nil {
		c.stats.NoPipeline++
		return
	}
	c.now = now
	pl.data.Ingress(pl.data.Receive(number, frame, now), now, pl)
	c.advance(now)
}

// port returns a port's state, nil when it does not exist.
func (c *core) port(n uint32) *portState {
	if n > maxPort {
		return nil
	}
	return c.ports[n]
}

// arrived counts and captures a frame; false when the port does not exist.
func (c *core) arrived(number uint32, frame []byte) bool {
	p := c.port(number)
	if p == nil {
		c.stats.UnknownPort++
		return false
	}
	p.info.RxFrames++
	p.info.RxBytes += uint64(len(frame))
	if c.tap != nil {
		c.tap(number, port.In, frame)
	}
	return true
}

// flowControl obeys a MAC control frame on an existing port.
func (c *core) flowControl(number uint32, frame []byte, now units.Time) {
	c.pfc.obey(c.tm, number, &c.ports[number].info.PFC, frame, now)
	c.advance(now) // what it resumed
}

// next returns when something is due, which may be in the past; false when nothing is.
func (c *core) next() (units.Time, bool) {
	at, ok := c.tm.Next()
	if r := c.again.front(); r != nil && (!ok || r.due < at) {
		return r.due, true
	}
	return at, ok
}

// advance runs all that is due by now, in order of time.
func (c *core) advance(now units.Time) {
	for {
		at, departs := c.tm.Next()
		departs = departs && at <= now
		if r := c.again.front(); r != nil && r.due <= now && (!departs || r.due < at) {
			c.returns(*r)
			continue
		}
		if !departs {
			return
		}
		c.depart(now)
	}
}

func (c *core) returns(r returning) {
	c.again.pop()
	c.now = r.due
	if t := c.turn; t.Of(r.pipeline.data) {
		t.Ingress(r.packet, r.due, r.pipeline) // a second lock of the instance could deadlock
	} else {
		r.pipeline.data.Ingress(r.packet, r.due, r.pipeline)
	}
	c.release(r.pipeline)
}

func (c *core) depart(now units.Time) {
	d, ok := c.tm.Dequeue(now)
	if !ok {
		return
	}
	pl := c.running.Load()
	if d.Epoch != pl.epoch {
		pl = c.old[d.Epoch]
	}
	c.leave(pl, d)
	c.release(pl)
}

// pass takes a packet through the traffic manager and egress at once, where it need not
// wait and nothing is due before it.
func (c *core) pass(pl *pipeline, p *engine.Packet) bool {
	d, ok := c.tm.Pass(p, pl.epoch, c.now)
	if ok {
		c.leave(pl, d)
	}
	return ok
}

// leave takes a packet that has left its queue through egress.
func (c *core) leave(pl *pipeline, d tm.Departure) {
	c.now = d.At
	if t := c.turn; t.Of(pl.data) {
		t.Egress(d.Packet, d.At, pl)
	} else {
		pl.data.Egress(d.Packet, d.At, pl)
	}
	c.tm.Done()
}

// hold counts a packet of a pipeline more. One that came through ingress just before
// another pipeline took over may be its pipeline's first.
func (c *core) hold(pl *pipeline) {
	if pl.held++; pl.held == 1 && pl != c.running.Load() {
		c.old[pl.epoch] = pl
	}
}

// release counts a packet of a pipeline less, and forgets an old pipeline with its last.
func (c *core) release(pl *pipeline) {
	if pl.held--; pl.held == 0 && pl != c.running.Load() {
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
	pl.core.hold(pl)
}

// Transmit implements engine.Out.
func (pl *pipeline) Transmit(number uint32, frame []byte, _ units.Time) {
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
	if c.again.n == againLimit {
		c.stats.AgainDropped++
		p.Free()
		return
	}
	c.stats.Again++
	c.hold(pl)
	*c.again.push() = returning{p, pl, c.now + againDelay}
}

// Digest implements engine.Out.
func (pl *pipeline) Digest(name string, fields [][]byte) {
	if pl == pl.core.running.Load() { // the server knows the digests of the running program only
		pl.core.control.Digest(name, fields)
	}
}
