package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/feature/soze"
	"github.com/headgate/headgate/controller/p4runtime/device"
	"github.com/headgate/headgate/controller/state/history"
	"github.com/headgate/headgate/controller/state/outcome"
	"github.com/headgate/headgate/controller/topology"
)

// Participant is a component besides the switches that a configuration sets. It may refuse a configuration.
type Participant interface {
	// Check returns why the participant refuses a configuration now, or nil; a yamlnode.Fault names the field at
	// fault. It changes nothing.
	Check(*config.Config) error
	// Configure takes a configuration over. It returns a function that restores the earlier state, to be called if a
	// later step of the same apply fails.
	Configure(*config.Config) (undo func(), err error)
}

// check computes the desired state of all switches under a configuration. All faults, including those of the
// participants and of CheckCaller, are one *yamlnode.Error. The caller closes the inputs.
func (c *Controller) check(ctx context.Context, cfg *config.Config) (*inputs, desired, error) {
	in := c.inputs(cfg)
	desired := c.desired(in, in.graph.Routes(c.links.state()), nil)
	f := faults{cfg: cfg}
	for i, s := range cfg.Switches {
		f.add(fmt.Sprintf("switches[%d]", i), fmt.Sprintf("is %q: ", s.Name), desired[s.Name].Err)
	}
	for _, part := range c.opts.Participants {
		f.add("", "", part.Check(cfg))
	}
	if c.opts.CheckCaller != nil {
		f.add("", "", c.opts.CheckCaller(ctx, cfg))
	}
	if err := f.err(); err != nil {
		in.close()
		return nil, nil, err
	}
	return in, desired, nil
}

// Apply parses a configuration and applies it with ApplyConfig. One with faults gives a
// *yamlnode.Error, and nothing is applied.
func (c *Controller) Apply(ctx context.Context, file string, yaml []byte) (uint64, []*pb.SwitchResult, error) {
	var generation uint64
	if outcome.RequestFromContext(ctx).Again(&generation) {
		return generation, c.resultsOf(ctx, generation), nil
	}
	cfg, err := config.Parse(file, yaml, c.opts.Flags, Sections()...)
	if err != nil {
		return 0, nil, err
	}
	return c.ApplyConfig(ctx, cfg)
}

// ApplyConfig makes a configuration the desired one, and waits until every switch that can be reached holds it, but
// no longer than Options.ApplyTimeout. It returns the new generation and one result for each switch, in the
// configuration's order. A configuration that cannot be applied gives a *yamlnode.Error, and nothing is applied.
//
// A switch that a new configuration lacks is no longer controlled and keeps its entries.
func (c *Controller) ApplyConfig(ctx context.Context, cfg *config.Config) (uint64, []*pb.SwitchResult, error) {
	generation, next, err := c.commit(ctx, cfg, c.opts.Save)
	if err != nil {
		return 0, nil, err
	}
	return generation, c.awaitResults(ctx, next), nil
}

// resultsOf returns the switches' results for a generation that is in force, nil for another.
func (c *Controller) resultsOf(ctx context.Context, generation uint64) []*pb.SwitchResult {
	c.mu.RLock()
	cur, is := c.current, c.generation
	c.mu.RUnlock()
	if is != generation {
		return nil
	}
	return c.awaitResults(ctx, cur)
}

// Resume applies the last saved configuration again, before Run. It keeps its generation and is not saved a second
// time. Errors are as for ApplyConfig.
func (c *Controller) Resume(ctx context.Context, cfg *config.Config) error {
	c.mu.Lock()
	c.generation-- // commit adds 1 again
	c.mu.Unlock()
	_, _, err := c.commit(ctx, cfg, nil)
	if err != nil {
		c.mu.Lock()
		c.generation++
		c.mu.Unlock()
	}
	return err
}

