package softswitch

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/headgate/headgate/softswitch/port"
	"github.com/headgate/headgate/softswitch/stages"
	"github.com/headgate/headgate/units"
)

// Realtime is a switch on the wall clock with real ports. Add ports before Run.
type Realtime struct {
	*Switch
	r *realtimeDriver
}

// realtimeDriver runs a switch on the wall clock. The goroutine of Run owns its fields unless a
// comment names another owner.
type realtimeDriver struct {
	start time.Time
	wake  chan struct{}
	work  chan *rxBatch
	idle  sync.Pool // of *rxBatch

	mu      sync.Mutex
	posted  []func()      // owned by mu
	pending atomic.Int64  // posted functions that have not returned yet
	queued  atomic.Int64  // batches that were queued and not processed yet
	armed   units.Time    // the time that the alarm is set for; the switch's lock guards it
	failure chan error    // error of a flush on a source's goroutine
	times   *stages.Times // nil: not measured
	sent    uint64        // frames at the last flush that was measured; the switch's lock guards it

	drivers      []port.Port
	sources      []port.Source
	capture      *port.Capture    // nil: none
	links        *port.LinkEvents // nil: none
	driverSelect driverSelect
	attachments  attachments
}

// NewRealtime makes a switch that runs in real time. Its clock starts at 0 now.
func NewRealtime(c Config) (*Realtime, error) {
	r := &realtimeDriver{
		start: time.Now(), wake: make(chan struct{}, 1), work: make(chan *rxBatch, 16),
		armed: units.MaxTime, failure: make(chan error, 1), times: c.Times,
	}
	s, err := newSwitch(c, r)
	if err != nil {
		return nil, fmt.Errorf("switch %s: %w", c.Name, err)
	}
	r.idle.New = func() any { return &rxBatch{} }
	return &Realtime{s, r}, nil
}

func (r *realtimeDriver) time() units.Time { return units.FromDuration(time.Since(r.start)) }

func (r *realtimeDriver) post(fn func()) {
	r.mu.Lock()
	r.posted = append(r.posted, fn)
	r.pending.Add(1)
	r.mu.Unlock()
	signal(r.wake)
}

func (r *realtimeDriver) runPosted() {
	if r.pending.Load() == 0 {
		return
	}
	r.mu.Lock()
	work := r.posted
	r.posted = nil
	r.mu.Unlock()
	for _, fn := range work {
		fn()
		r.pending.Add(-1)
	}
}

// Turned waits until the switch's loop has made a turn. It returns an error when ctx ends before.
func (s *Realtime) Turned(ctx context.Context) error {
	ran := make(chan struct{})
	s.r.post(func() { close(ran) })
	select {
	case <-ran:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the loop of switch %s: %w", s.name, ctx.Err())
	}
}

// driven sends the frames of a port to its driver when their first bits leave: the interface takes
// the time of a frame itself.
type driven struct{ port port.Port }

func (d driven) Send(frame []byte, _ units.Time) { d.port.Send(frame) }

// driver returns the driver of a port, or nil if the port has none or does not exist.
func (p *portState) driver() port.Port {
	if p == nil {
		return nil
	}
	d, _ := p.out.(driven)
	return d.port
}

// AddPort adds a port with a driver; a rate of 0 is unlimited. Run closes the driver.
func (s *Realtime) AddPort(p port.Named, rate units.Rate, driver port.Port) error {
	if err := s.addPort(p.Number, p.Name, rate, driven{driver}); err != nil {
		return fmt.Errorf("interface %s: %w", p.Name, err)
	}
	s.r.drivers = append(s.r.drivers, driver)
	return nil
}

// AddSource adds a source of frames.
func (s *Realtime) AddSource(src port.Source) {
	if t, ok := src.(interface{ Measure(*stages.Times) }); ok && s.r.times != nil {
		t.Measure(s.r.times)
	}
	s.r.sources = append(s.r.sources, src)
}

// SetCapture records the frames of all ports. Run closes it.
func (s *Realtime) SetCapture(c *port.Capture) {
	s.r.capture = c
	s.dataplane.tap = func(n uint32, d port.Direction, frame []byte) { c.Frame(n, d, frame, time.Now()) }
}

// SetLinkEvents makes the switch check its interfaces as soon as the kernel reports a change. Without
// events it checks them every watchPeriod. Run closes the events.
func (s *Realtime) SetLinkEvents(e *port.LinkEvents) { s.r.links = e }

