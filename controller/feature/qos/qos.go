// Package qos is the feature that sorts packets into classes and queues, limits the queues
// and marks packets by RED.
package qos

import (
	"fmt"
	"slices"
	"strings"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tables/red"
)

type qos struct{}

// New returns the feature; it has no loop.
func New(feature.Callbacks) feature.Feature { return qos{} }

// Name implements feature.Feature.
func (qos) Name() string { return "qos" }

// The capabilities.
var (
	classCapability = feature.Capability{
		Name:    "qos.classes",
		Objects: pipeline.Objects{Tables: []string{ids.TableDSCPToClassName}},
		Instead: "every packet has class 0 and queue 0",
	}
	limitCapability = feature.Capability{
		Name:           "qos.queue_limit",
		Objects:        pipeline.Objects{Tables: []string{ids.TableQueueLimitName}},
		TrafficManager: "holds the limit",
		Instead:        "queues have no limit but the switch's own",
	}
	markCapability = feature.Capability{
		Name:    "qos.ecn",
		Objects: pipeline.Objects{Tables: []string{ids.TableECNREDName}},
		Instead: "nothing is marked",
	}
)

// Describe implements feature.Feature.
func (qos) Describe() feature.Description {
	return feature.Description{
		Capabilities: []feature.Capability{classCapability, limitCapability, markCapability},
		Section:      config.Section{Key: "qos", Read: read, Check: check},
		Shape:        shape,
		ShapedBy:     shapedBy,
	}
}

// Attach implements feature.Feature.
func (qos) Attach(*feature.Env, feature.Switch) feature.Loop { return nil }

// Desired implements feature.Feature.
func (qos) Desired(env *feature.Env) ([]*p4v1.Entity, error) {
	var c feature.EntityList
	s := env.Switch
	q := Of(env.Config)
	has := func(p feature.Capability) bool { return env.By(p) == view.ByProgram }
	switch {
	case has(classCapability):
		classes(&c, env.Pipeline, q.Classes)
	case len(q.Classes) > 0:
		c.Add(nil, env.Refuse("qos.classes", fmt.Sprintf("a list of %d", len(q.Classes)), classCapability))
	}
	if has(limitCapability) {
		limits(&c, env.Pipeline, q, s)
	} else {
		c.Add(nil, refuseLimits(env))
	}
	switch {
	case has(markCapability):
		for _, e := range curves(env, q, &c) {
			marks(&c, env.Pipeline, e)
		}
	case len(q.ECN) > 0:
		c.Add(nil, env.Refuse("qos.ecn", fmt.Sprintf("a list of %d", len(q.ECN)), markCapability))
	}
	return c.Result()
}

func arg(name string, v uint64) pipeline.Arg {
	return pipeline.Arg{Name: name, Value: p4msg.Uint(v)}
}

// classes includes entries that equal the default, because an entry costs nothing and shows the
// operator what was written.
func classes(c *feature.EntityList, p *pipeline.Pipeline, list []Class) {
	c.Add(p.Default(ids.TableDSCPToClassName).Action(ids.ActionSetClassName, arg("class", 0), arg("queue", 0)).Entity())
	for _, k := range list {
		c.Add(p.Entry(ids.TableDSCPToClassName).Exact("dscp", p4msg.Uint(uint64(k.DSCP))).
			Action(ids.ActionSetClassName, arg("class", uint64(k.Class)), arg("queue", uint64(k.Queue))).Entity())
	}
}

// limits states the fabric's limit as the default, and entries for ports that differ.
func limits(c *feature.EntityList, p *pipeline.Pipeline, q Config, s *config.Switch) {
	c.Add(p.Default(ids.TableQueueLimitName).Action(ids.ActionSetQueueLimitName, arg("bytes", uint64(q.QueueLimit))).Entity())
	for _, port := range s.Ports {
		if port.QueueLimit == 0 || port.QueueLimit == q.QueueLimit {
			continue
		}
		for queue := range s.PriorityQueues {
			c.Add(p.Entry(ids.TableQueueLimitName).
				Exact("egress_port", p4msg.Uint(uint64(port.Number))).Exact("queue", p4msg.Uint(uint64(queue))).
				Action(ids.ActionSetQueueLimitName, arg("bytes", uint64(port.QueueLimit))).Entity())
		}
	}
}

