//go:build linux

package tcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	headgatev1 "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/agent/remote"
	"github.com/headgate/headgate/hosts/standalone"
	"github.com/headgate/headgate/hosts/tcp/kernel"
	"github.com/headgate/headgate/internal/service"
	"github.com/headgate/headgate/units"
)

// governor holds the kernel's programs and the agent of the connections. A lock guards the agent.
type governor struct {
	o      *Options
	kernel *kernel.Kernel
	netns  uint64
	log    *slog.Logger
	start  time.Time

	mu    sync.Mutex
	agent Agent
}

// instance returns the name under which the options are attached to the kernel. Agents of one
// machine must have different names.
func (o *Options) instance() string {
	if o.Netns == "" {
		return ""
	}
	return o.Name
}

// Run governs connections until ctx ends or the options' time is over, and prints lines to out. The programs stay
// attached to the kernel after Run, so connections remain governed until --detach removes the programs.
func Run(ctx context.Context, o *Options, out io.Writer, log *slog.Logger) error {
	if o.Detach {
		return kernel.Detach(o.instance())
	}
	if err := o.Check(); err != nil {
		return err
	}
	g, err := attach(o, log)
	if err != nil {
		return err
	}
	if o.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.For)
		defer cancel()
	}
	group, ctx := errgroup.WithContext(ctx)
	if err := standalone.Attach(ctx, group, o.Controller, o.Dial, remote.Options{Host: o.Name, Do: g.do, Adopt: g.adopt, Log: log}); err != nil {
		return err
	}
	service.Ready(ctx, log, func(context.Context) error { return nil })
	group.Go(func() error { return g.watch(ctx, out) })
	return group.Wait()
}

func attach(o *Options, log *slog.Logger) (*governor, error) {
	classes, cgroups, marks, err := o.resolve()
	if err != nil {
		return nil, err
	}
	g := &governor{o: o, log: log, start: time.Now()}
	if o.Netns != "" {
		path := o.Netns
		if !strings.Contains(path, "/") {
			path = filepath.Join("/run/netns", path)
		}
		if g.netns, err = kernel.NetnsCookie(path); err != nil {
			return nil, fmt.Errorf("--netns: %w", err)
		}
	}
	if g.kernel, err = kernel.Open(kernel.Config{Name: o.instance(), Cgroups: cgroups}); err != nil {
		return nil, err
	}
	g.agent = Agent{kernel: g.kernel, classes: classes}
	if err := errors.Join(g.kernel.SetMarks(marks), g.setParams()); err != nil {
		return nil, err
	}
	log.Info("new connections are governed from now on", "cgroups", len(cgroups), "classes", len(classes), "adopted", g.kernel.Adopted)
	return g, nil
}

func (g *governor) setParams() error {
	p, err := g.o.params()
	if err != nil {
		return err
	}
	p.Netns = g.netns
	for i, c := range g.agent.classes {
		k := kernel.Class{Law: c.law(), Weight: c.Weight}
		switch {
		case c.Priority > 0 && g.o.BaseRTT > 0:
			if k.Channel, err = g.o.channel(c.Priority); err != nil {
				return err
			}
		case c.Priority > 0:
			k.Law = kernel.Other // until the controller has sent the base round trip
		}
		if err := g.kernel.SetClass(uint32(i), k); err != nil {
			return err
		}
	}
	return g.kernel.SetParams(p)
}

func (g *governor) adopt(_ context.Context, list []*headgatev1.HostParameter) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, err := standalone.Adopt(g.o.flags, "soze", list, g.log)
	_, more := standalone.Adopt(g.o.flags, "prioplus", list, g.log)
	if err = errors.Join(err, more, g.setParams()); err != nil {
		return fmt.Errorf("the fabric's parameters: %w", err)
	}
	return nil
}

func (g *governor) do(ctx context.Context, fn func(remote.Agent, units.Time)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := units.FromDuration(time.Since(g.start))
	if err := g.agent.look(now); err != nil {
		return err
	}
	fn(&g.agent, now)
	return ctx.Err()
}

func (g *governor) watch(ctx context.Context, out io.Writer) error {
	acked, at := map[agent.FlowKey]units.Bytes{}, units.Time(0)
	tick := time.NewTicker(g.o.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		var list []agent.FlowReport
		var now units.Time
		if err := g.do(ctx, func(a remote.Agent, t units.Time) { list, now = a.Report(), t }); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		slices.SortFunc(list, func(x, y agent.FlowReport) int { return strings.Compare(x.Key.String(), y.Key.String()) })
		seen := make(map[agent.FlowKey]units.Bytes, len(list))
		for _, f := range list {
			fmt.Fprintf(out, "%v weight %v: %v, round trip %v, maxQD %v\n", f.Key, f.Weight, units.RateOf(f.Acked-acked[f.Key], now-at), f.SRTT, f.MaxQD)
			seen[f.Key] = f.Acked
		}
		acked, at = seen, now
	}
}
