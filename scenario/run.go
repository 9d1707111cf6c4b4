// Package scenario is `headgate run`: a fabric of embedded switches and hosts in one
// process, the real controller driving them over P4Runtime on loopback, and a script of
// what operators and hosts do to it, measured against an independent solver. Package
// scenario/compare has the scenarios that compare configurations, scenario/inproc the fabric.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/hosts/agent/remote"
	"github.com/headgate/headgate/scenario/inproc"
	"github.com/headgate/headgate/units"
)

// Options of a run.
type Options struct {
	Config   *config.Config
	Script   Script
	For      time.Duration // of all phases together, at least a second a phase
	Restarts []Restart
	Show     Show // takes progress; nothing is shown when nil
	Log      *slog.Logger
}

// Restart is a fault: a switch loses power at a moment of the run, with its program, its
// entries and the packets in its queues, and comes back empty.
type Restart struct {
	Switch string
	At     time.Duration
}

// outage is how long a switch stays away.
const outage = 2 * time.Second

// Show is how a run shows itself. Its methods are called from one goroutine.
type Show interface {
	// Ready says that every switch holds its configuration.
	Ready(r *Run)
	// Phase says that a phase begins.
	Phase(r *Run, i int)
	// Fault says what was injected.
	Fault(r *Run, text string)
	// Done says that the measurement is over.
	Done(r *Run)
}

// Run is a run in progress, for a Show to read. Its methods are safe for concurrent use.
type Run struct {
	opts  Options
	stage *stage
	began units.Time
	each  units.Time // length of a phase
}