// refuseLimits returns an error if the file has limits that nothing enforces.
func refuseLimits(env *feature.Env) error {
	if env.By(limitCapability) == view.ByTrafficManager {
		return nil
	}
	if limit := Of(env.Config).QueueLimit; limit != ids.Unlimited {
		return env.Refuse("qos.queue_limit", limit.String(), limitCapability)
	}
	for i, port := range env.Switch.Ports {
		if port.QueueLimit != 0 && port.QueueLimit != ids.Unlimited {
			return env.Refuse(fmt.Sprintf("%s.ports[%d].queue_limit", env.Config.Path(env.Switch), i), port.QueueLimit.String(), limitCapability)
		}
	}
	return nil
}

// shape is feature.Description.Shape. Where the program holds the limits, the traffic manager
// must not drop before it does.
func shape(env *feature.Env, c *trafficmanager.Config) error {
	s := env.Switch
	for _, port := range c.Ports {
		limit := Of(env.Config).QueueLimit
		if own := s.Port(port.Number).QueueLimit; own != 0 {
			limit = own
		}
		if limit == ids.Unlimited {
			continue
		}
		for queue := range s.PriorityQueues {
			c.QueueLimits = append(c.QueueLimits, trafficmanager.QueueLimit{Port: port.Number, Queue: queue, Bytes: limit})
		}
	}
	return nil
}

// shapedBy is feature.Description.ShapedBy.
func shapedBy(_ *feature.Env, field string) string {
	if strings.HasPrefix(field, "queue_limits[") {
		return "qos.queue_limit"
	}
	return ""
}

// curves returns the curves of a switch's queues. The table ecn_red has one for a queue at all ports, and
// depths up to red.MaxDepth.
func curves(env *feature.Env, q Config, c *feature.EntityList) (list []ECN) {
	first, at := "", []config.Endpoint(nil)
	for _, l := range env.Config.Links {
		for _, end := range []config.Endpoint{l.A, l.B} {
			if end.Node != env.Switch.Name {
				continue
			}
			line, _ := env.Config.LineRate(l.Rate)
			own := q.ECNAt(end.Node, end.Port, line)
			for i := range own {
				own[i].Switch, own[i].Port, own[i].Rate = "", 0, 0
			}
			if at == nil {
				list, first, at = own, l.Name, append(at, end)
			} else if !slices.Equal(own, list) {
				c.Add(nil, yamlnode.Fault{Field: "qos.ecn", Text: fmt.Sprintf("differs between the port %d (%s) and the port %d (%s) of the switch %q: its program has one curve for a queue at all ports",
					at[0].Port, first, end.Port, l.Name, env.Switch.Name)})
				return nil
			}
		}
	}
	for _, e := range list {
		if e.KMax > red.MaxDepth {
			c.Add(nil, yamlnode.Fault{Field: "qos.ecn", Text: fmt.Sprintf("has kmax %v for queue %d, which the switch %q cannot tell from %v: its program counts depth in 16 bits", e.KMax, e.Queue, env.Switch.Name, red.MaxDepth)})
		}
	}
	return list
}

// marks turns a RED curve into ranges of depth. They do not overlap, so their priority,
// which the table demands, is always 1.
func marks(c *feature.EntityList, p *pipeline.Pipeline, e ECN) {
	entries, err := red.Entries(red.Config{Kmin: e.KMin, Kmax: e.KMax, Pmax: e.PMax}, red.DefaultSteps)
	if err != nil {
		c.Add(nil, fmt.Errorf("ecn of queue %d: %w", e.Queue, err))
		return
	}
	for _, r := range entries {
		c.Add(p.Entry(ids.TableECNREDName).Exact("queue", p4msg.Uint(uint64(e.Queue))).
			Range("depth", p4msg.Uint(uint64(r.Low)), p4msg.Uint(uint64(r.High))).Priority(1).
			Action(ids.ActionSetMarkProbabilityName, arg("p", uint64(r.P))).Entity())
	}
}
