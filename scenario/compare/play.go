package compare

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/scenario/inproc"
	"github.com/headgate/headgate/units"
)

// Options of a comparison.
type Options struct {
	Scenario Scenario
	Show     Show // takes progress; nothing is shown when nil
	Log      *slog.Logger
}

// Show is how a comparison shows itself. Its methods are called from one goroutine.
type Show interface {
	// Variant says that a variant's fabric is being brought up.
	Variant(s *Scenario, i int)
	// Ready says that its switches hold their configuration and traffic begins.
	Ready(r *Run)
	// Result says what was measured.
	Result(r *Run, result *Result)
}

// Run is a variant in progress, for a Show to read. Its methods are safe for concurrent use.
type Run struct {
	Scenario *Scenario
	Index    int // of the variant
	Config   *config.Config

	recorder *recorder
	control  *inproc.Control
	fabric   *inproc.Fabric
	keys     []started
	failed   error // of a burst; the loop's
}

// started is a flow that a host has begun.
type started struct {
	host  *agent.Host
	key   agent.FlowKey
	index int
}

// Play plays every variant and reports what it measured.
func Play(ctx context.Context, o Options) (*Report, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Show == nil {
		o.Show = silent{}
	}
	s := &o.Scenario
	configs := make([]*config.Config, len(s.Variants))
	for i, v := range s.Variants { // all of them before the first takes its time
		var err error
		if configs[i], err = s.configure(v); err != nil {
			return nil, err
		}
	}
	report := newReport(s, configs)
	for i := range s.Variants {
		o.Show.Variant(s, i)
		r := &Run{Scenario: s, Index: i, Config: configs[i]}
		result, err := r.play(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("variant %s: %w", s.Variants[i].Name, err)
		}
		report.Variants = append(report.Variants, result)
		o.Show.Result(r, result)
	}
	report.judge(s)
	return report, nil
}

// play brings up the variant's fabric, lets its traffic run, and takes it down again.
func (r *Run) play(ctx context.Context, o Options) (*Result, error) {
	s, v := r.Scenario, r.Scenario.Variants[r.Index]
	r.recorder = newRecorder(s, r.Config)
	f, err := inproc.Build(r.Config, inproc.Options{
		Log: o.Log, Tap: r.recorder.tap,
		Host: func(c *agent.Config) { s.host(c, r.Config, v, r.recorder.deliver) },
	})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r.fabric = f
	r.recorder.attach(f)
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
	var result *Result
	group.Go(func() error {
		defer cancel()
		var err error
		result, err = r.run(ctx, o.Show)
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

// run waits for the controller, starts the traffic and measures.
func (r *Run) run(ctx context.Context, show Show) (*Result, error) {
	began := time.Now()
	if err := r.control.WaitReady(ctx); err != nil {
		return nil, err
	}
	up := time.Since(began)
	loop := r.fabric.Loop
	var before inproc.Losses
	ended, failed := make(chan struct{}), make(chan error, 1)
	if err := loop.Do(ctx, func() {
		before = r.fabric.Losses()
		r.recorder.begin()
		if err := r.traffic(); err != nil {
			failed <- err
			return
		}
		loop.At(r.at(r.Scenario.End), func() {
			loop.Schedule(loop.Now(), func() { close(ended) }) // after the sample of this moment
		})
	}); err != nil {
		return nil, err
	}
	show.Ready(r)
	select {
	case <-ended:
	case err := <-failed:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var result *Result
	if err := loop.Do(ctx, func() { result = r.measure(before) }); err != nil {
		return nil, err
	}
	if r.failed != nil {
		return nil, r.failed
	}
	result.ReadySeconds = up.Seconds()
	if err := r.pools(ctx, result); err != nil {
		return nil, err
	}
	result.Losses.Pipelines = r.control.Telemetry.Drops()
	return result, nil
}

// at returns a time of the scenario on the fabric's clock.
func (r *Run) at(t units.Time) units.Time { return r.recorder.began + r.Config.Scaled(t) }

// traffic starts the flows and schedules the bursts; on the loop.
func (r *Run) traffic() error {
	s := r.Scenario
	for i, f := range s.Flows {
		if err := r.start(f.From, f.To, 0, i); err != nil {
			return fmt.Errorf("flow %s: %w", f.Name, err)
		}
	}
	for i, b := range s.Bursts {
		for _, from := range b.From {
			gap := r.fabric.Hosts[from].Config().Rate.TxTime((b.Size + inproc.MSS - 1) / inproc.MSS * units.Bytes(frameBytes))
			for k := range max(b.Rounds, 1) {
				r.fabric.Loop.At(r.at(b.At)+units.Time(k)*gap, func() {
					if err := r.start(from, b.To, b.Size, len(s.Flows)+i); err != nil {
						r.failed = errors.Join(r.failed, fmt.Errorf("burst %s: %w", b.Name, err))
					}
				})
			}
		}
	}
	return nil
}

// start starts a flow of RoCEv2 without shim; on the loop.
func (r *Run) start(from, to string, size units.Bytes, index int) error {
	h := r.fabric.Hosts[from]
	key, err := h.StartFlow(agent.FlowSpec{Dst: r.fabric.Hosts[to].Config().IP, DstPort: packet.RoCEv2Port, Size: size})
	if err != nil {
		return err
	}
	r.recorder.follow(key, index, from)
	r.keys = append(r.keys, started{h, key, index})
	return nil
}

type silent struct{}

func (silent) Variant(*Scenario, int) {}
func (silent) Ready(*Run)             {}
func (silent) Result(*Run, *Result)   {}