// commit makes a configuration the running one. All steps that can fail come before the switches get anything. If a
// step fails, the earlier ones are undone.
func (c *Controller) commit(ctx context.Context, cfg *config.Config, save func(context.Context, *config.Config, uint64) error) (uint64, *applied, error) {
	c.applying.Lock()
	defer c.applying.Unlock()
	c.mu.RLock()
	generation := c.generation + 1
	c.mu.RUnlock()
	if err := history.NoteFromContext(ctx).Check(generation - 1); err != nil {
		return 0, nil, err
	}
	in, desired, err := c.check(ctx, cfg)
	if err != nil {
		return 0, nil, err
	}
	defer in.close()
	f := faults{cfg: cfg}
	for _, r := range c.validate(context.Background(), cfg, in.graph, nil, 0) {
		f.add("", "", r.Refused)
	}
	if err := f.err(); err != nil {
		return 0, nil, err
	}
	fresh, err := c.newUnits(in)
	if err != nil {
		return 0, nil, err
	}
	undo, err := c.configure(cfg)
	if err != nil {
		return 0, nil, err
	}
	defer c.opts.Pending.Begin()()
	if save != nil {
		if err := save(ctx, cfg, generation); err != nil {
			undo()
			return 0, nil, fmt.Errorf("saving the configuration: %w", err)
		}
	}
	c.reads.Resize(cfg.Controller.Comparisons)
	next := &applied{inputs: in, devices: map[string]*unit{}, desired: desired}
	c.routing.Lock()
	c.install(next, fresh, generation)
	for name, d := range desired {
		next.devices[name].SetDesired(d.Desired)
	}
	c.routing.Unlock()
	c.conduct.Configure(judged(cfg, in.graph), soze.FromConfig(cfg).UDPPort)
	if err := c.links.forget(cfg); err != nil {
		c.log.Error("links that are gone may come back out of service", "err", err)
	}
	c.event(&pb.Event{
		Severity: pb.Event_SEVERITY_INFO, Subject: cfg.Name, Kind: "config.applied",
		Message: fmt.Sprintf("generation %d from %s", generation, cfg.File),
	})
	c.routing.Lock()
	defer c.routing.Unlock()
	c.distribute(next) // links may have changed since check
	c.warn(next)
	return generation, next, nil
}

// configure gives a configuration to all participants or to none. It returns the function that undoes
// it.
func (c *Controller) configure(cfg *config.Config) (undo func(), err error) {
	var done []func()
	undo = func() {
		for _, back := range slices.Backward(done) {
			back()
		}
	}
	for _, part := range c.opts.Participants {
		back, err := part.Configure(cfg)
		if err != nil {
			undo()
			if outcome.Tells(err) { // the configuration is not at fault
				return nil, err
			}
			f := faults{cfg: cfg}
			f.add("", "", err)
			return nil, f.err()
		}
		done = append(done, back)
	}
	return undo, nil
}

// newUnits makes devices for the switches whose spec is new or differs from the running one.
func (c *Controller) newUnits(in *inputs) (map[string]*unit, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	fresh := map[string]*unit{}
	f := faults{cfg: in.config}
	for i, s := range in.config.Switches {
		one := in.switches[s.Name]
		sp := specOf(one.env)
		if c.current != nil && c.current.devices[s.Name] != nil && c.current.devices[s.Name].spec == sp {
			continue
		}
		dial, err := c.opts.Dial(s)
		f.add(fmt.Sprintf("switches[%d]", i), "", err)
		fresh[s.Name] = &unit{spec: sp, Device: device.New(device.Options{
			Switch: s, ElectionID: sp.election, Terms: c.opts.Terms, Pipeline: one.env.Pipeline, Features: c.features, Reads: c.reads, Dial: dial,
			TrafficManager: one.driver, TrafficManagerTime: c.opts.ApplyTimeout / 3,
			RetryMin: c.opts.RetryMin, RetryMax: c.opts.RetryMax, Heartbeat: c.opts.Heartbeat,
			Events: c.event, Log: c.log, Ports: func(ports map[uint32]pb.PortStatus_State) { c.links.report(s.Name, ports) },
		})}
	}
	return fresh, f.err()
}

// install replaces the configuration, ends the devices that are not needed any more and
// starts the new ones.
func (c *Controller) install(next *applied, fresh map[string]*unit, generation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range next.config.Switches {
		if u := fresh[s.Name]; u != nil {
			next.devices[s.Name] = u
			next.switches[s.Name].driver = nil // the device closes it
		} else {
			next.devices[s.Name] = c.current.devices[s.Name]
		}
	}
	var before []*unit
	if c.current != nil {
		for name, u := range c.current.devices {
			if next.devices[name] != u && u.cancel != nil {
				u.cancel()
				before = append(before, u)
			}
		}
	}
	c.current, c.generation = next, generation
	for _, u := range next.devices {
		c.start(u, before...)
	}
}

