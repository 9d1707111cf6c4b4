package sim

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate/sim/event"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// outboxes hold the packets that a partition sends to others in a window. The others take them at the
// beginning of the next window, so there are two sets, used in turn. The other fields belong to the
// Sim.
type outboxes struct {
	out     [2][]outbox // by receiving partition
	turn    int
	sent    units.Time // earliest arrival of their packets, MaxTime for none
	endings []ending
	failure error
	before  uint64 // events before the window
}

// outbox holds packets for the ports of another partition.
type outbox struct {
	packets []xferPacket
	extras  []extra // extras of the packets that refer to one
	teles   []teleRecord
}

// xferPacket is a packet with the port where it arrives, in half a cache line.
type xferPacket struct {
	packet
	port int32 // where it arrives
	fifo int32 // index of the FIFO in the other partition, negative for none
}

// ending is the acknowledgement that completes a flow and ends it on arrival.
type ending struct {
	at     units.Time
	tagged bool // the flow has a Tag, so a Driver is called
}

func newOutboxes(n int) outboxes {
	return outboxes{out: [2][]outbox{make([]outbox, n), make([]outbox, n)}, sent: units.MaxTime}
}

// windows is the state of a run with several partitions. Time passes in windows. A window is as long as the
// shortest time that a packet takes from one partition to another (the conservative algorithm YAWNS; Nicol, 1993).
type windows struct {
	look     units.Time  // the least time from sending a packet to its arrival in another partition
	workers  *workerPool // nil before the first parallel window of a Run
	last     uint64      // events of the last window
	enough   uint64      // a window runs in parallel if the previous one had at least this many events
	parallel bool        // partitions run in parallel at present
	work     Work
}

// Work says how a run was shared between processors.
type Work struct {
	Cores    int    // partitions
	Why      string // why there is one partition although more were asked for
	Windows  uint64 // windows that were run with several partitions
	Serial   uint64 // windows that had to be run sequentially
	Events   uint64 // events in windows
	Critical uint64 // events of the busiest partition of each window, or all of a sequential window
}

// Work returns how the run has been shared so far. Results do not depend on it.
func (s *Sim) Work() Work { return s.windows.work }

// plan assigns nodes to at most Config.Cores partitions.
func (s *Sim) plan(c *Config) (of []int32, n int) {
	of, n = make([]int32, len(s.nodes)), max(c.Cores, 1)
	s.windows.work.Cores = 1
	if n == 1 {
		return of, 1
	}
	if len(s.nics) > s.graph.Hosts {
		s.windows.work.Why = "hosts have several links"
		return of, 1
	}
	n = min(n, s.graph.Switches)
	split := topo.Split(s.graph, n)
	least := uint16(min(s.ackSize, s.pfc.Frame, minFrame))
	look := units.MaxTime
	for i := range s.ports {
		p := &s.ports[i]
		peer := s.ports[p.peer].node
		p.cross = split[p.node] != split[peer]
		// The ends of flows must be known one window in advance; see mustBeSerial.
		p.toHost = s.graph.IsHost(int(peer))
		if p.cross || p.toHost {
			look = min(look, p.delay+p.txTime(least))
		}
	}
	switch {
	case n < 2:
		s.windows.work.Why = "the fabric has one switch"
	case look < minLook:
		s.windows.work.Why = "a link's delay of " + look.String() + " leaves too little to do side by side"
	default:
		s.windows.look, s.windows.enough, s.windows.work.Cores = look, worthwhile, n
		for node, partition := range split {
			of[node] = int32(partition)
		}
		return of, n
	}
	for i := range s.ports {
		s.ports[i].cross, s.ports[i].toHost = false, false
	}
	return of, 1
}

// minLook is the shortest window that is worth the synchronisation at its end. worthwhile is the value of
// windows.enough.
const (
	minLook    = 50 * units.Nanosecond
	worthwhile = 400
)

