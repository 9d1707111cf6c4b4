package emulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/buffer"
	"github.com/headgate/headgate/emulation/network"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/agent/remote"
	"github.com/headgate/headgate/units"
)

// Options of Play.
type Options struct {
	Scenario Scenario
	// Config is the fabric, and For the length, of a scenario that plays on the operator's fabric. Each phase gets
	// at least a second.
	Config   *config.Config
	For      time.Duration
	Restarts []Restart
	// Predict also plays scenarios that have a fabric of their own in the simulator.
	Predict bool
	Show    Show // receives progress; nil shows nothing
	Log     *slog.Logger
}

// Restart is a fault: a switch loses power during the run, with its program, entries and queued
// packets, and comes back empty.
type Restart struct {
	Switch string
	At     time.Duration
}

func (r Restart) String() string {
	return fmt.Sprintf("%s restarted empty at %v, away for %v", r.Switch, r.At, outage)
}

// outage is the time for which a restarted switch is off.
const outage = 2 * time.Second

// Show receives the progress of a run. It is safe for concurrent use.
type Show func(Event)

// Event is something that happens in a play of a Run.
type Event struct {
	Run    *Run
	Kind   EventKind
	Phase  int     // the phase that begins
	Fault  string  // the fault that is injected
	Result *Result // the result of a play that is over
}

// EventKind is the kind of an Event.
type EventKind int

// The kinds, in the order in which they come.
const (
	Started    EventKind = iota // a variant's fabric is being brought up
	Ready                       // its switches hold their configuration and traffic begins
	PhaseBegun                  // the event has Phase
	Faulted                     // the event has Fault
	Ended                       // the event has Result
)

// Run is a play of one variant, read by a Show. Its methods are safe for concurrent use.
type Run struct {
	Scenario *Scenario
	Index    int // index of the variant
	Config   *config.Config

	opts     *Options
	times    []units.Time // beginnings of the phases, and the end
	recorder *recorder
	control  *network.Control
	fabric   *network.Fabric
	failed   error // error of an action; the loop owns it
}

// Play plays every variant and reports the measurements.
func Play(ctx context.Context, o Options) (*Report, error) {
	configs, err := o.validate()
	if err != nil {
		return nil, err
	}
	s := &o.Scenario
	times := s.Times(units.FromDuration(o.For))
	var results []*Result
	for i := range s.Variants {
		r := &Run{Scenario: s, Index: i, Config: configs[i], opts: &o, times: times}
		o.Show(Event{Run: r, Kind: Started})
		result, err := r.play(ctx)
		if err != nil {
			if v := s.Variants[i].Name; v != "" {
				err = fmt.Errorf("variant %s: %w", v, err)
			}
			return nil, err
		}
		if o.Predict {
			if err := s.predict(ctx, configs[i], s.Variants[i], result); err != nil {
				return nil, err
			}
		}
		results = append(results, result)
		o.Show(Event{Run: r, Kind: Ended, Result: result})
	}
	return NewReport(s, configs[0], times, results), nil
}

// validate fills in defaults and returns each variant's configuration.
func (o *Options) validate() ([]*config.Config, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Show == nil {
		o.Show = func(Event) {}
	}
	s := &o.Scenario
	if s.On != nil {
		var err error
		if s.Phases, err = s.On(o.Config); err != nil {
			return nil, err
		}
	}
	configs := make([]*config.Config, len(s.Variants))
	for i, v := range s.Variants { // check all before the first one takes its time
		configs[i] = o.Config
		if s.Fabric != nil {
			var err error
			if configs[i], err = s.Configure(v); err != nil {
				return nil, err
			}
		}
		if err := s.check(configs[i]); err != nil {
			return nil, err
		}
	}
	if s.Fabric != nil {
		return configs, nil
	}
	if least := time.Duration(len(s.Phases)) * time.Second; o.For < least {
		return nil, fmt.Errorf("--for %v: want at least %v, a second for each of the %d phases", o.For, least, len(s.Phases))
	}
	for _, r := range o.Restarts {
		if o.Config.Switch(r.Switch) == nil {
			return nil, fmt.Errorf("--restart %s@%v: no switch of that name in %s", r.Switch, r.At, o.Config.File)
		}
		if r.At < 0 || r.At+outage >= o.For {
			return nil, fmt.Errorf("--restart %s@%v: want a time from 0 to %v, %v before the end", r.Switch, r.At, o.For-outage, outage)
		}
	}
	return configs, nil
}

