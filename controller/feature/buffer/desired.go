package buffer

import (
	"fmt"
	"strings"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tables/buffer"
)

// desired implements feature.Feature.Desired: the clone sessions that send PFC frames, the policy and its parameters.
func desired(env *feature.Env) ([]*p4v1.Entity, error) {
	s := env.Switch
	if by, err := means(env); err != nil || by != pb.ByProgram {
		return nil, err
	}
	var c feature.EntityList
	p := env.Pipeline
	c.Add(p.Default(ids.TablePFCPortName).Action(ids.ActionSetPFCPortName,
		feature.Arg("src_mac", 0), feature.Arg("quanta", buffer.DefaultQuanta)).Entity())
	policy, tables := buffer.Off(), []buffer.Entry(nil)
	h, numbers, on := Headroom(env.Config, s)
	if on {
		if err := ownQueues(env); err != nil {
			return nil, err
		}
		config := buffer.Config{MMU: h, Numbers: numbers, Quanta: FromSwitch(s).PauseQuanta}
		for _, port := range env.Graph.Ports(s.Name) {
			config.MAC = append(config.MAC, port.MAC)
		}
		built, err := buffer.Build(config)
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", FromSwitch(s).Policy, err)
		}
		policy, tables = built.Policy, built.Tables
		if env.Provider(obeyCapability) == pb.ByTarget {
			obeyed := queuesOf(env.Config, s)
			for c := range obeyed {
				obeyed[c] &^= 1 << priority(s) // PFC frames leave by that queue
			}
			c.Add(obeyed.Entity(), nil)
			ports := externs.Obeyed{}
			for _, p := range s.Ports {
				if p.Lossless != nil {
					ports[p.Number] = *p.Lossless
				}
			}
			if len(ports) > 0 {
				c.Add(ports.Entity(), nil)
			}
		}
	}
	for _, port := range env.Graph.Ports(s.Name) {
		c.Add(pipeline.PriorityCloneSession(buffer.Session(port.Number), priority(s), port.Number), nil)
		if !on {
			mac := port.MAC
			c.Add(p.Entry(ids.TablePFCPortName).Exact("egress_port", p4rtmsg.Uint(uint64(port.Number))).Action(ids.ActionSetPFCPortName,
				pipeline.Arg{Name: "src_mac", Value: mac[:]}, feature.Arg("quanta", uint64(FromSwitch(s).PauseQuanta))).Entity())
		}
	}
	for _, t := range tables {
		c.Add(Entity(p, t))
	}
	c.Add(p.Default(ids.TableBufferPolicyName).Call(policy.Name, policy.Params).Entity())
	return c.Result()
}

// priority returns the class of service of PFC frames, which must not wait behind data. PI, and so BMv2, takes none but 0.
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
			e.Exact(m.Field, p4rtmsg.Uint(m.Value))
		} else {
			e.LPM(m.Field, p4rtmsg.Uint(m.Value), m.Prefix)
		}
	}
	return e.Call(t.Name, t.Params).Entity()
}

// means returns the part of a switch that implements its policy: the program, the traffic manager, or nothing without
// a policy. It returns an error if the policy is not available.
func means(env *feature.Env) (string, error) {
	s := env.Switch
	program := accountCapability.InProgram(env.Pipeline) && pauseCapability.InProgram(env.Pipeline)
	field, value := env.Config.Origin(s, "buffer.policy"), fmt.Sprintf("%q", FromSwitch(s).Policy)
	switch {
	case program: // the program has entries even if the policy is off
		return pb.ByProgram, nil
	case !FromSwitch(s).On():
		return pb.ByNothing, nil
	case env.Provider(accountCapability) == pb.ByNothing:
		return pb.ByNothing, env.Refuse(field, value, accountCapability)
	case env.Provider(pauseCapability) == pb.ByNothing:
		return pb.ByNothing, env.Refuse(field, value, pauseCapability)
	case FromSwitch(s).Policy.Victims() && env.Provider(departCapability) == pb.ByNothing:
		return pb.ByNothing, env.Refuse(field, value, departCapability)
	}
	return pb.ByTrafficManager, nil
}

func shape(env *feature.Env, c *trafficmanager.Config) error {
	s := env.Switch
	by, err := means(env)
	if by != pb.ByTrafficManager || err != nil {
		return err
	}
	h, _, on := Headroom(env.Config, s)
	if !on {
		return nil
	}
	if err := ownQueues(env); err != nil {
		return err
	}
	c.MMU, c.LosslessQueues = &h, LosslessQueues(env.Config, s)
	for i, p := range c.Ports {
		c.Ports[i].Lossy = h.Lossless &^ LosslessAt(s, p.Number)
	}
	return nil
}

// ownQueues refuses queues of classes under PFC. The embedded switch accepts a map in which each queue belongs to one
// class and is not the queue of PFC frames. On other targets queue n obeys PFC for class n: a class in another queue
// is never paused.
func ownQueues(env *feature.Env) error {
	s := env.Switch
	classes := queuesOf(env.Config, s)
	for i, k := range qos.FromConfig(env.Config).Classes {
		if classes[k.Class] == 0 {
			continue
		}
		why := ""
		switch other := classes.Class(int(k.Queue)); {
		case other != int(k.Class):
			why = fmt.Sprintf("class %d is lossless and has that queue, too, so that a PAUSE of either would stop both, want a queue for each", other)
		case k.Queue == k.Class:
		case s.Target != config.Embedded:
			why = fmt.Sprintf("its queues obey PFC for the class of their number, want queue %d", k.Class)
		case uint32(k.Queue) == priority(s):
			why = "PFC frames leave by that queue, and must not be paused, want another"
		}
		if why != "" {
			return yamlnode.Fault{Field: fmt.Sprintf("qos.classes[%d].queue", i), Text: fmt.Sprintf(
				"is %d for class %d, which is lossless on the switch %q: %s", k.Queue, k.Class, s.Name, why)}
		}
	}
	return nil
}

func shapedBy(env *feature.Env, field string) string {
	switch {
	case strings.Contains(field, "["):
		return ""
	case field == "buffer":
		field = "size"
	}
	return env.Config.Origin(env.Switch, "buffer."+field)
}