// deliverRemote sends a packet to another partition.
func (s *partition) deliverRemote(p *port, at units.Time, e *packet) {
	box := &s.out[s.turn][p.into]
	if e.extra != 0 {
		x := &s.extras.all[e.extra]
		box.extras = append(box.extras, *x)
		if x.tele != 0 {
			box.teles = append(box.teles, s.tele.all[x.tele])
		}
	}
	box.packets = append(box.packets, xferPacket{})
	m := &box.packets[len(box.packets)-1]
	m.become(e.on(at), e)
	m.port, m.fifo = p.peer, int32(s.fifoFor(p.fifos>>4, e.size()))
	s.free(e)
	s.sent = min(s.sent, at)
}

// drain takes the packets that other partitions sent in the last window.
func (s *partition) drain() {
	for _, from := range s.partitions {
		box := &from.out[1-s.turn][s.number]
		extras, teles := box.extras, box.teles
		for i := range box.packets {
			m := &box.packets[i]
			e := &m.packet
			if e.extra != 0 {
				e.extra = s.extras.get()
				x := &s.extras.all[e.extra]
				*x, extras = extras[0], extras[1:]
				if x.tele != 0 {
					x.tele = s.tele.get()
					s.tele.all[x.tele], teles = teles[0], teles[1:]
				}
			}
			s.alloc()
			if at := e.due(s.Sim.now); m.fifo >= 0 {
				s.events.fifos.push(int(m.fifo), at, m.port, e)
			} else {
				s.appendToLink(m.port, at, e)
			}
		}
		box.packets, box.extras, box.teles = box.packets[:0], box.extras[:0], box.teles[:0]
	}
}

// window runs one window of events from a time on, and not beyond limit.
func (s *Sim) window(from, limit units.Time) {
	if len(s.partitions) == 1 {
		s.runSequential(limit)
		s.collectErrors()
		return
	}
	end := limit
	if limit-from >= s.windows.look {
		end = from + s.windows.look - 1
	}
	for _, p := range s.partitions {
		p.turn = 1 - p.turn
		p.sent = units.MaxTime
		p.before = p.stats.Events
	}
	if s.mustBeSerial(from, end) {
		for _, p := range s.partitions {
			p.drain()
		}
		s.runSequential(end)
		s.collectErrors()
		s.windows.count(s.partitions, true)
		return
	}
	s.admitDue(end)
	if s.err == nil {
		s.windows.parallel = true
		s.windows.each(s, end)
		s.windows.parallel = false
	}
	s.collectErrors()
	s.windows.count(s.partitions, false)
}

// earliest returns the time of the next event, not counting actions; MaxTime for none.
func (s *Sim) earliest() units.Time {
	at := s.nextStart()
	for _, p := range s.partitions {
		at = min(at, p.events.first().At, p.sent)
	}
	return at
}

// mustBeSerial reports whether a window may contain an event that acts on another partition at once:
// the end of a flow that a Driver answers with new flows, or of the last flow. Such an end is known
// one window ahead, because the last acknowledgement is already on the last link.
func (s *Sim) mustBeSerial(from, end units.Time) bool {
	ends, tagged := 0, false
	for _, p := range s.partitions {
		p.endings = slices.DeleteFunc(p.endings, func(e ending) bool { return e.at < from })
		for _, e := range p.endings {
			if e.at <= end {
				ends++
				tagged = tagged || e.tagged
			}
		}
	}
	return tagged || s.halting && s.running() <= ends
}

// runSequential runs the events of all partitions until a time in their common order.
func (s *Sim) runSequential(end units.Time) {
	for s.err == nil {
		if !s.step(min(s.untilAction(end), s.nextStart()-1)) {
			return
		}
		start := s.nextStart() // there may be a new one, or an action
		if start > s.untilAction(end) || start == units.MaxTime {
			return
		}
		s.admitDue(start)
	}
}