// scale returns the factor by which the fabric's times exceed the scenario's.
func (s *Scenario) scale(c *config.Config) int64 {
	if s.Fabric == nil {
		return 1
	}
	return c.Scale
}

// play brings up the variant's fabric, lets its traffic run, and takes it down again.
func (r *Run) play(ctx context.Context) (*Result, error) {
	s := r.Scenario
	rec := newRecorder(s, s.scale(r.Config), r.times[len(r.times)-1])
	f, err := network.Build(r.Config, network.Options{
		Log: r.opts.Log, Tap: func(wire int, frame []byte, now units.Time) { rec.tap(wire, frame, now) },
		Host: func(c *agent.Config) { s.host(c, r.Config, s.Variants[r.Index], rec.deliver) },
	})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rec.attach(f)
	r.fabric, r.recorder = f, rec
	if err := f.Serve(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	if r.control, err = f.Start(ctx, group); err != nil {
		cancel()
		return nil, errors.Join(err, group.Wait())
	}
	defer r.control.Conn.Close()
	for name, h := range f.Hosts { // they report their flows, and Söze's take their weights from the controller
		group.Go(func() error {
			return network.IgnoreCancel(ctx, remote.Run(ctx, r.control.Hosts, remote.Options{Host: name, Do: remote.DoFrom(h.Do), Log: r.opts.Log, Interval: 250 * time.Millisecond}))
		})
	}
	var result *Result
	group.Go(func() error {
		defer cancel()
		var err error
		result, err = r.run(ctx)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if result == nil {
		return nil, context.Canceled
	}
	return result, nil
}

// run waits for the controller, goes through the phases and measures.
func (r *Run) run(ctx context.Context) (*Result, error) {
	began := time.Now()
	if err := r.control.WaitReady(ctx); err != nil {
		return nil, err
	}
	ready := time.Now()
	// While switches come up one after another, link probes reach switches without a program and are lost. Losses
	// count from here on.
	before, err := r.fabric.Losses(ctx)
	if err != nil {
		return nil, err
	}
	late := watch(ctx)
	phases, err := r.schedule(ctx)
	if err != nil {
		return nil, err
	}
	r.opts.Show(Event{Run: r, Kind: Ready})
	faults := r.inject(ctx)
	if err := r.operate(ctx, phases); err != nil {
		return nil, err
	}
	behind := late()
	if err := faults(); err != nil {
		return nil, err
	}
	after, err := r.fabric.Losses(ctx)
	if err != nil {
		return nil, err
	}
	var rec *Record
	if err := r.fabric.Loop.Do(ctx, func() { rec, err = r.record(after.Since(before)), r.failed }); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	rec.Late = max(rec.Late, behind)
	for _, x := range r.opts.Restarts {
		rec.Faults = append(rec.Faults, x.String())
	}
	if rec.Pools, rec.Bad, err = r.pools(ctx, ready); err != nil {
		return nil, err
	}
	result, err := r.Scenario.Assess(rec)
	if err != nil {
		return nil, err
	}
	result.ReadySeconds = ready.Sub(began).Seconds()
	return result, nil
}

// schedule begins the play: hosts act at the exact time of each phase, on the loop. The channel
// reports the begin of each phase and is closed at the end.
func (r *Run) schedule(ctx context.Context) (<-chan int, error) {
	rec, loop := r.recorder, r.fabric.Loop
	phases := make(chan int, len(r.Scenario.Phases))
	err := loop.Do(ctx, func() {
		rec.begin()
		for i, p := range r.Scenario.Phases {
			loop.At(rec.at(r.times[i]), func() {
				if i > 0 {
					rec.phase()
				}
				for _, a := range p.Actions {
					if err := r.host(a); err != nil {
						r.failed = errors.Join(r.failed, fmt.Errorf("phase %q: %s: %w", p.Name, a, err))
					}
				}
				phases <- i
			})
			// Paths are measured in the second half, when routes have settled.
			loop.At(rec.at((r.times[i]+r.times[i+1])/2), rec.retrace)
		}
		loop.At(rec.at(rec.end), func() {
			loop.Schedule(loop.Now(), func() { // after the sample at this time
				rec.phase()
				close(phases)
			})
		})
	})
	return phases, err
}

// operate performs the operator's actions of each phase and returns at the end of the last phase.
func (r *Run) operate(ctx context.Context, phases <-chan int) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case i, ok := <-phases:
			if !ok {
				return nil
			}
			r.opts.Show(Event{Run: r, Kind: PhaseBegun, Phase: i})
			p := r.Scenario.Phases[i]
			for _, a := range p.Actions {
				if err := r.operator(ctx, a); err != nil {
					return fmt.Errorf("phase %q: %s: %w", p.Name, a, err)
				}
			}
		}
	}
}

