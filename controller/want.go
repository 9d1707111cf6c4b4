package controller

import (
	"errors"
	"fmt"
	"strings"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/device"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/controller/reconcile"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

// prepared is what of a configuration's wants does not depend on the state of links, by
// switch. It is immutable.
type prepared struct {
	pipes    map[string]*pipeline.Pipeline
	managers map[string]*trafficmanager.Settings // nil for switches without one
	errs     map[string]error                    // why a switch has no pipeline or no settings
}

func (c *Controller) prepare(cfg *config.Config, graph *topology.Graph) *prepared {
	p := &prepared{
		pipes: map[string]*pipeline.Pipeline{}, managers: map[string]*trafficmanager.Settings{}, errs: map[string]error{},
	}
	for i := range cfg.Switches {
		s := &cfg.Switches[i]
		pipe, err := c.opts.Pipelines(cfg, *s)
		if err == nil {
			p.pipes[s.Name] = pipe
			if s.BFRuntime != "" {
				p.managers[s.Name], err = c.shape(&feature.Env{Config: cfg, Graph: graph, Pipeline: pipe}, s)
			}
		}
		p.errs[s.Name] = err
	}
	return p
}

// shape asks the features what the traffic manager of a switch should do.
func (c *Controller) shape(env *feature.Env, s *config.Switch) (*trafficmanager.Settings, error) {
	m := trafficmanager.Config{Chip: s.Target.Chip(), Queues: s.PriorityQueues, Bridged: bridged}
	for _, p := range env.Graph.Ports(s.Name) {
		rate := s.Port(p.Number).Rate
		if l, ok := env.Graph.FindLink(p.Link); ok && rate == 0 {
			rate = l.Rate
		}
		m.Ports = append(m.Ports, trafficmanager.Port{Number: p.Number, Rate: rate})
	}
	for _, f := range c.features {
		shaper, ok := f.(feature.Shaper)
		if !ok {
			continue
		}
		if err := shaper.Shape(env, s.Name, &m); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	settings, err := trafficmanager.Shape(m)
	if err != nil {
		return nil, unshaped(env, s, err)
	}
	return settings, nil
}

// bridged bounds what the program puts before a frame for its way through the buffer:
// bridged_t of p4src/tna, whose fields the compiler arranges as it likes.
const bridged = 16 * units.Byte

// unshaped turns what a traffic manager cannot do into a fault of the field that asks for it.
func unshaped(env *feature.Env, s *config.Switch, err error) error {
	var fault *headroom.FieldError
	if !errors.As(err, &fault) {
		return &feature.Refused{
			Field: env.Path(s) + ".bf_runtime",
			Text:  fmt.Sprintf("leads to the traffic manager of the switch %q, which cannot do what the file asks for: %v", s.Name, err),
		}
	}
	field := fault.Field
	switch {
	case field == "buffer":
		field = env.Config.BufferField(s, "size")
	case strings.HasPrefix(field, "queue_limits["):
		field = "qos.queue_limit"
	case strings.HasPrefix(field, "ports["):
		field = env.Path(s)
	case strings.HasPrefix(field, "max_qd_sample"):
		field = "scale"
	default:
		field = env.Config.BufferField(s, field)
	}
	text := fmt.Sprintf("makes %s %s for the traffic manager of the switch %q, want %s", fault.Field, fault.Value, s.Name, fault.Allowed)
	if fault.Because != "" {
		text += "; " + fault.Because
	}
	return &feature.Refused{Field: field, Text: text}
}

// desire is what a configuration wants of every switch.
type desire struct {
	config   *config.Config
	prepared *prepared
	wants    map[string]device.Want
}

// desire computes the wants of all switches.
func (c *Controller) desire(cfg *config.Config, graph *topology.Graph, p *prepared) desire {
	routes := graph.Routes(c.links.state())
	d := desire{config: cfg, prepared: p, wants: map[string]device.Want{}}
	for _, s := range cfg.Switches {
		env := &feature.Env{Config: cfg, Graph: graph, Pipeline: p.pipes[s.Name], Routes: routes}
		d.wants[s.Name] = c.want(env, s.Name, p)
	}
	return d
}

func (c *Controller) want(env *feature.Env, sw string, p *prepared) device.Want {
	if err := p.errs[sw]; err != nil {
		return device.Want{Env: env, Err: err}
	}
	state := &reconcile.State{}
	var errs error
	for _, f := range c.features {
		list, err := f.Desired(env, sw)
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("%s: %w", f.Name(), err))
			continue
		}
		for _, e := range list {
			if err := state.Add(e); err != nil {
				return device.Want{Env: env, Err: fmt.Errorf("%s: wanted twice: %s", f.Name(), env.Pipeline.Describe(e))}
			}
		}
	}
	if errs != nil {
		return device.Want{Env: env, Err: errs}
	}
	return device.Want{Env: env, State: state, Manager: p.managers[sw]}
}

// check turns what features find impossible into faults of the configuration: those of a
// field stand at the field, the others at their switch.
func (d desire) check(file string) error {
	var list []view.Fault
	for i, s := range d.config.Switches {
		for _, err := range leaves(d.wants[s.Name].Err) {
			fault := view.Fault{Field: fmt.Sprintf("switches[%d]", i), Text: fmt.Sprintf("is %q: %v", s.Name, err)}
			if r, ok := err.(*feature.Refused); ok {
				fault = view.Fault{Line: d.config.Line(r.Field), Field: r.Field, Text: r.Text}
			}
			list = append(list, fault)
		}
	}
	if len(list) > 0 {
		return &config.Error{File: file, List: list}
	}
	return nil
}

// leaves takes an error apart into those that were joined; a *feature.Refused loses what is
// wrapped around it.
func leaves(err error) []error {
	var refused *feature.Refused
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
		if errors.As(err, &refused) {
			return leaves(e.Unwrap())
		}
	}
	return []error{err}
}
