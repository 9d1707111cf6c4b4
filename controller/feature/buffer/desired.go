package buffer

import (
	"fmt"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tables/buffer"
)

// Desired implements feature.Feature: how PFC frames leave the switch, the policy, and what the
// policy needs.
func (*feat) Desired(env *feature.Env) ([]*p4v1.Entity, error) {
	s := env.Switch
	by, err := means(env)
	switch {
	case err != nil || by == view.ByNothing:
		return nil, err
	case by == view.ByTrafficManager:
		return estimates(env)
	}
	var c feature.EntityList
	p := env.Pipeline
	c.Add(p.Default(ids.TablePFCPortName).Action(ids.ActionSetPFCPortName,
		pipeline.Arg{Name: "src_mac", Value: p4msg.Uint(0)}, pipeline.Arg{Name: "quanta", Value: p4msg.Uint(buffer.DefaultQuanta)}).Entity())
	policy, tables := buffer.Off(), []buffer.Entry(nil)
	h, numbers, on := Headroom(env.Config, s)
	if on {
		if err := ownQueues(env); err != nil {
			return nil, err
		}
		config := buffer.Config{MMU: h, Numbers: numbers, Quanta: Of(s).PauseQuanta}
		for _, port := range env.Graph.Ports(s.Name) {
			config.MAC = append(config.MAC, port.MAC)
		}
		built, err := buffer.Build(config)
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", Of(s).Policy, err)
		}
		policy, tables = built.Policy, built.Tables
		if env.By(obeyCapability) == view.ByTarget {
			obeyed := queuesOf(env.Config, s)
			for c := range obeyed {
				obeyed[c] &^= 1 << priority(s) // PFC frames leave by that queue
			}
			c.Add(obeyed.Entity(), nil)
		}
	}
	for _, port := range env.Graph.Ports(s.Name) {
		c.Add(pipeline.PriorityCloneSession(buffer.Session(port.Number), priority(s), port.Number), nil)
		if !on {
			mac := port.MAC
			c.Add(p.Entry(ids.TablePFCPortName).Exact("egress_port", p4msg.Uint(uint64(port.Number))).Action(ids.ActionSetPFCPortName,
				pipeline.Arg{Name: "src_mac", Value: mac[:]}, pipeline.Arg{Name: "quanta", Value: p4msg.Uint(uint64(Of(s).PauseQuanta))}).Entity())
		}
	}
	for _, t := range tables {
		c.Add(Entity(p, t))
	}
	c.Add(p.Default(ids.TableBufferPolicyName).Call(policy.Name, policy.Params).Entity())
	return c.Result()
}

// priority returns the class of service of PFC frames: they must not wait behind data. PI,
// and so BMv2, takes none but 0.
func priority(s *config.Switch) uint32 {
	if s.Target == config.Embedded {
		return uint32(s.PriorityQueues - 1)
	}
	return 0
}

// Entity returns an entry of package tables/buffer as one of P4Runtime.
func Entity(p *pipeline.Pipeline, t buffer.Entry) (*p4v1.Entity, error) {
	e := p.Entry(t.Table)
	for _, m := range t.Match {
		if m.Prefix == buffer.Exact {
			e.Exact(m.Field, p4msg.Uint(m.Value))
		} else {
			e.LPM(m.Field, p4msg.Uint(m.Value), m.Prefix)
		}
	}
	return e.Call(t.Name, t.Params).Entity()
}
