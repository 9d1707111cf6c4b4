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

// vanishing is implemented by drivers that can report that their interface is gone for good:
// deleted, or moved to another network namespace. A new interface of the same name does not count
// as the old one.
type vanishing interface{ Gone() bool }

// silencing is implemented by drivers that can stop receiving while their Source still runs.
type silencing interface{ Silence() error }

// attachments holds the interfaces that ports got while the switch was running. The goroutine that
// watches the ports owns it.
type attachments struct {
	open    Opener // nil: ports keep the interfaces they started with
	asks    chan func(ctx context.Context, group *errgroup.Group)
	running map[uint32]attached
	retired []port.Port       // closed when Run ends, because their Sources also read other ports
	refused map[uint32]string // per port, the logged error of the last failed attempt to open its interface
}

type attached struct {
	stop func()
	done chan struct{}
}

// SetOpener lets ports get interfaces while the switch runs, also by gNMI. A port whose interface
// vanished gets the next interface of the same name.
func (s *Realtime) SetOpener(open Opener) {
	s.r.attachments = attachments{
		open: open, asks: make(chan func(context.Context, *errgroup.Group)), running: map[uint32]attached{}, refused: map[uint32]string{},
	}
	s.shown = realtimePorts{openConfig{s.Switch}, s}
}

// Attach gives port p an interface. It adds the port, with an unlimited rate, if there is none of
// that number. It fails if the port has an interface already.
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

// Detach takes the interface from port n. The port stays, without a carrier.
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

// ask runs fn on the goroutine that watches the ports and waits for its result.
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

// attach opens an interface. A Source of its own reads it until the port is retired or ctx ends.
func (s *Realtime) attach(ctx context.Context, group *errgroup.Group, p port.Named) error {
	a := &s.r.attachments
	if q, ok := s.dataplane.ports[p.Number].driver().(silencing); ok { // otherwise the XDP program would stay on an interface that moves to another namespace
		_ = q.Silence()
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

// exchange gives a port another driver and returns the old one. A nil driver leaves the port
// without an interface.
func (s *Realtime) exchange(p port.Named, driver port.Port) (old port.Port) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.dataplane.ports[p.Number]
	old = st.driver()
	s.r.drivers = slices.DeleteFunc(s.r.drivers, func(d port.Port) bool { return d == old })
	st.out, st.up, st.info.Name = nil, driver != nil, p.Name
	if driver != nil {
		st.out = driven{driver}
		s.r.drivers = append(s.r.drivers, driver)
	}
	return old
}

// retire closes a port's old driver. If the driver shares its Source with other ports, retire only
// silences it; it is closed when Run ends.
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

// reopen gives a port whose interface vanished the next interface of the same name, once there is
// one.
func (s *Realtime) reopen(ctx context.Context, group *errgroup.Group, p PortStats) {
	a := &s.r.attachments
	if a.open == nil || p.Port == s.cpu {
		return
	}
	if v, ok := s.dataplane.ports[p.Port].driver().(vanishing); !ok || !v.Gone() || !port.Exists(p.Name) {
		return
	}
	err := s.attach(ctx, group, port.Named{Number: p.Port, Name: p.Name})
	why := ""
	if err != nil {
		why = err.Error()
	}
	if err != nil && why != a.refused[p.Port] {
		s.log.Error("the port's interface is back but could not be opened", "switch", s.name, "port", p.Port, "interface", p.Name, "err", err)
	}
	a.refused[p.Port] = why
}

// driverSelect holds the driver that each port has chosen. The goroutine that watches the ports
// owns it.
type driverSelect struct {
	users *port.IfaceUsers // nil: no port chooses its driver
	last  map[int]chosen
}

type chosen struct{ driver, why string }

// SetUsers lets the ports choose their drivers again when another program begins or stops using
// their interfaces, at most watchPeriod later. Run closes u.
func (s *Realtime) SetUsers(u *port.IfaceUsers) {
	s.r.driverSelect = driverSelect{users: u, last: map[int]chosen{}}
}

// choose lets each port choose its driver, and logs each change and its reason. event says that
// the interfaces may have changed.
func (s *Realtime) choose(event bool) {
	c := &s.r.driverSelect
	if c.users == nil {
		return
	}
	if err := c.users.Look(event); err != nil {
		s.log.Error("ports keep their drivers", "switch", s.name, "err", err)
		return
	}
	for n, p := range s.dataplane.ports {
		chooser, ok := p.driver().(port.Chooser)
		if !ok {
			continue
		}
		var now chosen
		if now.driver, now.why = chooser.Choose(c.users); now != c.last[n] {
			c.last[n] = now
			s.log.Info("port driver", "switch", s.name, "port", n, "interface", p.info.Name, "driver", now.driver, "why", now.why)
		}
	}
}