// Play runs a script on a configuration's fabric and reports what it measured.
func Play(ctx context.Context, o Options) (*Report, *Recording, error) {
	if err := o.validate(); err != nil {
		return nil, nil, err
	}
	tracer := tracer{}
	f, err := inproc.Build(o.Config, inproc.Options{Log: o.Log, Tap: tracer.saw})
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if err := f.Serve(); err != nil {
		return nil, nil, err
	}
	total := units.FromDuration(o.For)
	samples := newSampler(f.Loop, sampleEvery(total))

	ctx, cancel := context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	control, err := f.Start(ctx, group)
	if err != nil {
		cancel()
		return nil, nil, errors.Join(err, group.Wait())
	}
	defer control.Conn.Close()
	r := &Run{opts: o, stage: newStage(f, control, tracer, samples), each: total / units.Time(len(o.Script.Phases))}
	r.attachHosts(ctx, group)

	var report *Report
	group.Go(func() error {
		defer cancel()
		var err error
		report, err = r.play(ctx)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	if report == nil {
		return nil, nil, context.Canceled
	}
	return report, r.recording(), nil
}

func (o *Options) validate() error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Show == nil {
		o.Show = silent{}
	}
	if least := time.Duration(len(o.Script.Phases)) * time.Second; o.For < least {
		return fmt.Errorf("--for %v: want at least %v, a second for each of the %d phases", o.For, least, len(o.Script.Phases))
	}
	for _, r := range o.Restarts {
		if o.Config.Switch(r.Switch) == nil {
			return fmt.Errorf("--restart %s@%v: no switch of that name in %s", r.Switch, r.At, o.Config.File)
		}
		if r.At < 0 || r.At+outage >= o.For {
			return fmt.Errorf("--restart %s@%v: want a time from 0 to %v, %v before the end", r.Switch, r.At, o.For-outage, outage)
		}
	}
	return nil
}

// attachHosts lets every host's agent take its weights from the controller.
func (r *Run) attachHosts(ctx context.Context, group *errgroup.Group) {
	for name, h := range r.stage.fabric.Hosts {
		group.Go(func() error {
			return inproc.IgnoreCancel(ctx, remote.Run(ctx, r.stage.hosts, remote.Options{Host: name, Do: h.Do, Log: r.opts.Log, Interval: 250 * time.Millisecond}))
		})
	}
}

// play goes through the phases.
func (r *Run) play(ctx context.Context) (*Report, error) {
	f, s := r.stage.fabric, r.stage.samples
	if err := r.stage.WaitReady(ctx); err != nil {
		return nil, err
	}
	r.opts.Show.Ready(r)
	report := &Report{Scenario: r.opts.Script.Name, Fabric: r.opts.Config.Name, Seconds: r.opts.For.Seconds()}
	var err error
	if r.began, err = r.now(ctx); err != nil {
		return nil, err
	}
	// While switches come up one after the other, the controller's link probes reach some
	// that have no program yet; what counts is from here on.
	var before inproc.Losses
	if err := f.Loop.Do(ctx, func() { before = f.Losses() }); err != nil {
		return nil, err
	}
	faults := r.schedule(ctx, report)
	for i, p := range r.opts.Script.Phases {
		pr := PhaseReport{Name: p.Name}
		from, err := r.now(ctx)
		if err != nil {
			return nil, err
		}
		r.opts.Show.Phase(r, i)
		for _, a := range p.Actions {
			if err := r.stage.act(ctx, a); err != nil {
				return nil, fmt.Errorf("phase %q: %s: %w", p.Name, a, err)
			}
			pr.Actions = append(pr.Actions, a.String())
		}
		end := r.began + r.each*units.Time(i+1)
		if err := r.waitUntil(ctx, (from+end)/2); err != nil {
			return nil, err
		}
		// Paths are those of the second half, when routes have settled.
		if err := f.Loop.Do(ctx, r.retrace); err != nil {
			return nil, err
		}
		if err := r.waitUntil(ctx, end); err != nil {
			return nil, err
		}
		var failed error
		if err := f.Loop.Do(ctx, func() {
			s.sample()
			pr.Flows, failed = r.stage.measure(r.opts.Config, from, end)
		}); err != nil {
			return nil, err
		}
		if failed != nil {
			return nil, fmt.Errorf("phase %q: %w", p.Name, failed)
		}
		pr.Start, pr.End = (from - r.began).Seconds(), (end - r.began).Seconds()
		report.Phases = append(report.Phases, pr)
	}
	if err := faults(); err != nil {
		return nil, err
	}
	if err := f.Loop.Do(ctx, func() { report.Losses = f.Losses().Since(before) }); err != nil {
		return nil, err
	}
	report.Losses.Pipelines = r.stage.Telemetry.Drops()
	report.Losses.Retransmits = s.retransmits()
	_, worst := f.Loop.Lag()
	report.WorstLag = millis(worst)
	report.judge()
	r.opts.Show.Done(r)
	return report, nil
}

// retrace starts to trace every flow anew; on the loop.
func (r *Run) retrace() {
	names, _ := r.stage.samples.names()
	for _, n := range names {
		if fl, ok := r.stage.samples.get(n); ok {
			r.stage.tracer.start(fl.key.Src, fl.key.SrcPort)
		}
	}
}

// schedule lets the faults happen in their time; what it returns waits for them.
func (r *Run) schedule(ctx context.Context, report *Report) func() error {
	group, ctx := errgroup.WithContext(ctx)
	for _, x := range r.opts.Restarts {
		text := fmt.Sprintf("%s restarted empty at %v, away for %v", x.Switch, x.At, outage)
		report.Faults = append(report.Faults, text)
		group.Go(func() error {
			if err := r.waitUntil(ctx, r.began+units.FromDuration(x.At)); err != nil {
				return err
			}
			r.opts.Show.Fault(r, text)
			return r.stage.fabric.Restart(ctx, x.Switch, outage)
		})
	}
	return group.Wait
}

func (r *Run) now(ctx context.Context) (t units.Time, err error) {
	err = r.stage.fabric.Loop.Do(ctx, func() { t = r.stage.fabric.Loop.Now() })
	return t, err
}

// waitUntil returns when the fabric's clock has reached t.
func (r *Run) waitUntil(ctx context.Context, t units.Time) error {
	reached := make(chan struct{})
	r.stage.fabric.Loop.Post(func() { r.stage.fabric.Loop.At(t, func() { close(reached) }) })
	select {
	case <-reached:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
