package controller

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

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

// prepared is what of a configuration's wants does not depend on the state of links, by
// switch. It is immutable but for claims.
type prepared struct {
	config          *config.Config
	graph           *topology.Graph
	pipes           map[string]*pipeline.Pipeline
	trafficManagers map[string]*trafficmanager.Config // nil for switches without one
	errs            map[string]error                  // why a switch has no pipeline or no settings
	claims          claims                            // of the wants; whoever computes these owns them
}

func (c *Controller) prepare(cfg *config.Config) *prepared {
	p := &prepared{
		config: cfg, graph: topology.New(cfg),
		pipes: map[string]*pipeline.Pipeline{}, trafficManagers: map[string]*trafficmanager.Config{}, errs: map[string]error{},
		claims: claims{},
	}
	for i := range cfg.Switches {
		s := &cfg.Switches[i]
		pipe, err := c.opts.Pipelines(cfg, *s)
		if err == nil {
			p.pipes[s.Name] = pipe
			if _, managed := s.TrafficManager(); managed != "" {
				p.trafficManagers[s.Name], err = c.shape(&feature.Env{Config: cfg, Graph: p.graph, Switch: s, Pipeline: pipe})
			}
		}
		p.errs[s.Name] = err
	}
	return p
}

// shape asks the features what the traffic manager of a switch should do.
func (c *Controller) shape(env *feature.Env) (*trafficmanager.Config, error) {
	s := env.Switch
	m := &trafficmanager.Config{Queues: s.PriorityQueues, PacketSize: s.PacketSize}
	for _, p := range env.Graph.Ports(s.Name) {
		m.Ports = append(m.Ports, trafficmanager.Port{Number: p.Number, Rate: p.Rate})
	}
	for _, f := range c.features {
		shaper, ok := f.(feature.Shaper)
		if !ok {
			continue
		}
		if err := shaper.Shape(env, m); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	d, err := c.opts.TrafficManagers(*s)
	if err != nil {
		return nil, err
	}
	if err := d.Check(m); err != nil {
		return nil, c.unshaped(env, err)
	}
	return m, nil
}

// unshaped turns what a traffic manager cannot do into a fault of the field that asks for it.
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
		if shaper, ok := f.(feature.Shaper); ok {
			field = cmp.Or(shaper.ShapedBy(env, fault.Field), field)
		}
	}
	text := fmt.Sprintf("makes %s %s for the traffic manager of the switch %q, want %s", fault.Field, fault.Value, s.Name, fault.Allowed)
	if fault.Because != "" {
		text += "; " + fault.Because
	}
	return yamlnode.Fault{Field: field, Text: text}
}

// wants is what all switches should hold in a state of links. It is immutable.
type wants struct {
	routes *topology.Routes
	by     map[string]*wanted // by switch
}

// wanted is what a switch should hold and what that was computed from. It is immutable.
type wanted struct {
	device.Want
	routes []topology.Route
	base   *base
	parts  []*part // two of each route to another switch, nil where it has no next hops
}

// base is what a switch wants that stays when next hops change.
type base struct {
	state *reconcile.State
	keys  []reconcile.Key // of state
	usage pipeline.Usage
	errs  error
}

// wants computes what all switches should hold as links are now. last is what it returned before for
// the same configuration, or nil: a switch whose routes did not change keeps its own, and the others
// what is for routes that did not change.
func (c *Controller) wants(p *prepared, last *wants) *wants {
	next := &wants{by: make(map[string]*wanted, len(p.config.Switches))}
	if last == nil {
		last = &wants{}
	}
	next.routes = p.graph.Routes(c.links.state(), last.routes)
	shared := &sharing{features: c.features, claims: p.claims, parts: map[shape]*part{}}
	for i := range p.config.Switches {
		s := &p.config.Switches[i]
		was, routes := last.by[s.Name], next.routes.Of(s.Name)
		if was != nil && same(was.routes, routes) {
			next.by[s.Name] = was
			continue
		}
		env := &feature.Env{Config: p.config, Graph: p.graph, Switch: s, Pipeline: p.pipes[s.Name]}
		if was != nil {
			env = was.Env
		}
		w := &wanted{Want: device.Want{Env: env, Err: p.errs[s.Name]}, routes: routes}
		next.by[s.Name] = w
		if w.Err != nil {
			continue
		}
		if w.Err = c.complete(w, was, shared); w.Err == nil {
			w.TrafficManager = p.trafficManagers[s.Name]
		}
	}
	return next
}

