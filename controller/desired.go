package controller

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/device"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/reconcile"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/units"
)

// inputs holds the per-switch inputs that link state does not affect. It is immutable except for the
// drivers.
type inputs struct {
	config   *config.Config
	graph    *topology.Graph
	switches map[string]*switchInputs
}

// switchInputs is inputs of one switch.
type switchInputs struct {
	env   *feature.Env
	items []*reconcile.Item // desired entities except those of routes
	errs  error             // settings that the features cannot make
	// trafficManager is the desired state of the traffic manager; nil for a switch without one.
	trafficManager *trafficmanager.Config
	// driver is the traffic manager's, until a device takes it.
	driver trafficmanager.Driver
	fault  error // why the switch has no pipeline or no traffic manager's settings
}

// inputs asks the features. The caller closes it.
func (c *Controller) inputs(cfg *config.Config) *inputs {
	in := &inputs{config: cfg, graph: topology.New(cfg), switches: make(map[string]*switchInputs, len(cfg.Switches))}
	for i := range cfg.Switches {
		s := &cfg.Switches[i]
		one := &switchInputs{env: &feature.Env{Config: cfg, Graph: in.graph, Switch: s}}
		in.switches[s.Name] = one
		if one.env.Pipeline, one.fault = c.opts.Pipelines(cfg, *s); one.fault != nil {
			continue
		}
		if _, managed := s.TrafficManager(); managed != "" {
			if one.fault = c.shape(one); one.fault != nil {
				continue
			}
		}
		c.ask(one)
	}
	return in
}

// close closes the drivers that no device took.
func (in *inputs) close() {
	for _, one := range in.switches {
		if one.driver != nil {
			_ = one.driver.Close()
			one.driver = nil
		}
	}
}

// ask asks the features for a switch's entities besides its routes.
func (c *Controller) ask(in *switchInputs) {
	state := &reconcile.State{}
	for _, f := range c.features {
		list, err := f.Desired(in.env)
		if err != nil {
			in.errs = errors.Join(in.errs, fmt.Errorf("%s: %w", f.Name, err))
			continue
		}
		for _, e := range list {
			if err := state.Add(e); err != nil {
				in.errs = errors.Join(in.errs, twice(f, in.env, err))
			}
		}
	}
	in.items = state.Items()
}

// shape collects the features' settings of a switch's traffic manager.
func (c *Controller) shape(in *switchInputs) (err error) {
	env, s := in.env, in.env.Switch
	m := &trafficmanager.Config{Queues: s.PriorityQueues, PacketSize: s.PacketSize}
	for _, p := range env.Graph.Ports(s.Name) {
		m.Ports = append(m.Ports, trafficmanager.Port{Number: p.Number, Rate: p.Rate})
	}
	for _, f := range c.features {
		if shape := f.Shape; shape != nil {
			if err := shape(env, m); err != nil {
				return fmt.Errorf("%s: %w", f.Name, err)
			}
		}
	}
	if in.driver, err = c.opts.TrafficManagers(*s); err != nil {
		return err
	}
	if err := in.driver.Check(m); err != nil {
		return c.unshaped(env, err)
	}
	in.trafficManager = m
	return nil
}

// unshaped turns a traffic manager's refusal into a fault of the field that asks for it.
func (c *Controller) unshaped(env *feature.Env, err error) error {
	s := env.Switch
	var fault *units.FieldError
	if !errors.As(err, &fault) {
		key, _ := s.TrafficManager()
		return yamlnode.Fault{
			Field: env.Config.Path(s) + "." + key,
			Text:  fmt.Sprintf("leads to the traffic manager of the switch %q, which cannot do what the file asks for: %v", s.Name, err),
		}
	}
	field := env.Config.Path(s)
	for _, f := range c.features {
		if by := f.ShapedBy; by != nil {
			field = cmp.Or(by(env, fault.Field), field)
		}
	}
	text := fmt.Sprintf("makes %s %s for the traffic manager of the switch %q, want %s", fault.Field, fault.Value, s.Name, fault.Allowed)
	if fault.Because != "" {
		text += "; " + fault.Because
	}
	return yamlnode.Fault{Field: field, Text: text}
}

// desired is the desired state of all switches for one state of the links, by switch. It is immutable.
type desired map[string]*switchDesired

// switchDesired is a switch's desired state with the routes that it was computed from. It is
// immutable.
type switchDesired struct {
	device.Desired
	routes  []topology.Route
	entries [][]*reconcile.Item // entries of each route, shared with other switches; nil without next hops
}

// routeKey is all that the entries of a route depend on.
type routeKey struct {
	pipe   *pipeline.Pipeline
	target config.Target
	to     *topology.Destination
	ports  string // ports of the next hops
}

// desired computes the desired state of all switches for some routes. last is the result for the routes before
// and the same configuration, or nil: a switch whose routes did not change keeps its own, and the others
// the entries of routes that did not change. Switches share the entries of equal routes.
func (c *Controller) desired(in *inputs, all *topology.Routes, last desired) desired {
	next := make(desired, len(in.switches))
	cache := map[routeKey][]*reconcile.Item{}
	for name, one := range in.switches {
		was, routes := last[name], all.ForSwitch(name)
		if was != nil && slices.EqualFunc(was.routes, routes, topology.Route.Same) {
			next[name] = was
			continue
		}
		d := &switchDesired{routes: routes, Desired: device.Desired{Env: one.env, Err: one.fault}}
		next[name] = d
		if d.Err == nil {
			d.Err = c.complete(d, was, one, cache)
		}
	}
	return next
}

