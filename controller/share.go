package controller

import (
	"encoding/binary"
	"errors"
	"fmt"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/reconcile"
	"github.com/headgate/headgate/controller/topology"
)

// part is what switches want for one route. It is immutable.
type part struct {
	layer *reconcile.Layer
	usage pipeline.Usage
}

// shape is all that a part depends on.
type shape struct {
	pipe   *pipeline.Pipeline
	to     *topology.Destination
	target config.Target
	ports  string // of the next hops; "" where the part leads to hosts
}

// claims say which route's part has a key in a program, as the group of the route.
type claims map[claim]uint32

type claim struct {
	pipe *pipeline.Pipeline
	key  reconcile.Key
}

// sharing makes parts, each once in one computation of wants. What one leaf does for a host, most of a
// fabric's switches do: a thousand of them with ten thousand hosts share ten thousand entries.
type sharing struct {
	features []feature.Feature
	claims   claims
	parts    map[shape]*part
}

// hosts returns the part that leads to the hosts of a route to another switch.
func (s *sharing) hosts(env *feature.Env, r topology.Route) (*part, error) {
	return s.part(env, r, shape{pipe: env.Pipeline, to: r.Destination}, feature.Router.Hosts)
}

// paths returns the part that leads to the route's next hops.
func (s *sharing) paths(env *feature.Env, r topology.Route) (*part, error) {
	ports := make([]byte, 0, 64)
	for _, hop := range r.NextHops {
		ports = binary.AppendUvarint(ports, uint64(hop.Port))
	}
	return s.part(env, r, shape{env.Pipeline, r.Destination, env.Switch.Target, string(ports)}, feature.Router.Paths)
}

func (s *sharing) part(env *feature.Env, r topology.Route, as shape, ask func(feature.Router, *feature.Env, topology.Route) ([]*p4v1.Entity, error)) (*part, error) {
	if p, ok := s.parts[as]; ok {
		return p, nil
	}
	var all []*p4v1.Entity
	var errs error
	for _, f := range s.features {
		if f, ok := f.(feature.Router); ok {
			list, err := ask(f, env, r)
			if err != nil {
				errs = errors.Join(errs, fmt.Errorf("%s: %w", f.(feature.Feature).Name(), err))
			}
			all = append(all, list...)
		}
	}
	if errs != nil {
		return nil, errs
	}
	layer, err := reconcile.NewLayer(all)
	if err != nil {
		return nil, err
	}
	for i, k := range layer.Keys() {
		c := claim{env.Pipeline, k}
		if by, ok := s.claims[c]; ok && by != r.Group {
			return nil, fmt.Errorf("wanted twice: %s", env.Pipeline.Describe(all[i]))
		}
		s.claims[c] = r.Group
	}
	p := &part{layer, pipeline.UsageOf(all)}
	s.parts[as] = p
	return p, nil
}

// clash says what a switch wants for a route and beside its routes.
func (s *sharing) clash(w *wanted) error {
	var errs error
	for _, k := range w.base.keys {
		if by, ok := s.claims[claim{w.Env.Pipeline, k}]; ok && w.reaches(by) {
			errs = errors.Join(errs, fmt.Errorf("wanted twice: %s", w.Env.Pipeline.Describe(w.base.state.Get(k))))
		}
	}
	return errs
}

// reaches reports whether the switch has a route with a group.
func (w *wanted) reaches(group uint32) bool {
	for i := range w.parts {
		if r := w.routes[i/2]; w.parts[i] != nil && r.Group == group {
			return true
		}
	}
	return false
}
