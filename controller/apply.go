package controller

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"time"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/device"
	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/controller/session"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/controller/view"
)

// Plan says what Apply would write to each switch, and changes nothing. A configuration
// with faults gives a *config.Error.
func (c *Controller) Plan(ctx context.Context, file string, yaml []byte) ([]view.Plan, error) {
	cfg, err := config.Reparse(file, yaml, c.opts.Flags)
	if err != nil {
		return nil, err
	}
	graph := topology.New(cfg)
	d := c.desire(cfg, graph, c.prepare(cfg, graph))
	if err := d.check(file); err != nil {
		return nil, err
	}
	plans := make([]view.Plan, len(cfg.Switches))
	var wg sync.WaitGroup
	for i, s := range cfg.Switches {
		wg.Go(func() { plans[i] = c.planOne(ctx, cfg, s, d) })
	}
	wg.Wait()
	return plans, nil
}

// planOne uses the session where there is one, and else a connection of its own, for
// which nobody needs to be primary.
func (c *Controller) planOne(ctx context.Context, cfg *config.Config, s config.Switch, d desire) view.Plan {
	want, pipe := d.wants[s.Name], d.prepared.pipes[s.Name]
	c.mu.RLock()
	var u *unit
	if c.current != nil {
		u = c.current.devices[s.Name]
	}
	c.mu.RUnlock()
	if u != nil && u.started && u.spec == specOf(cfg, s, pipe) {
		return u.Plan(ctx, want)
	}
	dial, err := c.opts.Dial(s)
	if err != nil {
		return device.PlanOf(ctx, s.Name, nil, err, pipe, want.State)
	}
	client, closeClient, err := session.Dial(s.Address, s.DeviceID, dial...)
	if err != nil {
		return device.PlanOf(ctx, s.Name, nil, err, pipe, want.State)
	}
	defer closeClient()
	ctx, cancel := context.WithTimeout(ctx, c.opts.Settle)
	defer cancel()
	plan := device.PlanOf(ctx, s.Name, client, nil, pipe, want.State)
	if want.Manager != nil {
		m, err := c.opts.Managers(s)
		if err == nil {
			defer m.Close()
		}
		device.PlanManager(ctx, &plan, m, err, want.Manager)
	}
	return plan
}

// Apply makes a configuration the wanted one, and waits until every switch that can be
// reached holds it, but no longer than Options.Settle. It returns the new generation and
// one result a switch, in the configuration's order. A configuration with faults gives a
// *config.Error, and nothing is applied.
//
// A switch that a new configuration lacks is let go and keeps what it holds.
func (c *Controller) Apply(ctx context.Context, file string, yaml []byte) (uint64, []view.Result, error) {
	cfg, err := config.Reparse(file, yaml, c.opts.Flags)
	if err != nil {
		return 0, nil, err
	}
	generation, next, err := c.commit(cfg, file, yaml)
	if err != nil {
		return 0, nil, err
	}
	return generation, c.settle(ctx, next), nil
}

// commit makes a configuration the running one.
func (c *Controller) commit(cfg *config.Config, file string, yaml []byte) (uint64, *applied, error) {
	c.applying.Lock()
	defer c.applying.Unlock()
	next := &applied{config: cfg, graph: topology.New(cfg), devices: map[string]*unit{}}
	next.prepared = c.prepare(cfg, next.graph)
	d := c.desire(cfg, next.graph, next.prepared)
	if err := d.check(file); err != nil {
		return 0, nil, err
	}
	fresh, err := c.newUnits(cfg, next.prepared)
	if err != nil {
		return 0, nil, err
	}
	c.mu.RLock()
	generation := c.generation + 1
	c.mu.RUnlock()
	if c.opts.Save != nil {
		if err := c.opts.Save(file, yaml, generation); err != nil {
			return 0, nil, fmt.Errorf("saving the configuration: %w", err)
		}
	}
	c.install(next, fresh, generation)
	c.links.forget(cfg)
	for name, w := range d.wants {
		next.devices[name].Want(w)
	}
	c.event(view.Event{
		Severity: view.Info, Subject: cfg.Name, Kind: "config.applied",
		Message: fmt.Sprintf("generation %d from %s", generation, file),
	})
	return generation, next, nil
}

// newUnits makes devices for the switches that the running configuration does not have in
// exactly this form.
func (c *Controller) newUnits(cfg *config.Config, prepared *prepared) (map[string]*unit, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	fresh := map[string]*unit{}
	for i, s := range cfg.Switches {
		pipe := prepared.pipes[s.Name]
		sp := specOf(cfg, s, pipe)
		if c.current != nil && c.current.devices[s.Name] != nil && c.current.devices[s.Name].spec == sp {
			continue
		}
		dial, err := c.opts.Dial(s)
		if err != nil {
			return nil, &config.Error{File: cfg.File, List: []view.Fault{{Field: fmt.Sprintf("switches[%d]", i), Text: err.Error()}}}
		}
		fresh[s.Name] = &unit{spec: sp, Device: device.New(device.Options{
			Switch: s, ElectionID: cfg.Controller.ElectionID, Pipeline: pipe, Features: c.features, Dial: dial, Manager: c.manager(s), ManagerTime: c.opts.Settle / 3,
			RetryMin: c.opts.RetryMin, RetryMax: c.opts.RetryMax, Heartbeat: c.opts.Heartbeat,
			Events: c.event, Log: c.log,
		})}
	}
	return fresh, nil
}

