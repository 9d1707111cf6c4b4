// Package qos is the feature that sorts packets into classes and queues, limits the queues
// and marks packets by RED.
package qos

import (
	"fmt"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tables/red"
)

type qos struct{}

// New returns the feature; it has no loop.
func New(feature.Hub) feature.Feature { return qos{} }

// Name implements feature.Feature.
func (qos) Name() string { return "qos" }

// Attach implements feature.Feature.
func (qos) Attach(*feature.Env, feature.Switch) feature.Loop { return nil }

// Desired implements feature.Feature.
func (qos) Desired(env *feature.Env, sw string) ([]*p4v1.Entity, error) {
	var c feature.Collect
	s := env.Config.Switch(sw)
	if s == nil {
		return nil, fmt.Errorf("there is no switch %q", sw)
	}
	classes(&c, env.Pipeline, env.Config.QoS.Classes)
	limits(&c, env.Pipeline, env.Config.QoS, s)
	for _, e := range env.Config.QoS.ECN {
		marks(&c, env.Pipeline, e)
	}
	return c.Result()
}

func arg(name string, v uint64) pipeline.Arg {
	return pipeline.Arg{Name: name, Value: pipeline.Uint(v)}
}

// classes leaves out what the default does anyway, except that an entry for it costs
// nothing and shows the operator what was written.
func classes(c *feature.Collect, p *pipeline.Pipeline, list []config.Class) {
	c.Add(p.Default(ids.TableDSCPToClassName).Action(ids.ActionSetClassName, arg("class", 0), arg("queue", 0)).Entity())
	for _, k := range list {
		c.Add(p.Entry(ids.TableDSCPToClassName).Exact("dscp", pipeline.Uint(uint64(k.DSCP))).
			Action(ids.ActionSetClassName, arg("class", uint64(k.Class)), arg("queue", uint64(k.Queue))).Entity())
	}
}

// limits states the fabric's limit as the default, and entries for ports that differ.
func limits(c *feature.Collect, p *pipeline.Pipeline, q config.QoS, s *config.Switch) {
	c.Add(p.Default(ids.TableQueueLimitName).Action(ids.ActionSetQueueLimitName, arg("bytes", uint64(q.QueueLimit))).Entity())
	for _, port := range s.Ports {
		if port.QueueLimit == 0 || port.QueueLimit == q.QueueLimit {
			continue
		}
		for queue := range s.PriorityQueues {
			c.Add(p.Entry(ids.TableQueueLimitName).
				Exact("egress_port", pipeline.Uint(uint64(port.Number))).Exact("queue", pipeline.Uint(uint64(queue))).
				Action(ids.ActionSetQueueLimitName, arg("bytes", uint64(port.QueueLimit))).Entity())
		}
	}
}

// marks turns a RED curve into ranges of depth. They do not overlap, so their priority,
// which the table demands, is always 1.
func marks(c *feature.Collect, p *pipeline.Pipeline, e config.ECN) {
	entries, err := red.Entries(red.Config{Kmin: e.KMin, Kmax: e.KMax, Pmax: e.PMax}, red.DefaultSteps)
	if err != nil {
		c.Add(nil, fmt.Errorf("ecn of queue %d: %w", e.Queue, err))
		return
	}
	for _, r := range entries {
		c.Add(p.Entry(ids.TableECNREDName).Exact("queue", pipeline.Uint(uint64(e.Queue))).
			Range("depth", pipeline.Uint(uint64(r.Low)), pipeline.Uint(uint64(r.High))).Priority(1).
			Action(ids.ActionSetMarkProbabilityName, arg("p", uint64(r.P))).Entity())
	}
}