// complete computes the desired state of a switch. was is the last desired state sent to it, or nil.
func (c *Controller) complete(d, was *switchDesired, in *switchInputs, cache map[routeKey][]*reconcile.Item) error {
	errs := in.errs
	d.entries = make([][]*reconcile.Item, len(d.routes))
	n := len(in.items)
	for i, r := range d.routes {
		if len(r.NextHops) == 0 {
			continue
		}
		if was != nil && was.entries != nil && was.routes[i].Same(r) {
			d.entries[i] = was.entries[i]
		}
		if d.entries[i] == nil {
			var err error
			d.entries[i], err = c.route(in.env, r, cache)
			errs = errors.Join(errs, err)
		}
		n += len(d.entries[i])
	}
	items := append(make([]*reconcile.Item, 0, n), in.items...)
	for _, e := range d.entries {
		items = append(items, e...)
	}
	state := reconcile.NewState(items)
	errs = errors.Join(errs, c.overflows(pipeline.UsageOf(state.All()), in.env))
	if was == nil {
		if twice := duplicate(items, len(in.items)); twice != nil {
			errs = errors.Join(errs, fmt.Errorf("wanted twice: %s", in.env.Pipeline.Describe(twice.Entity)))
		}
	}
	if errs == nil {
		d.State, d.TrafficManager = state, in.trafficManager
	}
	return errs
}

// route asks the feature that routes for the entries of a route, once for all switches that share them.
func (c *Controller) route(env *feature.Env, r topology.Route, cache map[routeKey][]*reconcile.Item) (items []*reconcile.Item, err error) {
	ports := make([]byte, 0, 64)
	for _, hop := range r.NextHops {
		ports = binary.AppendUvarint(ports, uint64(hop.Port))
	}
	key := routeKey{env.Pipeline, env.Switch.Target, r.Destination, string(ports)}
	if items = cache[key]; items != nil {
		return items, nil
	}
	for _, f := range c.features {
		if f.Route == nil {
			continue
		}
		list, err := f.Route(env, r)
		if err == nil {
			items, err = reconcile.NewItems(list)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	cache[key] = items
	return items, nil
}

// duplicate returns the first item of a route, from index n on, whose key an item before n has; nil if there is none.
// Items of routes have distinct keys among themselves.
func duplicate(items []*reconcile.Item, n int) *reconcile.Item {
	before := make(map[reconcile.Key]struct{}, n)
	for _, it := range items[:n] {
		before[it.Key] = struct{}{}
	}
	for _, it := range items[n:] {
		if _, twice := before[it.Key]; twice {
			return it
		}
	}
	return nil
}

// twice names the second feature that wants the same entry.
func twice(f *feature.Feature, env *feature.Env, err error) error {
	if d := (*reconcile.DuplicateError)(nil); errors.As(err, &d) {
		return fmt.Errorf("%s: wanted twice: %s", f.Name, env.Pipeline.Describe(d.Entity))
	}
	return fmt.Errorf("%s: %w", f.Name, err)
}

// overflows says which objects of the program are too small.
func (c *Controller) overflows(u pipeline.Usage, env *feature.Env) error {
	var errs error
	for _, o := range env.Pipeline.Overflows(u) {
		errs = errors.Join(errs, yamlnode.Fault{
			Field: c.filledBy(o.Object, env), Text: fmt.Sprintf("makes the switch %q want %s", env.Switch.Name, o.Text),
		})
	}
	return errs
}

// filledBy returns the field of the configuration that an object of the program is filled by.
func (c *Controller) filledBy(object string, env *feature.Env) string {
	for _, f := range c.features {
		for _, p := range f.Capabilities {
			if p.FilledBy != "" && (slices.Contains(p.Objects.Tables, object) || slices.Contains(p.Objects.Profiles, object)) {
				return p.FilledBy
			}
		}
	}
	return env.Config.Path(env.Switch)
}

// maxFaults bounds a report, because hundreds of switches often have the same fault.
const maxFaults = 20

// faults collects a configuration's faults.
type faults struct {
	cfg  *config.Config
	list []yamlnode.Fault
}

// add splits joined errors. Each yamlnode.Fault, even if wrapped, is a fault of its own field; every other error is a
// fault of where.
func (f *faults) add(where, prefix string, err error) {
	for _, err := range leaves(err) {
		fault, ok := err.(yamlnode.Fault)
		if !ok {
			fault = yamlnode.Fault{Field: where, Text: prefix + err.Error()}
		}
		fault.Line = f.cfg.Line(fault.Field)
		f.list = append(f.list, fault)
	}
}

// err returns a *yamlnode.Error, nil when nothing was added.
func (f *faults) err() error { return yamlnode.NewError(f.cfg.File, f.list, maxFaults) }

// leaves splits a joined error. A yamlnode.Fault loses the errors wrapped around it.
func leaves(err error) []error {
	var fault yamlnode.Fault
	switch e := err.(type) {
	case nil:
		return nil
	case interface{ Unwrap() []error }:
		var list []error
		for _, inner := range e.Unwrap() {
			list = append(list, leaves(inner)...)
		}
		return list
	case interface{ Unwrap() error }:
		if errors.As(err, &fault) {
			return leaves(e.Unwrap())
		}
	}
	return []error{err}
}
