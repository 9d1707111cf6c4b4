package softswitch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/headgate/headgate/softswitch/port"
)

// Opener opens the network interface of a port.
type Opener func(p port.Named) (port.Port, port.Source, error)

// vanishing is a driver that knows when its interface is gone for good: deleted, or moved to another
// network namespace. An interface of the same name is then another one.
type vanishing interface{ Gone() bool }

// silencing is a driver that can be told to receive nothing more while its Source still runs.
type silencing interface{ Silence() error }

// attachments are the interfaces that ports get while the switch runs. The goroutine that watches the ports
// owns it.
type attachments struct {
	open    Opener // nil: ports keep what they have at the start
	asks    chan func(ctx context.Context, group *errgroup.Group)
	running map[uint32]attached
	retired []port.Port       // whose Source reads other ports, too: closed at the end
	refused map[uint32]string // why the interface of a port could not be opened again, as the log says
}

// attached is a driver with a Source of its own.
type attached struct {
	stop func()
	done chan struct{}
}

// SetOpener lets ports get interfaces while the switch runs, also by gNMI. A port whose interface vanished gets the
// next one of that name.
func (s *Realtime) SetOpener(open Opener) {
	s.r.attachments = attachments{
		open: open, asks: make(chan func(context.Context, *errgroup.Group)), running: map[uint32]attached{}, refused: map[uint32]string{},
	}
	s.shown = realtimePorts{openConfig{s.Switch}, s}
}

// Attach gives a port an interface, a new port if there is none of that number; its rate is unlimited.
// It fails for a port that has an interface.
func (s *Realtime) Attach(ctx context.Context, p port.Named) error {
	return s.ask(ctx, func(ctx context.Context, group *errgroup.Group) error {
		if p.Number > maxPort || p.Number == s.cpu || p.Name == "" {
			return fmt.Errorf("port %d@%s: want a number from 0 to %d that is not the CPU port's, and an interface", p.Number, p.Name, maxPort)
		}
		for _, q := range s.PortStats() {
			switch {
			case q.Name == p.Name && q.Port != p.Number:
				return fmt.Errorf("interface %s is port %d", q.Name, q.Port)
			case q.Port == p.Number && q.Name != "":
				return fmt.Errorf("port %d is interface %s: remove it first", q.Port, q.Name)
			}
		}
		return s.attach(ctx, group, p)
	})
}

// Detach takes the interface from a port. The port stays, without a carrier.
func (s *Realtime) Detach(ctx context.Context, n uint32) error {
	return s.ask(ctx, func(context.Context, *errgroup.Group) error {
		if n > maxPort || s.dataplane.ports[n] == nil || n == s.cpu || s.dataplane.ports[n].out == nil {
			return fmt.Errorf("port %d has no interface", n)
		}
		name := s.dataplane.ports[n].info.Name
		err := s.retire(n, s.exchange(port.Named{Number: n}, nil))
		s.log.Info("port removed", "switch", s.name, "port", n, "interface", name)
		s.portState(n, false)
		return err
	})
}

// ask runs fn on the goroutine that watches the ports.
func (s *Realtime) ask(ctx context.Context, fn func(context.Context, *errgroup.Group) error) error {
	if s.r.attachments.open == nil {
		return errors.New("the ports of this switch are no network interfaces: they cannot change")
	}
	result := make(chan error, 1)
	select {
	case s.r.attachments.asks <- func(ctx context.Context, group *errgroup.Group) { result <- fn(ctx, group) }:
		return <-result
	case <-ctx.Done():
		return ctx.Err()
	}
}

// attach opens an interface, and reads it with a Source of its own until it is retired or ctx ends.
func (s *Realtime) attach(ctx context.Context, group *errgroup.Group, p port.Named) error {
	a := &s.r.attachments
	if st := s.dataplane.ports[p.Number]; st != nil {
		if d, ok := st.out.(driven); ok {
			if q, ok := d.port.(silencing); ok { // an XDP program stays with an interface that changes namespaces
				_ = q.Silence()
			}
		}
	}
	driver, source, err := a.open(p)
	if err != nil {
		return err
	}
	if s.dataplane.ports[p.Number] == nil {
		if err := s.addPort(p.Number, p.Name, 0, nil); err != nil {
			return errors.Join(err, driver.Close())
		}
	}
	err = s.retire(p.Number, s.exchange(p, driver))
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	a.running[p.Number] = attached{stop: cancel, done: done}
	group.Go(func() error {
		defer close(done)
		return source.Run(ctx, func(b *port.Batch) { s.deliver(ctx, b, false) })
	})
	s.log.Info("port added", "switch", s.name, "port", p.Number, "interface", p.Name)
	return err
}

// exchange makes a port use another driver, nil for none, and returns the one that it had.
func (s *Realtime) exchange(p port.Named, driver port.Port) (old port.Port) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.dataplane.ports[p.Number]
	if d, ok := st.out.(driven); ok {
		old = d.port
		s.r.drivers = slices.DeleteFunc(s.r.drivers, func(d port.Port) bool { return d == old })
	}
	st.out, st.up, st.info.Name = nil, driver != nil, p.Name
	if driver != nil {
		st.out = driven{driver}
		s.r.drivers = append(s.r.drivers, driver)
	}
	return old
}

// retire closes the driver that a port had. One that shares its Source with others is silenced, and closed
// at the end.
func (s *Realtime) retire(n uint32, old port.Port) error {
	if old == nil {
		return nil
	}
	a := &s.r.attachments
	if r, ok := a.running[n]; ok {
		delete(a.running, n)
		r.stop()
		<-r.done
		return old.Close()
	}
	a.retired = append(a.retired, old)
	if q, ok := old.(silencing); ok {
		return q.Silence()
	}
	return nil
}

// reopen gives a port whose interface is gone the next one of that name, when there is one.
func (s *Realtime) reopen(ctx context.Context, group *errgroup.Group, p PortStats) {
	a := &s.r.attachments
	if a.open == nil || p.Port == s.cpu {
		return
	}
	d, _ := s.dataplane.ports[p.Port].out.(driven)
	if v, ok := d.port.(vanishing); !ok || !v.Gone() || !port.Exists(p.Name) {
		return
	}
	err := s.attach(ctx, group, port.Named{Number: p.Port, Name: p.Name})
	why := ""
	if err != nil {
		why = err.Error()
	}
	if why != "" && why != a.refused[p.Port] {
		s.log.Error("the port's interface is back but could not be opened", "switch", s.name, "port", p.Port, "interface", p.Name, "err", err)
	}
	a.refused[p.Port] = why
}