// step runs the events scheduled up to a time. It returns false if a partition has stopped.
func (s *Sim) step(until units.Time) bool {
	if len(s.partitions) == 1 {
		s.partitions[0].run(until)
		return !s.partitions[0].stopped
	}
	for _, p := range s.partitions {
		p.until = until
	}
	for {
		var first *partition
		at := event.Event{At: units.MaxTime, What: event.Never}
		for _, p := range s.partitions {
			if p.stopped {
				return false
			}
			if e := p.events.first(); e.At <= p.until && e.Before(at) {
				first, at = p, e
			}
		}
		if first == nil {
			return true
		}
		first.single = true
		first.run(first.until)
		first.single = false
	}
}

// limitUntil makes the present window end at t, because something is to happen right after t.
func (s *Sim) limitUntil(t units.Time) {
	for _, p := range s.partitions {
		p.until = min(p.until, t)
	}
}

// collectErrors takes the time and the first error of the partitions at the end of a window.
func (s *Sim) collectErrors() {
	var failed *partition
	for _, p := range s.partitions {
		s.now = max(s.now, p.now)
		if p.failure != nil && (failed == nil || p.now < failed.now) {
			failed = p
		}
	}
	if failed != nil && s.err == nil {
		s.err = failed.failure
	}
}

// synchronise brings all partitions to the time of the run and empties their outboxes.
func (s *Sim) synchronise() {
	for _, p := range s.partitions {
		p.turn = 1 - p.turn
		p.sent = units.MaxTime
		p.now = s.now
	}
	for _, p := range s.partitions {
		p.drain()
	}
}

// count adds a window to Work.
func (w *windows) count(partitions []*partition, serial bool) {
	most, all := uint64(0), uint64(0)
	for _, p := range partitions {
		n := p.stats.Events - p.before
		most, all = max(most, n), all+n
	}
	w.last = all
	w.work.Windows++
	w.work.Events += all
	if serial {
		w.work.Serial++
		most = all
	}
	w.work.Critical += most
}

// each runs one window of all partitions, in parallel if there are enough events.
func (w *windows) each(s *Sim, end units.Time) {
	do := func(i int) {
		s.partitions[i].drain()
		s.partitions[i].run(end)
	}
	if w.last < w.enough {
		for i := range s.partitions {
			do(i)
		}
		return
	}
	if w.workers == nil {
		w.workers = newWorkerPool(len(s.partitions))
	}
	w.workers.run(do)
}

// workerPool runs the partitions of one window after the other, each on its own goroutine. The
// caller's goroutine runs the first.
type workerPool struct {
	do    func(i int) // nil ends the workers
	n     int32       // workers
	round atomic.Uint32
	left  atomic.Int32 // workers that have not ended the round
	mu    sync.Mutex
	woken *sync.Cond // signalled when round or left has changed
}

// newWorkerPool returns a pool for n partitions.
func newWorkerPool(n int) *workerPool {
	t := &workerPool{n: int32(n - 1)}
	t.woken = sync.NewCond(&t.mu)
	for i := 1; i < n; i++ {
		go t.serve(i)
	}
	return t
}

// run calls do for each partition in parallel and returns when all calls have returned.
func (t *workerPool) run(do func(i int)) {
	t.start(do)
	do(0)
	t.wait(func() bool { return t.left.Load() == 0 })
}

func (t *workerPool) start(do func(i int)) {
	t.do = do
	t.left.Store(t.n)
	t.round.Add(1)
	t.wake()
}

// close ends the goroutines.
func (t *workerPool) close() { t.start(nil) }

func (t *workerPool) serve(i int) {
	for round := uint32(1); ; round++ {
		t.wait(func() bool { return t.round.Load() == round })
		if t.do == nil {
			return
		}
		t.do(i)
		if t.left.Add(-1) == 0 {
			t.wake()
		}
	}
}

// spins is how often wait polls before it sleeps, some 5 µs: the next window mostly begins sooner.
const spins = 2000

// wait returns once a condition holds. The caller that makes it true calls wake afterwards.
func (t *workerPool) wait(holds func() bool) {
	for range spins {
		if holds() {
			return
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for !holds() {
		t.woken.Wait()
	}
}

func (t *workerPool) wake() {
	t.mu.Lock() // a waiter that saw the condition false is asleep by now
	defer t.mu.Unlock()
	t.woken.Broadcast()
}
