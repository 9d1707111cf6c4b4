package softswitch

import (
	"fmt"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/units"
)

// sweepPeriod is the interval at which the P4Runtime server checks idle timeouts and digests.
const sweepPeriod = 100 * units.Millisecond

// virtualDriver runs a switch on a clock.Loop. The loop's goroutine owns it.
type virtualDriver struct {
	loop  *clock.Loop
	sw    *Switch
	timer *clock.Timer // timer of the data plane
	sweep *clock.Timer
	agent *clock.Timer // timer of PACC's agent
}

func (r *virtualDriver) post(fn func()) {
	r.loop.Post(func() {
		fn()
		r.due()
	})
}

func (r *virtualDriver) time() units.Time { return r.loop.Time() }

// due processes the events that are due and sets the timer for the next one.
func (r *virtualDriver) due() {
	r.sw.mu.Lock()
	r.sw.dataplane.run(r.loop.Now())
	at, ok := r.sw.dataplane.next()
	r.sw.mu.Unlock()
	r.arm(at, ok)
}

func (r *virtualDriver) arm(at units.Time, ok bool) {
	if !ok {
		r.timer.Stop()
		return
	}
	if set, pending := r.timer.Pending(); !pending || set != at {
		r.timer.Reset(at)
	}
}

func (r *virtualDriver) sweepNow() {
	r.sw.server.Sweep(r.loop.Now())
	r.sw.agent.Sweep(r.loop.Now())
	r.armAgent()
	r.sweep.Reset(r.loop.Now() + sweepPeriod)
}

func (r *virtualDriver) runAgent() {
	r.sw.agent.Run(r.loop.Now())
	r.armAgent()
	r.due()
}

func (r *virtualDriver) armAgent() {
	if at := r.sw.agent.Next(); at < units.MaxTime {
		r.agent.Reset(at)
	} else {
		r.agent.Stop()
	}
}

// NewOnLoop makes a switch that runs on a loop. Call it before the loop runs, or on the
// loop's goroutine.
func NewOnLoop(loop *clock.Loop, c Config) (*Switch, error) {
	r := &virtualDriver{loop: loop}
	s, err := newSwitch(c, r)
	if err != nil {
		return nil, fmt.Errorf("switch %s: %w", c.Name, err)
	}
	r.sw = s
	r.timer = loop.NewTimer(r.due)
	r.sweep = loop.NewTimer(r.sweepNow)
	r.agent = loop.NewTimer(r.runAgent)
	r.sweep.Reset(loop.Now() + sweepPeriod)
	return s, nil
}

// AddPort adds an in-process port; Connect joins it to another endpoint. A rate of 0 is unlimited.
// The switch must run on a loop. Call AddPort before the loop runs or on its goroutine.
func (s *Switch) AddPort(n uint32, rate units.Rate) (*Port, error) {
	r, ok := s.driver.(*virtualDriver)
	if !ok {
		return nil, fmt.Errorf("switch %s: port %d: in-process ports need a switch on a loop", s.name, n)
	}
	if err := s.addPort(n, "", rate, nil); err != nil {
		return nil, fmt.Errorf("switch %s: %w", s.name, err)
	}
	return &Port{number: n, driver: r, state: s.dataplane.ports[n]}, nil
}

// Port is an in-process port, one end of a Link.
type Port struct {
	number uint32
	driver *virtualDriver
	state  *portState
}

// Number returns the port's number.
func (p *Port) Number() uint32 { return p.number }

// Attach implements Endpoint.
func (p *Port) Attach(out Sender) {
	p.driver.sw.mu.Lock()
	p.state.out = out
	p.driver.sw.mu.Unlock()
}

// SetUp implements Endpoint.
func (p *Port) SetUp(up bool) {
	s := p.driver.sw
	s.mu.Lock()
	p.state.up = up
	s.mu.Unlock()
	s.portState(p.number, up)
}

// Receive implements Endpoint.
func (p *Port) Receive(frame []byte, now units.Time) {
	s := p.driver.sw
	s.mu.Lock()
	s.dataplane.receive(p.number, frame, now)
	at, ok := s.dataplane.next()
	s.mu.Unlock()
	p.driver.arm(at, ok)
}
