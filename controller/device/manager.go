package device

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/headgate/headgate/controller/session"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/controller/view"
)

// Manager drives the traffic manager of a switch, of which P4Runtime knows nothing. It is
// safe for concurrent use.
type Manager interface {
	// Plan says what Apply would write.
	Plan(ctx context.Context, want *trafficmanager.Settings) ([]view.Change, error)
	// Apply makes the traffic manager hold want and returns how many rows it wrote.
	Apply(ctx context.Context, want *trafficmanager.Settings) (int, error)
	// Change is Apply where from is known to be held; it may be quicker.
	Change(ctx context.Context, from, want *trafficmanager.Settings) (int, error)
	// Pauses reads what the MACs of some ports have counted.
	Pauses(ctx context.Context, ports []uint32) (map[uint32]trafficmanager.PauseCounters, error)
	Close() error
}

var _ Manager = (*trafficmanager.Driver)(nil)

// manager makes the driver when it is first used. mu guards the rest.
type manager struct {
	make func() (Manager, error)

	mu     sync.Mutex
	driver Manager // nil until then
	closed bool
}

func newManager(make func() (Manager, error)) *manager { return &manager{make: make} }

var errManagerClosed = errors.New("closed")

func (m *manager) get() (Manager, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, errManagerClosed
	}
	if m.driver == nil {
		d, err := m.make()
		if err != nil {
			return nil, err
		}
		m.driver = d
	}
	return m.driver, nil
}

func (m *manager) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if m.driver != nil {
		_ = m.driver.Close()
	}
}

// managerTime is the default of Options.ManagerTime.
const managerTime = 5 * time.Second

// manage brings the traffic manager in line, tells so, and returns how many rows were
// written.
func (d *Device) manage(ctx context.Context, j job, known *held, periodic bool) (int, error) {
	periodic = periodic && known.managed == j.manager // or the loops may have changed their minds
	rows, err := d.applyManager(ctx, j, known)
	switch {
	case rows > 0 && periodic && d.Status().State == view.Ready:
		d.event(view.Warning, "traffic_manager.drift", fmt.Sprintf("%d rows of the traffic manager were not what they should be", rows))
	case rows > 0:
		d.event(view.Info, "traffic_manager.applied", fmt.Sprintf("%d rows of the traffic manager were written", rows))
	}
	return rows, err
}

// applyManager brings the traffic manager in line. Its errors have no status: those of the
// session's connection do.
func (d *Device) applyManager(ctx context.Context, j job, known *held) (int, error) {
	want := j.manager
	if d.manager == nil || want == nil || known.manager == want {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.opts.ManagerTime)
	defer cancel()
	rows := 0
	m, err := d.manager.get()
	switch {
	case err != nil:
	case known.manager == nil:
		rows, err = m.Apply(ctx, want)
	default:
		rows, err = m.Change(ctx, known.manager, want)
	}
	d.count(func(s *Stats) {
		s.ManagerApplies++
		s.ManagerRows += uint64(rows)
		if err != nil {
			s.ManagerErrors++
		}
	})
	if err != nil {
		known.manager, known.managed = nil, nil
		return rows, errors.New(managerText(err))
	}
	known.manager, known.managed = want, want
	return rows, nil
}

func managerText(err error) string { return "traffic manager: " + reason(err) }

// PlanManager adds to a plan what would be written to a traffic manager, over any driver,
// which may be nil when err says why.
func PlanManager(ctx context.Context, plan *view.Plan, m Manager, err error, want *trafficmanager.Settings) {
	var changes []view.Change
	if err == nil {
		changes, err = m.Plan(ctx, want)
	}
	for _, c := range changes {
		c.Text = "traffic manager: " + c.Text
		plan.Changes = append(plan.Changes, c)
	}
	if err != nil {
		if plan.Unreachable != "" {
			plan.Unreachable += "; "
		}
		plan.Unreachable += managerText(err)
	}
}

// noDevice says that a switch lacks a program which the controller has only half of.
func noDevice(running session.Running) error {
	what := "runs no pipeline"
	if running == session.Other {
		what = "runs another pipeline"
	}
	return fmt.Errorf("the switch %s, and its device_config is not set: want the file that p4c compiled for its chip, or a switch that runs the program already", what)
}