func specOf(env *feature.Env) spec {
	s := env.Switch
	_, manager := s.TrafficManager()
	return spec{
		name: s.Name, deviceID: s.DeviceID, address: s.Address, target: s.Target,
		queues: s.PriorityQueues, tls: s.TLS, election: env.Config.Controller.ElectionID,
		cookie: env.Pipeline.Cookie(), manager: manager, cpuPort: s.CPUPort,
	}
}

// awaitResults collects the results of all switches.
func (c *Controller) awaitResults(ctx context.Context, a *applied) []*pb.SwitchResult {
	ctx, cancel := context.WithTimeout(ctx, c.opts.ApplyTimeout)
	defer cancel()
	results := make([]*pb.SwitchResult, len(a.config.Switches))
	c.mu.RLock()
	running := c.running != nil
	c.mu.RUnlock()
	var wg sync.WaitGroup
	for i, s := range a.config.Switches {
		if !running {
			results[i] = &pb.SwitchResult{Name: s.Name, Error: "the controller does not run yet"}
			continue
		}
		wg.Go(func() { results[i] = a.devices[s.Name].Wait(ctx) })
	}
	wg.Wait()
	return results
}

// SetLink takes every link between two nodes, or by an end such as "leaf1:3", out of
// service, or back into it; an error that wraps topology.ErrNoLink when there is none. It
// returns once the routes are on their way to the switches. Links that an operator took out
// stay out over new configurations that still have them.
func (c *Controller) SetLink(ctx context.Context, a, b string, up bool) error {
	c.applying.Lock()
	defer c.applying.Unlock()
	cur := c.snapshot()
	graph := &topology.Graph{}
	if cur != nil {
		graph = cur.graph
	}
	names, err := graph.Between(a, b)
	if err != nil {
		return err
	}
	by := outcome.RequestFromContext(ctx)
	if by.Again(nil) {
		return nil
	}
	changed, err := c.links.set(names, up, by.DoneWith(nil))
	if err != nil {
		return err
	}
	for _, name := range changed {
		kind, text := "link.enabled", "an operator put the link into service"
		if !up {
			kind, text = "link.disabled", "an operator took the link out of service"
		}
		c.event(&pb.Event{Severity: pb.Event_SEVERITY_WARNING, Subject: name, Kind: kind, Message: text})
	}
	if len(changed) > 0 {
		c.recompute()
	}
	return nil
}

// recompute sends new routes to the switches.
func (c *Controller) recompute() {
	c.routing.Lock()
	defer c.routing.Unlock()
	cur := c.snapshot()
	if cur != nil {
		c.distribute(cur)
	}
}

// distribute sends the new desired state to the switches whose routes changed. The caller holds
// routing.
func (c *Controller) distribute(a *applied) {
	last := a.desired
	routes := a.graph.Routes(c.links.state())
	a.desired = c.desired(a.inputs, routes, last)
	a.routes.Store(routes)
	changed := false
	for name, d := range a.desired {
		if d != last[name] {
			a.devices[name].SetDesired(d.Desired)
			changed = true
		}
	}
	if changed {
		c.warn(a)
	}
}

// warn reports when a risk of the routes around links out of service begins and ends. These routes are still used:
// a fabric that may deadlock is better than none. The caller holds routing.
func (c *Controller) warn(a *applied) {
	state := c.links.state()
	for _, avoided := range []map[string]bool{state.SuspectLinks, state.HeldLinks} {
		maps.Copy(state.DownLinks, avoided)
	}
	var texts []string
	for _, r := range c.validate(context.Background(), a.config, a.graph, state.DownLinks, 0) {
		texts = append(texts, r.Text)
	}
	risk := strings.Join(texts, "; ")
	switch {
	case risk == c.risk:
	case risk != "":
		c.event(&pb.Event{Severity: pb.Event_SEVERITY_WARNING, Subject: a.config.Name, Kind: "routes.risk", Message: risk})
	default:
		c.event(&pb.Event{Severity: pb.Event_SEVERITY_INFO, Subject: a.config.Name, Kind: "routes.risk_over", Message: "no longer: " + c.risk})
	}
	c.risk = risk
}

// checkHealth evaluates links and switches, and sends new routes if their state has changed.
func (c *Controller) checkHealth(now time.Time) {
	cur := c.snapshot()
	if cur == nil {
		return
	}
	switches := func(yield func(string, device.Health) bool) {
		for name, u := range cur.devices {
			if !yield(name, u.Health()) {
				return
			}
		}
	}
	if c.links.evaluate(cur.config, switches, now) {
		c.recompute()
	}
}
