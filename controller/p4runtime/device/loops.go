package device

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/session"
	"github.com/headgate/headgate/controller/trafficmanager"
)

// runner runs one feature's loop in its own goroutine, so that no loop waits for the tick of another.
type runner struct {
	feature.Loop
	name  string
	d     *Device
	inbox *inbox
}

// turn is for how long a loop receives messages before a tick that is due.
const turn = 5 * time.Millisecond

// run calls the loop's methods until the context ends. A loop that missed ticks gets one tick for all of them.
// The next tick then follows after a pause of at least as long as that tick took, so that at most half of the time
// goes into ticks and messages are received in between. Apart from the first, ticks come at session.Beat.
func (r *runner) run(ctx context.Context) {
	const never = time.Hour
	every := r.Interval()
	next := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		more := r.receive(ctx)
		wait := never
		if every > 0 {
			began := time.Now()
			if !next.After(began) {
				switch err := r.Tick(ctx, began); {
				case errors.Is(err, feature.ErrDone):
					every = 0
					continue
				case err != nil:
					r.d.log.Debug("feature loop", "feature", r.name, "err", err)
				}
				ended := time.Now()
				next = session.Beat(ended.Add(ended.Sub(began)), every)
			}
			wait = time.Until(next)
		}
		if more {
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-r.inbox.wake:
		case <-timer.C:
		}
	}
}

// receive passes the messages that wait to the loop, for one turn. It returns whether some are left.
func (r *runner) receive(ctx context.Context) bool {
	for end := time.Now().Add(turn); ctx.Err() == nil; {
		m := r.inbox.take()
		if m == nil {
			return false
		}
		if r.Receive(m.at, m.Message); time.Now().After(end) {
			return true
		}
	}
	return false
}

// loops runs the features' loops until the context ends. Only the loops of one attachment run at a time.
func (d *Device) loops(ctx context.Context) {
	var current *attachment
	stop := func() {}
	defer func() { stop() }()
	silent := false
	for every := max(d.silence/2, time.Millisecond); ; {
		select {
		case <-ctx.Done():
			return
		case <-d.reattach:
			d.mu.Lock()
			a := d.attached
			d.mu.Unlock()
			if a != current {
				stop()
				current, stop = a, d.startLoops(ctx, a)
			}
		case <-time.After(time.Until(session.Beat(time.Now(), every))):
		}
		if now := d.poller.Silent(time.Now(), d.silence); now != silent {
			silent = now
			d.setSilent(silent)
		}
	}
}

// startLoops starts the loops of an attachment, none for nil. The function that it returns ends them and waits
// until they have ended.
func (d *Device) startLoops(ctx context.Context, a *attachment) (stop func()) {
	d.poller.Reset()
	if a == nil {
		return func() {}
	}
	var list []*runner
	for _, f := range d.opts.Features {
		own := ownSwitch{d, a}
		sw := feature.Switch(own)
		if d.opts.TrafficManager != nil {
			sw = managedSwitch{own}
		}
		if f.Attach == nil {
			continue
		}
		if l := f.Attach(a.env, sw); l != nil {
			list = append(list, &runner{l, f.Name, d, newInbox()})
		}
	}
	d.running.Store(&list)
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, r := range list {
		wg.Go(func() { r.run(ctx) })
	}
	return func() {
		d.running.Store(nil)
		cancel()
		wg.Wait()
	}
}

// ownSwitch is the feature.Switch of the loops of an attachment.
type ownSwitch struct {
	d *Device
	a *attachment
}

// Name implements feature.Switch.
func (s ownSwitch) Name() string { return s.d.opts.Switch.Name }

// PacketOut implements feature.Switch.
func (s ownSwitch) PacketOut(p *p4v1.PacketOut) error { return s.d.packetOut(p) }

// Poll implements feature.Switch.
func (s ownSwitch) Poll(now time.Time, quiet time.Duration, ports ...uint32) error {
	return s.d.poller.Poll(now, quiet, ports...)
}

// Read implements feature.Switch.
func (s ownSwitch) Read(ctx context.Context, requests ...*p4v1.Entity) ([]*p4v1.Entity, error) {
	c, err := s.d.session.Client()
	if err != nil {
		return nil, err
	}
	return c.Read(ctx, requests...)
}

// Write implements feature.Switch.
func (s ownSwitch) Write(ctx context.Context, updates []*p4v1.Update) error {
	for _, u := range updates {
		if id := u.GetEntity().GetTableEntry().GetTableId(); id == 0 || !s.d.opts.Pipeline.Learned(id) {
			return fmt.Errorf("a loop may only write entries of learned tables: %s", s.d.opts.Pipeline.Describe(u.GetEntity()))
		}
	}
	c, err := s.d.session.Client()
	if err != nil {
		return err
	}
	return c.Write(ctx, updates)
}

// managedSwitch is an ownSwitch that also implements feature.TrafficManager.
type managedSwitch struct{ ownSwitch }

// Pauses implements feature.TrafficManager.
func (s managedSwitch) Pauses(ctx context.Context, ports []uint32) (map[uint32]trafficmanager.PauseCounters, error) {
	return s.d.opts.TrafficManager.Pauses(ctx, ports)
}

// Victims implements feature.TrafficManager.
func (s managedSwitch) Victims(ports []uint32) error { return s.d.setVictims(s.a, ports) }

var (
	_ session.Handler        = handler{}
	_ feature.Switch         = ownSwitch{}
	_ feature.TrafficManager = managedSwitch{}
)