// inject schedules the faults. The function that it returns waits for them.
func (r *Run) inject(ctx context.Context) (wait func() error) {
	group, ctx := errgroup.WithContext(ctx)
	for _, x := range r.opts.Restarts {
		due := make(chan struct{})
		loop, at := r.fabric.Loop, r.recorder.at(units.FromDuration(x.At))
		loop.Post(func() { loop.At(at, func() { close(due) }) })
		group.Go(func() error {
			select {
			case <-due:
			case <-ctx.Done():
				return ctx.Err()
			}
			r.opts.Show(Event{Run: r, Kind: Faulted, Fault: x.String()})
			return r.fabric.Restart(ctx, x.Switch, outage)
		})
	}
	return group.Wait
}

// watch wakes a goroutine every few milliseconds until ctx ends, as the controller does. The returned function
// reports the largest lateness so far.
func watch(ctx context.Context) (worst func() units.Time) {
	loop := clock.NewLoop()
	var tick func()
	tick = func() { loop.After(5*units.Millisecond, tick) }
	tick()
	go func() { _ = loop.RunReal(ctx) }() // ends with ctx
	return func() units.Time {
		_, worst := loop.Lag()
		return worst
	}
}

func millis(t units.Time) float64 { return t.Micros() / 1e3 }

// pollWithin bounds how late a poll of a switch may be.
const pollWithin = 20 * time.Second

// pools waits until the controller has polled each switch after the end of the measurement, and returns the values
// of the switches' buffers. It also returns reasons why the play is invalid: a poll not answered within
// pollWithin, and switches that the controller lost after began.
func (r *Run) pools(ctx context.Context, began time.Time) (pools map[string]Pools, bad []string, err error) {
	ended := time.Now()
	missing, err := r.control.Poll(ctx, pollWithin, func(list []*pb.SwitchStatus) (missing string) {
		for _, sw := range list {
			policy := buffer.FromSwitch(r.Config.Switch(sw.Name))
			if at := polled(sw); policy.On() && (at == nil || at.AsTime().Before(ended)) {
				missing = fmt.Sprintf("no poll of %s's buffer came back after the end", sw.Name)
			}
		}
		pools = PoolsOf(list)
		if bad = nil; len(r.opts.Restarts) == 0 {
			bad = unsteady(list, began)
		}
		return missing
	})
	if missing != "" {
		bad = append(bad, missing)
	}
	return pools, bad, err
}

// unsteady returns a sentence for each switch that has not been ready all the time since a moment.
func unsteady(list []*pb.SwitchStatus, since time.Time) (bad []string) {
	for _, sw := range list {
		if sw.State != pb.SwitchStatus_STATE_READY || sw.Since.AsTime().After(since) {
			bad = append(bad, fmt.Sprintf("the controller did not hold %s ready all the time", sw.Name))
		}
	}
	return bad
}

// polled returns when the last poll of a switch's buffer came back; nil if none has.
func polled(sw *pb.SwitchStatus) *timestamppb.Timestamp {
	return sw.GetFeatures().GetBuffer().GetSwitch().GetPolled()
}

// PoolsOf returns the peak of each pool, by switch, as the controller knows it.
func PoolsOf(switches []*pb.SwitchStatus) (all map[string]Pools) {
	for _, sw := range switches {
		if polled(sw) == nil {
			continue
		}
		if all == nil {
			all = map[string]Pools{}
		}
		peaks := map[string]uint64{} // peak bytes by pool
		for _, p := range sw.GetFeatures().GetBuffer().GetPools() {
			peaks[p.GetPool()] = p.GetPeakBytes()
		}
		all[sw.Name] = Pools{Private: peaks["private"], Shared: peaks["shared"], Headroom: peaks["headroom"], Insurance: peaks["insurance"]}
	}
	return all
}