// install replaces the configuration, ends the devices that are not needed any more and
// starts the new ones.
func (c *Controller) install(next *applied, fresh map[string]*unit, generation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range next.config.Switches {
		if u := fresh[s.Name]; u != nil {
			next.devices[s.Name] = u
		} else {
			next.devices[s.Name] = c.current.devices[s.Name]
		}
	}
	if c.current != nil {
		for name, u := range c.current.devices {
			if next.devices[name] != u && u.cancel != nil {
				u.cancel()
			}
		}
	}
	c.current, c.generation = next, generation
	for _, u := range next.devices {
		c.start(u)
	}
}

// manager returns what makes the driver of a switch's traffic manager, nil when it has none.
func (c *Controller) manager(s config.Switch) func() (device.Manager, error) {
	if s.BFRuntime == "" {
		return nil
	}
	return func() (device.Manager, error) { return c.opts.Managers(s) }
}

func specOf(cfg *config.Config, s config.Switch, p *pipeline.Pipeline) spec {
	return spec{
		name: s.Name, deviceID: s.DeviceID, address: s.Address, target: s.Target,
		queues: s.PriorityQueues, tls: s.TLS, election: cfg.Controller.ElectionID,
		cookie: p.Cookie(), bfRuntime: s.BFRuntime, cpuPort: s.CPUPort,
	}
}

// settle collects the results of all switches.
func (c *Controller) settle(ctx context.Context, a *applied) []view.Result {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Settle)
	defer cancel()
	results := make([]view.Result, len(a.config.Switches))
	c.mu.RLock()
	running := c.running != nil
	c.mu.RUnlock()
	var wg sync.WaitGroup
	for i, s := range a.config.Switches {
		if !running {
			results[i] = view.Result{Switch: s.Name, Err: "the controller does not run yet"}
			continue
		}
		wg.Go(func() { results[i] = a.devices[s.Name].Settle(ctx) })
	}
	wg.Wait()
	return results
}

// errNoConfig is what needs a configuration says before the first one is applied.
var errNoConfig = errors.New("no configuration was applied yet")

// SetLink takes every link between two nodes, or by an end such as "leaf1:3", out of
// service, or back into it. It returns once the routes are on their way to the switches.
// Links that an operator took out stay out over new configurations that still have them.
func (c *Controller) SetLink(ctx context.Context, a, b string, up bool) error {
	c.applying.Lock()
	defer c.applying.Unlock()
	c.mu.RLock()
	cur := c.current
	c.mu.RUnlock()
	if cur == nil {
		return errNoConfig
	}
	names := between(cur.config, a, b)
	if len(names) == 0 {
		return fmt.Errorf("there is no link between %q and %q", a, b)
	}
	changed := false
	for _, name := range names {
		if !c.links.set(name, up) {
			continue
		}
		changed = true
		kind, text := "link.enabled", "an operator put the link into service"
		if !up {
			kind, text = "link.disabled", "an operator took the link out of service"
		}
		c.event(view.Event{Severity: view.Warning, Subject: name, Kind: kind, Message: text})
	}
	if changed {
		c.distribute(cur)
	}
	return ctx.Err()
}

// between returns the names of the links between two nodes or ends, sorted.
func between(cfg *config.Config, a, b string) []string {
	is := func(e config.Endpoint, name string) bool { return e.Node == name || e.String() == name }
	var names []string
	for _, l := range cfg.Links {
		if is(l.A, a) && is(l.B, b) || is(l.A, b) && is(l.B, a) {
			names = append(names, l.Name)
		}
	}
	sort.Strings(names)
	return names
}

// recompute sends new routes to the switches.
func (c *Controller) recompute() {
	c.applying.Lock()
	defer c.applying.Unlock()
	c.mu.RLock()
	cur := c.current
	c.mu.RUnlock()
	if cur != nil {
		c.distribute(cur)
	}
}

// distribute computes what all switches should be now. The caller holds applying.
func (c *Controller) distribute(a *applied) {
	for name, w := range c.desire(a.config, a.graph, a.prepared).wants {
		a.devices[name].Want(w)
	}
}

// checkHealth judges links and switches.
func (c *Controller) checkHealth(now time.Time) {
	c.mu.RLock()
	cur := c.current
	c.mu.RUnlock()
	if cur == nil {
		return
	}
	switches := make(map[string]health, len(cur.devices))
	for name, u := range cur.devices {
		switches[name] = health{reachable: u.Status().State != view.Disconnected, attached: u.Attached()}
	}
	c.links.judge(cur.config, switches, now)
}
