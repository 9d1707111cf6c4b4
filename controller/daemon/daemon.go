// Package daemon is the controller as a process: the core with its state store, the weight
// registry, the northbound API and the metrics, from one configuration.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/channels"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/metrics"
	"github.com/headgate/headgate/controller/northbound"
	"github.com/headgate/headgate/controller/store"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/controller/weights"
)

// Options of a daemon. Config is required.
type Options struct {
	// Config is applied at the start, whatever the state store holds from before: the
	// operator's file is what is wanted now.
	Config *config.Config
	// Flags override keys of every configuration that is applied; see config.Options.
	Flags map[string]*pflag.Flag
	// Socket is the path of a Unix socket on which the API is served too, for hosts in
	// network namespaces of their own; empty for none.
	Socket string
	Log    *slog.Logger // slog.Default when nil
}

// Run serves until ctx ends, which is not an error. What cannot be had at all (an address
// in use, a state file that is another process's) ends it with an error before any switch
// is touched.
func Run(ctx context.Context, o Options) error {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	c := o.Config.Controller
	db, err := store.Open(c.State, store.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	registry, err := weights.Open(weights.Options{Keeper: db, Log: o.Log})
	if err != nil {
		return err
	}
	saved, _, err := db.LoadConfig()
	if err != nil {
		return err
	}
	core, err := controller.New(controller.Options{
		Flags: o.Flags, Generation: saved.Generation, Log: o.Log,
		Save: func(file string, yaml []byte, generation uint64) error {
			return db.SaveConfig(store.Config{File: file, YAML: string(yaml), Generation: generation, Applied: time.Now()})
		},
	})
	if err != nil {
		return err
	}
	listeners, err := o.listen(ctx)
	if err != nil {
		return err
	}
	priorities := channels.New()
	backend := &backend{Controller: core, weights: registry, channels: priorities, flags: o.Flags}
	collector := metrics.NewCollector(metrics.Options{Source: core, Weights: registry, Events: core.Events(), Samples: core.Samples()})
	handler, err := metrics.Handler(collector, metrics.HandlerOptions{Log: o.Log})
	if err != nil {
		listeners.close()
		return err
	}

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return ended(ctx, core.Run(ctx)) })
	group.Go(func() error { return collector.Run(ctx) })
	api := northbound.New(northbound.Options{
		Backend: backend, Weights: registry, Channels: priorities, Events: core.Events(), Samples: core.Samples(), Log: o.Log,
	})
	group.Go(func() error { return api.Serve(ctx, listeners.api...) })
	if listeners.metrics != nil {
		group.Go(func() error { return metrics.Serve(ctx, listeners.metrics, handler) })
	}
	group.Go(func() error {
		select {
		case <-core.Started():
		case <-ctx.Done():
			return nil
		}
		_, results, err := backend.Apply(ctx, o.Config.File, o.Config.Source)
		for _, r := range results {
			if r.Err != "" && ctx.Err() == nil {
				o.Log.Warn("switch does not hold its configuration yet", "switch", r.Switch, "err", r.Err)
			}
		}
		return ended(ctx, err)
	})
	return group.Wait()
}

// ended tells an error from the end that was asked for.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// listeners are the daemon's open addresses.
type listeners struct {
	api     []net.Listener
	metrics net.Listener // nil when off
}

func (l *listeners) close() {
	for _, a := range l.api {
		_ = a.Close()
	}
	if l.metrics != nil {
		_ = l.metrics.Close()
	}
}

func (o Options) listen(ctx context.Context) (*listeners, error) {
	l := &listeners{}
	if err := o.open(ctx, l); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// open opens every address into l, up to the first that cannot be had.
func (o Options) open(ctx context.Context, l *listeners) error {
	c := o.Config.Controller
	api, err := northbound.Listen(ctx, c.Listen)
	if err != nil {
		return err
	}
	l.api = append(l.api, api)
	if o.Socket != "" {
		// What a daemon that was killed left behind is no listener any more.
		if conn, err := net.Dial("unix", o.Socket); err == nil {
			_ = conn.Close()
			return fmt.Errorf("--socket %s: another process listens there", o.Socket)
		}
		if err := os.Remove(o.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("--socket: %w", err)
		}
		unix, err := (&net.ListenConfig{}).Listen(ctx, "unix", o.Socket)
		if err != nil {
			return fmt.Errorf("--socket %s: %w", o.Socket, err)
		}
		l.api = append(l.api, unix)
	}
	if c.Metrics != "off" {
		if l.metrics, err = (&net.ListenConfig{}).Listen(ctx, "tcp", c.Metrics); err != nil {
			return fmt.Errorf("controller.metrics %q: %w", c.Metrics, err)
		}
	}
	return nil
}

// backend is the core with the budgets that configurations carry: a configuration whose
// budgets do not fit the weights in use is refused whole.
type backend struct {
	*controller.Controller
	weights  *weights.Registry
	channels *channels.Registry
	flags    map[string]*pflag.Flag
}

var _ northbound.Backend = (*backend)(nil)

// Plan implements northbound.Backend.
func (b *backend) Plan(ctx context.Context, file string, yaml []byte) ([]view.Plan, error) {
	if _, err := b.check(file, yaml); err != nil {
		return nil, err
	}
	return b.Controller.Plan(ctx, file, yaml)
}

// Apply implements northbound.Backend.
func (b *backend) Apply(ctx context.Context, file string, yaml []byte) (uint64, []view.Result, error) {
	cfg, err := b.check(file, yaml)
	if err != nil {
		return 0, nil, err
	}
	// Budgets first: they can be put back, a configuration in force cannot.
	before := map[string]float64{}
	if c := b.Config(); c != nil {
		before = budgetsOf(c)
	}
	if err := b.weights.Configure("configuration "+file, budgetsOf(cfg)); err != nil {
		return 0, nil, budgetFault(file, err)
	}
	plan, _ := b.channels.Plan()
	if err := b.channels.Configure(cfg.ChannelPlan()); err != nil {
		return 0, nil, errors.Join(channelFault(file, err), b.weights.Configure("configuration "+file+", not applied", before))
	}
	generation, results, err := b.Controller.Apply(ctx, file, yaml)
	if err != nil {
		err = errors.Join(err, b.weights.Configure("configuration "+file+", not applied", before), b.restore(plan))
	}
	return generation, results, err
}

// restore puts back a plan of channels, the zero one for none.
func (b *backend) restore(plan channels.Plan) error {
	if plan == (channels.Plan{}) {
		return b.channels.Configure(nil)
	}
	return b.channels.Configure(&plan)
}

// check returns a configuration, whose budgets fit the weights in use now and which has the
// virtual priorities that are allocated.
func (b *backend) check(file string, yaml []byte) (*config.Config, error) {
	cfg, err := config.Reparse(file, yaml, b.flags)
	if err != nil {
		return nil, err
	}
	if err := b.weights.CheckBudgets(budgetsOf(cfg)); err != nil {
		return nil, budgetFault(file, err)
	}
	if err := b.channels.Check(cfg.ChannelPlan()); err != nil {
		return nil, channelFault(file, err)
	}
	return cfg, nil
}

func channelFault(file string, err error) error {
	return &config.Error{File: file, List: []view.Fault{{Field: "prioplus.priorities", Text: err.Error()}}}
}

func budgetsOf(c *config.Config) map[string]float64 {
	limits := map[string]float64{}
	for _, a := range c.Applications {
		limits[a.Name] = a.Budget
	}
	return limits
}

func budgetFault(file string, err error) error {
	return &config.Error{File: file, List: []view.Fault{{Field: "applications", Text: err.Error()}}}
}