// Run runs the switch until ctx ends, then stops serving P4Runtime and closes the drivers.
// It returns nil unless a source or a driver failed. A switch runs once.
func (s *Realtime) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, src := range s.r.sources {
		group.Go(func() error {
			_, files := src.(*port.Files)
			return src.Run(ctx, func(b *port.Batch) { s.deliver(ctx, b, files) })
		})
	}
	group.Go(func() error { return s.loop(ctx) })
	changed := make(chan struct{}, 1)
	if s.r.links != nil {
		group.Go(func() error {
			return s.r.links.Run(ctx, func() { signal(changed) })
		})
	}
	group.Go(func() error { s.watch(ctx, group, changed); return nil })
	err := group.Wait()
	drivers := slices.Concat(s.r.drivers, s.r.attachments.retired)
	errs := make([]error, len(drivers))
	var closing sync.WaitGroup
	for i, d := range drivers { // close all at once, because the kernel takes some 30 ms to close a socket with rings
		closing.Go(func() { errs[i] = d.Close() })
	}
	s.Close()
	closing.Wait()
	err = errors.Join(err, errors.Join(errs...))
	if u := s.r.driverSelect.users; u != nil {
		err = errors.Join(err, u.Close())
	}
	if s.r.capture != nil {
		err = errors.Join(err, s.r.capture.Close())
	}
	return err
}

// deliver processes a batch on its source's goroutine, or queues it for the switch's goroutine.
//
// If the switch is idle, the source's goroutine processes the whole batch. That saves waking
// another goroutine and moving packets between cores. If the switch is busy, or if the batch is
// full and the process has more than two cores, the source's goroutine queues the batch. It first
// runs ingress for the batch if the program allows that. Frames that arrived after a function was
// posted, such as the commit of a pipeline, pass ingress after that function.
//
// A batch from files is always queued, and the switch's goroutine runs its ingress too. Files
// always have more frames, so their goroutine reads on meanwhile. Moving a packet and its fields
// to another core takes longer than its ingress.
func (s *Realtime) deliver(ctx context.Context, b *port.Batch, files bool) {
	a := s.r.idle.Get().(*rxBatch)
	a.fill(b)
	if !files {
		if (len(b.Frames) < cap(b.Frames) || runtime.GOMAXPROCS(0) <= 2) && s.direct(a) {
			return
		}
		if s.r.pending.Load() == 0 {
			a.ingressAhead(&s.dataplane, s.r.time())
		}
	}
	s.r.queued.Add(1)
	select {
	case s.r.work <- a:
	case <-ctx.Done():
		s.r.done(a)
	}
}

// direct processes a batch at once if the switch is idle. It returns false if the switch is busy.
func (s *Realtime) direct(a *rxBatch) bool {
	r := s.r
	idle := func() bool { return r.queued.Load() == 0 && r.pending.Load() == 0 }
	if !idle() || !s.mu.TryLock() {
		return false
	}
	if !idle() {
		s.mu.Unlock()
		return false
	}
	s.receiveBatch(a)
	var err error
	if r.queued.Load() == 0 { // otherwise the loop flushes after the queued batches
		err = s.send(false)
	}
	at, waits := s.dataplane.next()
	waits = waits && at != r.armed
	s.mu.Unlock()
	r.done(a)
	if err != nil {
		select {
		case r.failure <- err:
		default: // the first error ends the switch
		}
	}
	if waits { // only the loop may set the alarm
		signal(r.wake)
	}
	return true
}

// receiveBatch processes a batch. The caller holds the lock, which is released between rounds.
func (s *Realtime) receiveBatch(a *rxBatch) {
	for now := s.r.time(); s.dataplane.receiveBatch(a, now); {
		s.mu.Unlock()
		s.mu.Lock()
	}
}

// done releases a batch and keeps it for reuse.
func (r *realtimeDriver) done(a *rxBatch) {
	a.batch.Release()
	a.reset()
	r.idle.Put(a)
}

const (
	// watchPeriod is the interval between two checks of the interfaces if no event arrives.
	watchPeriod = 500 * time.Millisecond
	// lookPause is the shortest interval between two events that each make the ports choose their
	// drivers at once. An event within it waits for the next tick of watchPeriod.
	lookPause = 100 * time.Millisecond
)

// watch reports interfaces that go down or up to the P4Runtime server. It attaches interfaces that
// come back or are asked for, and lets ports choose their drivers. It logs when packets
// recirculate faster than the switch can process them.
func (s *Realtime) watch(ctx context.Context, group *errgroup.Group, changed <-chan struct{}) {
	tick := time.NewTicker(watchPeriod)
	defer tick.Stop()
	down, said := map[uint32]bool{}, map[portDrop]bool{}
	event := false // an event arrived within lookPause and is not handled yet
	looked := time.Now()
	s.choose(true)
	for unfinished, behind := uint64(0), false; ; {
		st := s.Stats()
		if now := st.Unfinished > unfinished; now != behind {
			behind = now
			s.log.Warn("recirculated, resubmitted and egress-cloned packets", "switch", s.name, "exceedCapacity", behind, "passes", st.Recirculated)
		}
		unfinished = st.Unfinished
		for _, p := range s.PortStats() {
			if p.Port != s.cpu && p.Up == down[p.Port] {
				down[p.Port] = !p.Up
				s.log.Info("port state", "switch", s.name, "port", p.Port, "interface", p.Name, "up", p.Up)
				s.portState(p.Port, p.Up)
			}
			s.sayDrops(&p, said)
			s.reopen(ctx, group, p)
		}
		select {
		case ask := <-s.r.attachments.asks:
			ask(ctx, group)
		case <-tick.C:
			s.choose(event)
			event = false
		case <-changed:
			if event = time.Since(looked) < lookPause; !event {
				looked = time.Now()
				s.choose(true)
			}
		case <-ctx.Done():
			return
		}
	}
}

