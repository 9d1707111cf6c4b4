package device

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/reconcile"
	"github.com/headgate/headgate/controller/trafficmanager"
)

// errDropped is what a loop that outlived its attachment gets for an overlay.
var errDropped = errors.New("the loop was dropped")

// overlays are what the loops of one attachment want beside their features' Desired and
// Shape. The states in it are never changed, only replaced.
type overlays struct {
	features []string // in the order of their first overlay
	states   map[string]*reconcile.State
	merged   *reconcile.State // of all; nil when there is nothing
	victims  []uint32
	managed  struct{ base, over *trafficmanager.Settings } // over is base with the victims
}

// set replaces the overlay of a feature and reports whether anything may have changed.
func (o *overlays) set(name string, entities []*p4v1.Entity) (bool, error) {
	state := &reconcile.State{}
	for _, e := range entities {
		if err := state.Add(e); err != nil {
			return false, err
		}
	}
	old, known := o.states[name]
	if state.Len() == 0 && (!known || old.Len() == 0) {
		return false, nil
	}
	if !known {
		o.features = append(o.features, name)
	}
	states := map[string]*reconcile.State{name: state}
	merged := &reconcile.State{}
	for _, f := range o.features {
		if states[f] == nil {
			states[f] = o.states[f]
		}
		for _, e := range states[f].Entities() {
			if err := merged.Add(e); err != nil {
				return false, fmt.Errorf("two loops want one entity: %w", err)
			}
		}
	}
	o.states, o.merged = states, merged
	return true, nil
}

// overlay takes what a loop wants and wakes the reconciler.
func (d *Device) overlay(a *attachment, name string, entities []*p4v1.Entity) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a == nil || d.attached != a {
		return errDropped
	}
	changed, err := a.overlays.set(name, entities)
	if changed {
		signal(d.kick)
	}
	return err
}

// over returns the overlay that holds for a want: that of the running loops, if they are
// this want's too; nil for none. The caller holds mu.
func (d *Device) over(w Want) *reconcile.State {
	if a := d.attached; a != nil && w.Env != nil && a.epoch == d.epoch && sameConfig(a.env, w.Env) {
		return a.overlays.merged
	}
	return nil
}

// overManager returns what the traffic manager should hold for a want: what the running
// loops say over it, if they are this want's too. The caller holds mu.
func (d *Device) overManager(w Want) *trafficmanager.Settings {
	a := d.attached
	if a == nil || w.Env == nil || w.Manager == nil || a.epoch != d.epoch || !sameConfig(a.env, w.Env) || len(a.overlays.victims) == 0 {
		return w.Manager
	}
	m := &a.overlays.managed
	if m.base != w.Manager {
		over, err := w.Manager.WithVictims(a.overlays.victims)
		if err != nil {
			return w.Manager // victims took them for the same configuration
		}
		m.base, m.over = w.Manager, over
	}
	return m.over
}

// planManager returns what to compare the traffic manager with in a plan for any want: the
// loops' own is no difference as far as the want has room for it. The caller holds mu.
func (d *Device) planManager(w Want) *trafficmanager.Settings {
	if a := d.attached; a != nil && a.epoch == d.epoch && w.Manager != nil {
		if over, err := w.Manager.WithVictims(a.overlays.victims); err == nil {
			return over
		}
	}
	return w.Manager
}

// victims takes the ports that a loop wants to have the whole shared pool, and wakes the
// reconciler.
func (d *Device) victims(a *attachment, ports []uint32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	base := d.want.Manager
	if a == nil || d.attached != a || base == nil {
		return errDropped
	}
	over, err := base.WithVictims(ports)
	if err != nil {
		return err
	}
	a.overlays.victims = slices.Clone(ports)
	a.overlays.managed.base, a.overlays.managed.over = base, over
	signal(d.kick)
	return nil
}

// sameConfig reports whether two environments are of one configuration: a file that is
// applied again as it is changes nothing for the loops.
func sameConfig(a, b *feature.Env) bool {
	same := func(x, y *config.Config) bool { return x == y || x.File == y.File && bytes.Equal(x.Source, y.Source) }
	return same(a.Config, b.Config)
}

// restack replaces one overlay by another on a switch whose state is known otherwise, and on
// its traffic manager unless that is waiting to be tried again.
func (d *Device) restack(ctx context.Context, j job, known *held) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	plan := reconcile.Restack(known.state, known.over, j.over)
	if plan.Len() > 0 {
		c, err := d.session.Client()
		if err == nil {
			err = d.write(ctx, c, plan)
		}
		if err != nil {
			return err
		}
	}
	known.over = j.over
	if known.manager != nil {
		if _, err := d.applyManager(ctx, j, known); err != nil {
			return err
		}
	}
	d.count(func(s *Stats) { s.Overlays++ })
	return nil
}
