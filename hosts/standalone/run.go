package standalone

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/headgate/headgate/api/client"
	headgatev1 "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/agent/remote"
	"github.com/headgate/headgate/hosts/nic"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/internal/jsonfile"
	"github.com/headgate/headgate/internal/service"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// driver is an agent that runs, reached from other goroutines; *nic.NIC is one.
type driver interface {
	Do(ctx context.Context, fn func(a *agent.Agent, now units.Time)) error
}

// Run opens the interface, sends the flows and answers those of others until ctx ends or
// the options' time is over, prints lines to out, and writes the summary.
func Run(ctx context.Context, o *Options, out io.Writer, log *slog.Logger) error {
	if err := o.Check(); err != nil {
		return err
	}
	cfg, err := o.agentConfig()
	if err != nil {
		return err
	}
	n, err := nic.Open(nic.Config{Interface: o.Interface, Agent: cfg, Log: log})
	if err != nil {
		return err
	}
	fab := newFabric(o, n, log)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	// The agent outlives the watching of it, so that the last report can be taken.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	group.Go(func() error {
		defer cancel()
		return n.Run(running)
	})
	if err := Attach(ctx, group, o.Controller, o.Dial, remote.Options{Host: o.Name, Do: remote.DoFrom(n.Do), Adopt: fab.adopt, BaseRTT: o.BaseRTT, Log: log}); err != nil {
		stop()
		return errors.Join(err, group.Wait())
	}
	service.Ready(ctx, log, func(ctx context.Context) error { return turned(ctx, n) })
	group.Go(func() error {
		defer stop()
		defer cancel()
		return watch(ctx, o, fab, out)
	})
	return group.Wait()
}

// Attach keeps an agent attached to the controller at an address until ctx ends, as a member of group. Without an address it does
// nothing.
func Attach(ctx context.Context, group *errgroup.Group, address string, dial client.Options, o remote.Options) error {
	if address == "" {
		return nil
	}
	conn, err := client.Dial(address, dial)
	if err != nil {
		return fmt.Errorf("--controller %q: %w", address, err)
	}
	group.Go(func() error {
		defer conn.Close()
		if err := remote.Run(ctx, headgatev1.NewHostServiceClient(conn), o); ctx.Err() == nil {
			return fmt.Errorf("--name %q: %w", o.Host, err)
		}
		return nil
	})
	return nil
}

// turned waits until the agent's loop has run once; it returns an error if ctx ends before.
func turned(ctx context.Context, d driver) error {
	if err := d.Do(ctx, func(*agent.Agent, units.Time) {}); err != nil {
		return fmt.Errorf("the agent's loop: %w", err)
	}
	return nil
}

func (o *Options) agentConfig() (agent.Config, error) {
	if !o.IP.IsValid() {
		ip, err := firstIPv4(o.Interface)
		if err != nil {
			return agent.Config{}, err
		}
		o.IP = ip
	}
	unit, err := maxqd.NewUnit(o.Unit)
	if err != nil {
		return agent.Config{}, err
	}
	k, err := o.lawKind()
	if err != nil {
		return agent.Config{}, err
	}
	create := notYet
	if !o.awaitsBase(k) {
		if create, err = o.flowLaw(); err != nil {
			return agent.Config{}, err
		}
	}
	return agent.Config{
		Name: o.Name, IP: o.IP, Gateway: o.Gateway, Rate: o.Rate, Unit: unit, NewLaw: create, Law: o.Law,
		MSS: o.MSS, DataDSCP: o.DataDSCP, AckDSCP: o.AckDSCP,
		CNPGap: o.CNPGap, Classes: o.Classes, Lossy: o.lossy(), ShimPort: o.UDPPort,
		// Receivers may remember flows of a process that ran here before.
		FirstQP: 1 + rand.Uint32N(packet.MaxQP),
	}, nil
}

func firstIPv4(name string) (netip.Addr, error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("--interface %q: %w", name, err)
	}
	addrs, err := ifi.Addrs()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("--interface %q: %w", name, err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil {
			return netip.AddrFrom4([4]byte(n.IP.To4())), nil
		}
	}
	return netip.Addr{}, fmt.Errorf("--interface %q has no IPv4 address: give one with --ip", name)
}

// lastReport is how long the report at the end is waited for when the process is to stop.
const lastReport = 5 * time.Second

// watch starts the flows when the fabric's parameters are known, prints their rates, and ends with the summary.
func watch(ctx context.Context, o *Options, fab *fabric, out io.Writer) error {
	select {
	case <-fab.known:
	default:
		fab.log.Info("flows start when the controller has sent the fabric's parameters", "controller", o.Controller)
		select {
		case <-fab.known:
		case <-ctx.Done():
			return nil
		}
	}
	if fab.err != nil {
		return fab.err
	}
	d := fab.d
	var failed error
	err := d.Do(ctx, func(a *agent.Agent, now units.Time) {
		for _, spec := range o.Flows {
			spec, err := o.withChannel(spec)
			if err == nil {
				_, err = a.StartFlow(now, spec)
			}
			failed = errors.Join(failed, err)
		}
	})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	m := newMeter(units.FromDuration(o.WarmUp))
	look := func(ctx context.Context) error {
		return d.Do(ctx, func(a *agent.Agent, now units.Time) { m.add(now, a.Report(), a.Stats()) })
	}
	if err := look(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "host %s %v on %s at %v, %s, law %s\n", o.Name, o.IP, o.Interface, o.Rate, units.Count(len(o.Flows), "flow"), o.Law)
	tick := time.NewTicker(o.Interval)
	defer tick.Stop()
	var over <-chan time.Time
	if o.For > 0 {
		timer := time.NewTimer(o.For)
		defer timer.Stop()
		over = timer.C
	}
	for running := true; running; {
		select {
		case <-tick.C:
		case <-over:
			running = false
		case <-ctx.Done():
			running = false
		}
		err := look(ctx) // however long a busy machine takes
		if ctx.Err() != nil {
			running = false
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastReport)
			err = look(last)
			cancel()
		}
		switch {
		case errors.Is(err, nic.ErrClosed):
			return nil // the NIC's own error says why
		case errors.Is(err, context.DeadlineExceeded):
			fmt.Fprintf(out, "no report within %v: the summary ends with the one before\n", lastReport)
		case err != nil:
			return err
		}
		if running || m.at-m.prev > units.FromDuration(o.Interval)/2 { // no rate over a mere moment
			m.print(out)
			m.warn(o, fab.log)
		}
	}
	return jsonfile.Write(o.JSON, out, m.summary(o))
}
