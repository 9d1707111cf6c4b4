package device

import (
	"context"
	"fmt"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/session"
	"github.com/headgate/headgate/controller/trafficmanager"
)

// runningLoop is a feature's loop and the time of its next tick.
type runningLoop struct {
	feature.Loop
	name  string
	every time.Duration
	next  time.Time
}

// loops runs the features' loops until the context ends. It alone owns them.
func (d *Device) loops(ctx context.Context) {
	var running []*runningLoop
	var current *attachment
	silent := false
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.reattach:
			d.mu.Lock()
			a := d.attached
			d.mu.Unlock()
			if a != current {
				current, running = a, d.attachAll(a)
				d.poller.Reset()
			}
		case m := <-d.messages:
			d.deliver(m, running)
		case <-timer.C:
		}
		wait := d.tick(ctx, running)
		if now := d.poller.Silent(time.Now(), d.silence); now != silent {
			silent = now
			d.setSilent(silent)
		}
		timer.Reset(wait)
	}
}

func (d *Device) attachAll(a *attachment) []*runningLoop {
	if a == nil {
		return nil
	}
	var list []*runningLoop
	now := time.Now()
	for _, f := range d.opts.Features {
		own := ownSwitch{d, a}
		sw := feature.Switch(own)
		if d.opts.TrafficManager != nil {
			sw = managedSwitch{own}
		}
		if l := f.Attach(a.env, sw); l != nil {
			list = append(list, &runningLoop{Loop: l, name: f.Name(), every: l.Interval(), next: now})
		}
	}
	return list
}

// tick calls the loops that are due and returns the time until the next one is. A loop that
// missed ticks gets one tick for all of them.
func (d *Device) tick(ctx context.Context, running []*runningLoop) time.Duration {
	const idle = time.Hour
	wait := idle
	now := time.Now()
	for _, l := range running {
		if l.every <= 0 {
			continue
		}
		if !l.next.After(now) {
			if err := l.Tick(ctx, now); err != nil {
				d.log.Debug("feature loop", "feature", l.name, "err", err)
				d.count(func(s *Stats) { s.LoopErrors++ })
			}
			if l.next = l.next.Add(l.every); !l.next.After(now) {
				l.next = now.Add(l.every)
			}
		}
		wait = min(wait, l.next.Sub(now))
	}
	return wait
}

// deliver passes a message to all loops.
func (d *Device) deliver(m *message, running []*runningLoop) {
	msg := feature.Message{Digest: m.GetDigest(), Idle: m.GetIdleTimeoutNotification()}
	if p := m.GetPacket(); p != nil {
		in, err := d.opts.Pipeline.PacketIn(p)
		if err != nil {
			d.log.Debug("packet-in", "err", err)
			return
		}
		report, ok := d.poller.Report(&in)
		switch {
		case !ok:
			msg.Packet = &in
		case report == nil:
			return
		default:
			msg.Report = report
		}
	}
	for _, l := range running {
		l.Receive(m.at, msg)
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
