package device

import (
	"context"
	"errors"
	"fmt"
	"slices"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/trafficmanager"
)

// reconcileTrafficManager reconciles the traffic manager, publishes an event, and returns how
// many rows it wrote.
func (d *Device) reconcileTrafficManager(ctx context.Context, j job, known *knownState, periodic bool) (int, error) {
	periodic = periodic && known.lastWritten.Equal(j.trafficManager) // or a loop may have changed the victims
	rows, err := d.applyTrafficManager(ctx, j, known)
	switch {
	case rows > 0 && periodic && d.Status().State == pb.SwitchStatus_STATE_READY:
		d.event(pb.Event_SEVERITY_WARNING, "traffic_manager.drift", fmt.Sprintf("%d rows of the traffic manager were not what they should be", rows))
	case rows > 0:
		d.event(pb.Event_SEVERITY_INFO, "traffic_manager.applied", fmt.Sprintf("%d rows of the traffic manager were written", rows))
	}
	return rows, err
}

// applyTrafficManager reconciles the traffic manager. Its errors carry no gRPC status, since
// transient takes one for an error of the session's connection.
func (d *Device) applyTrafficManager(ctx context.Context, j job, known *knownState) (int, error) {
	want := j.trafficManager
	if d.opts.TrafficManager == nil || want == nil || known.trafficManager.Equal(want) {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.opts.TrafficManagerTime)
	defer cancel()
	rows, err := d.opts.TrafficManager.Apply(ctx, known.trafficManager, want)
	if err != nil {
		known.trafficManager, known.lastWritten = nil, nil
		return rows, errors.New(trafficManagerText(err))
	}
	known.trafficManager, known.lastWritten = want, want
	return rows, nil
}

// trafficManagerOf returns the desired state of the traffic manager for a desired state. It includes the
// victims of the running loops if these run with its configuration. The caller holds mu.
func (d *Device) trafficManagerOf(w Desired) *trafficmanager.Config {
	if w.Env == nil || d.attached == nil || !sameConfig(d.attached.env, w.Env) {
		return w.TrafficManager
	}
	return d.planTrafficManager(w)
}

// planTrafficManager returns the state that a plan compares the traffic manager with. It
// includes the loops' victims, if they are its ports, so that they are no difference. The
// caller holds mu.
func (d *Device) planTrafficManager(w Desired) *trafficmanager.Config {
	if a := d.attached; a != nil && a.epoch == d.epoch && w.TrafficManager != nil {
		if over, err := w.TrafficManager.WithVictims(a.victims); err == nil {
			return over
		}
	}
	return w.TrafficManager
}

// errDropped is the error of Victims for a loop whose attachment has ended.
var errDropped = errors.New("the loop was dropped")

// setVictims records the ports that a loop wants to have the whole shared pool, and wakes the
// reconciler.
func (d *Device) setVictims(a *attachment, ports []uint32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	base := d.desired.TrafficManager
	if a == nil || d.attached != a || base == nil {
		return errDropped
	}
	if _, err := base.WithVictims(ports); err != nil {
		return err
	}
	a.victims = slices.Clone(ports)
	signal(d.kick)
	return nil
}

func trafficManagerText(err error) string { return "traffic manager: " + reason(err) }

// PlanTrafficManager adds a traffic manager's writes to a plan.
func PlanTrafficManager(ctx context.Context, plan *pb.SwitchPlan, m trafficmanager.Driver, want *trafficmanager.Config) {
	changes, err := m.Plan(ctx, want)
	for _, c := range changes {
		c.Table = "traffic manager " + c.Table
		plan.Changes = append(plan.Changes, c)
	}
	if err != nil {
		if plan.Unreachable != "" {
			plan.Unreachable += "; "
		}
		plan.Unreachable += trafficManagerText(err)
	}
}