// same reports whether two lists of routes are one, as those between which nothing changed are.
func same(a, b []topology.Route) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// complete computes what a switch should hold. was is what it was told last, or nil.
func (c *Controller) complete(w, was *wanted, shared *sharing) error {
	remote, own := w.routes[:w.Env.Graph.Leaves()], w.routes[w.Env.Graph.Leaves():]
	if was == nil || was.base == nil {
		was = &wanted{routes: make([]topology.Route, len(w.routes)), parts: make([]*part, 2*len(remote))}
	}
	if w.base = was.base; w.base == nil || !slices.EqualFunc(was.routes[len(remote):], own, topology.Route.Same) {
		w.base = c.base(w.Env, own)
	}
	errs, usage := w.base.errs, slices.Clone(w.base.usage)
	w.parts = make([]*part, 2*len(remote))
	layers := make([]*reconcile.Layer, len(w.parts))
	for i, r := range remote {
		if len(r.NextHops) == 0 {
			continue
		}
		hosts, paths := was.parts[2*i], was.parts[2*i+1]
		var err error
		if hosts == nil || was.routes[i].Destination != r.Destination {
			hosts, err = shared.hosts(w.Env, r)
			errs = errors.Join(errs, err)
		}
		if paths == nil || !was.routes[i].Same(r) {
			paths, err = shared.paths(w.Env, r)
			errs = errors.Join(errs, err)
		}
		for n, x := range []*part{hosts, paths} {
			w.parts[2*i+n] = x
			if x != nil {
				layers[2*i+n] = x.layer
				usage.Add(x.usage)
			}
		}
	}
	errs = errors.Join(errs, shared.clash(w), c.overflows(usage, w.Env))
	if errs == nil {
		w.State, w.Usage = w.base.state.With(layers), usage
	}
	return errs
}

// base asks the features for what stays when next hops change; own are the routes to the hosts of
// the switch.
func (c *Controller) base(env *feature.Env, own []topology.Route) *base {
	b := &base{state: &reconcile.State{}}
	for _, f := range c.features {
		list, err := f.Desired(env)
		if r, ok := f.(feature.Router); ok {
			for i := 0; i < len(own) && err == nil; i++ {
				if len(own[i].NextHops) > 0 {
					var hosts []*p4v1.Entity
					hosts, err = r.Hosts(env, own[i])
					list = append(list, hosts...)
				}
			}
		}
		if err != nil {
			b.errs = errors.Join(b.errs, fmt.Errorf("%s: %w", f.Name(), err))
			continue
		}
		b.usage.Add(pipeline.UsageOf(list))
		for _, e := range list {
			if err := b.state.Add(e); err != nil {
				b.errs = errors.Join(b.errs, twice(f, env, err))
			}
		}
	}
	b.keys = b.state.Keys()
	return b
}

// twice names the feature that wants what another wants already.
func twice(f feature.Feature, env *feature.Env, err error) error {
	if d := (*reconcile.DuplicateError)(nil); errors.As(err, &d) {
		return fmt.Errorf("%s: wanted twice: %s", f.Name(), env.Pipeline.Describe(d.Entity))
	}
	return fmt.Errorf("%s: %w", f.Name(), err)
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
		for _, p := range f.Parts() {
			if p.FilledBy != "" && (slices.Contains(p.Objects.Tables, object) || slices.Contains(p.Objects.Profiles, object)) {
				return p.FilledBy
			}
		}
	}
	return env.Config.Path(env.Switch)
}

// maxFaults bounds a report: what is wrong with one switch is often wrong with hundreds.
const maxFaults = 20

// faults collects what is wrong with a configuration.
type faults struct {
	cfg  *config.Config
	list []yamlnode.Fault
}

// add takes errors apart that were joined: those that are a yamlnode.Fault stand at their own
// field, whatever is wrapped around them, the others at where.
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

// leaves takes an error apart into those that were joined; a yamlnode.Fault loses what is wrapped
// around it.
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