// remedies says what helps against drops by reason. Drops that the program wants have none.
var remedies = map[string]string{
	"queue-full":   "raise --queue-limit; a host with segmentation offload sends some 45 packets at once",
	"no-queue":     "raise --priority-queues",
	"rx-overrun":   "the senders are faster than the switch",
	"rx-truncated": "lower the MTU of the senders",
	"tx-error":     "raise the MTU of the interface, or lower that of the senders",
}

// portDrop is a reason for which a port dropped packets.
type portDrop struct {
	port   uint32
	reason string // as in PortStats.Lost
}

// sayDrops logs the first drops of a port for each reason. said holds the ports and reasons logged so far.
func (s *Realtime) sayDrops(p *PortStats, said map[portDrop]bool) {
	for why, n := range p.Lost() {
		remedy := remedies[why]
		if n == 0 || remedy == "" {
			continue
		}
		drops := portDrop{p.Port, why}
		if said[drops] {
			continue
		}
		said[drops] = true
		s.log.Warn("packets are dropped; said once a port and reason", "switch", s.name, "port", p.Port, "interface", p.Name, "reason", why, "packets", n, "remedy", remedy)
	}
}

// loop is the goroutine that runs the switch. It processes frames, posted functions and
// departures.
func (s *Realtime) loop(ctx context.Context) error {
	r := s.r
	wake, err := newAlarm()
	if err != nil {
		return err
	}
	defer wake.close()
	sweep := time.NewTicker(sweepPeriod.Duration())
	defer sweep.Stop()
	for {
		s.runReady()
		next := s.agent.Next()
		s.mu.Lock()
		err := s.send(false)
		at, ok := s.dataplane.next()
		if next < units.MaxTime && (!ok || next < at) {
			at, ok = next, true
		}
		if ok = ok && at != r.armed; ok {
			r.armed = at
		}
		s.mu.Unlock()
		if err != nil {
			return err
		}
		if ok {
			wake.set((at - r.time()).Duration() + 1)
		}
		select {
		case a := <-r.work:
			s.process(a)
		case <-r.wake:
		case <-wake.C:
			s.mu.Lock()
			r.armed = units.MaxTime
			s.mu.Unlock()
		case <-sweep.C:
			s.server.Sweep(r.time())
			s.agent.Sweep(r.time())
			if err := s.flush(); err != nil {
				return err
			}
		case err := <-r.failure:
			return err
		case <-ctx.Done():
			return s.flush()
		}
	}
}

// batchesPerFlush bounds the batches that are processed between two flushes of the drivers and
// checks of the timers.
const batchesPerFlush = 4

// runReady processes the queued batches and the posted functions, without waiting.
func (s *Realtime) runReady() {
	s.r.runPosted()
	for n := 0; n < batchesPerFlush && len(s.r.work) > 0; n++ {
		s.process(<-s.r.work)
	}
	if now := s.r.time(); s.agent.Next() <= now {
		s.agent.Run(now)
	}
	s.mu.Lock()
	s.dataplane.run(s.r.time())
	s.mu.Unlock()
}

// process runs a batch of frames through the switch, after the functions that were posted before
// it.
func (s *Realtime) process(a *rxBatch) {
	s.r.runPosted()
	s.mu.Lock()
	s.receiveBatch(a)
	s.mu.Unlock()
	s.r.queued.Add(-1)
	s.r.done(a)
}

// flush makes the drivers send all the frames that they hold.
func (s *Realtime) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.send(true)
}

// send flushes the drivers and adds the time to the stage times if they are measured. The caller
// holds the lock.
func (s *Realtime) send(all bool) error {
	r := s.r
	if r.times == nil {
		return r.flush(all)
	}
	begin := r.times.Now()
	err := r.flush(all)
	if sent := s.dataplane.sent; sent != r.sent {
		r.times.Add(stages.Flush, int(sent-r.sent), begin)
		r.sent = sent
	}
	return err
}

// flush makes the drivers send the frames that they hold. Unless all is set, a driver that writes
// in large pieces may hold its frames a little longer. The caller holds the switch's lock.
func (r *realtimeDriver) flush(all bool) error {
	for _, d := range r.drivers {
		send := d.Flush
		if soon, ok := d.(interface{ FlushSoon() error }); ok && !all {
			send = soon.FlushSoon
		}
		if err := send(); err != nil {
			return err
		}
	}
	if r.capture != nil {
		return r.capture.Flush()
	}
	return nil
}
