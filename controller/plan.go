package controller

import (
	"context"
	"slices"
	"strings"
	"sync"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/device"
	"github.com/headgate/headgate/controller/p4runtime/session"
	"github.com/headgate/headgate/controller/topology"
)

// Planner is a participant that can say what a configuration would change with it.
type Planner interface {
	Changes(*config.Config) []*pb.Change
}

// Plan returns what Apply would write to each switch, and changes nothing. Changes besides the switches (keys of the
// configuration, budgets, parameters that hosts must share) are the controller's changes. The notes report what can
// go wrong in the fabric as a whole, now and, if failures is more than 0, while up to that many links have failed. A
// configuration with faults gives a *yamlnode.Error.
func (c *Controller) Plan(ctx context.Context, file string, yaml []byte, failures int) (*pb.PlanConfigResponse, error) {
	cfg, err := config.Parse(file, yaml, c.opts.Flags, Sections()...)
	if err != nil {
		return nil, err
	}
	in, desired, err := c.check(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer in.close()
	plans := make([]*pb.SwitchPlan, len(cfg.Switches))
	var wg sync.WaitGroup
	for i, s := range cfg.Switches {
		wg.Go(func() {
			release, err := c.reads.Acquire(ctx)
			if err != nil {
				plans[i] = &pb.SwitchPlan{Name: s.Name, Unreachable: err.Error()}
				return
			}
			defer release()
			plans[i] = c.planOne(ctx, s, in.switches[s.Name], desired[s.Name].Desired)
		})
	}
	wg.Wait()
	for i, s := range cfg.Switches {
		plans[i].Notes = c.advice(in.switches[s.Name].env)
	}
	out := &pb.PlanConfigResponse{Switches: plans, Controller: c.ownChanges(cfg), Notes: c.notes(ctx, cfg, in.graph, failures)}
	for _, part := range c.opts.Participants {
		if part, ok := part.(Planner); ok {
			out.Controller = append(out.Controller, part.Changes(cfg)...)
		}
	}
	for _, p := range append(plans, &pb.SwitchPlan{Changes: out.GetController()}) {
		for _, change := range p.GetChanges() {
			change.Text = change.Line()
		}
	}
	pb.Clean(out)
	return out, nil
}

// ownChanges returns the changes of keys, and their effects beside the switches.
func (c *Controller) ownChanges(cfg *config.Config) []*pb.Change {
	keys, now := map[string]string{}, c.Config()
	var parameters map[string]string
	if now != nil {
		keys, parameters = now.Values(Sections()...), parametersByName(c.hostParameters(now))
	}
	list := slices.DeleteFunc(pb.Diff("configuration", keys, cfg.Values(Sections()...)), func(v *pb.Change) bool {
		return slices.ContainsFunc(c.opts.Fixed, func(key string) bool { return v.Key == key || strings.HasPrefix(v.Key, key+".") })
	})
	list = append(list, pb.Diff("host parameter", parameters, parametersByName(c.hostParameters(cfg)))...)
	disabled, kept := c.links.disabled(), map[string]string{}
	for _, l := range cfg.Links {
		if state, ok := disabled[l.Name]; ok {
			kept[l.Name] = state
		}
	}
	return append(list, pb.Diff("link", disabled, kept)...)
}

func parametersByName(list []*pb.HostParameter) map[string]string {
	by := map[string]string{}
	for _, p := range list {
		by[strings.TrimSpace(p.Law+" "+p.Name)] = p.Value
	}
	return by
}

// notes returns what can go wrong with a configuration in the fabric as a whole: reasons for which Apply would refuse
// it, and effects of links that an operator took out of service.
func (c *Controller) notes(ctx context.Context, cfg *config.Config, g *topology.Graph, failures int) (notes []string) {
	whole := c.validate(ctx, cfg, g, nil, failures)
	for _, r := range whole {
		if r.Refused != nil {
			r.Text = "apply refuses this: " + r.Refused.Error()
		}
		notes = append(notes, r.Text)
	}
	for _, r := range c.validate(ctx, cfg, g, c.links.state().DownLinks, 0) {
		if !slices.ContainsFunc(whole, func(w feature.Risk) bool { return w.Text == r.Text }) {
			notes = append(notes, "with the links that are out of service now: "+r.Text)
		}
	}
	return notes
}

// validate asks the features.
func (c *Controller) validate(ctx context.Context, cfg *config.Config, g *topology.Graph, down map[string]bool, failures int) (risks []feature.Risk) {
	for _, f := range c.features {
		if validate := f.Validate; validate != nil {
			risks = append(risks, validate(ctx, cfg, g, down, failures)...)
		}
	}
	return risks
}

// advice returns the features' warnings about a configuration on a switch.
func (c *Controller) advice(env *feature.Env) []string {
	var running *config.Switch
	if cfg := c.Config(); cfg != nil {
		running = cfg.Switch(env.Switch.Name)
	}
	var notes []string
	for _, f := range c.features {
		if advise := f.Advise; advise != nil {
			notes = append(notes, advise(env, running)...)
		}
	}
	return notes
}

// planOne uses the session if there is one, else a connection of its own: a read does not need to be primary.
func (c *Controller) planOne(ctx context.Context, s config.Switch, in *switchInputs, want device.Desired) *pb.SwitchPlan {
	c.mu.RLock()
	var u *unit
	if c.current != nil {
		u = c.current.devices[s.Name]
	}
	attached := u != nil && u.started && u.spec == specOf(in.env)
	c.mu.RUnlock()
	if attached {
		return u.Plan(ctx, want)
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.ApplyTimeout)
	defer cancel()
	var client *session.Client
	dial, err := c.opts.Dial(s)
	if err == nil {
		var closeClient func() error
		if client, closeClient, err = session.Dial(s.Address, s.DeviceID, dial...); err == nil {
			defer closeClient()
		}
	}
	plan := device.PlanOf(ctx, s.Name, client, err, in.env.Pipeline, want.State, feature.Externs(c.features, &s)...)
	if err == nil && in.driver != nil {
		device.PlanTrafficManager(ctx, plan, in.driver, want.TrafficManager)
	}
	return plan
}
