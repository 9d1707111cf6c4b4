package buffer

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/internal/yamlnode"
)

// means says what implements the policy of a switch: its program, its traffic manager, or nothing if
// there is no policy. The error says that the policy is not available.
func means(env *feature.Env) (string, error) {
	s := env.Switch
	program := accountCapability.In(env.Pipeline) && pauseCapability.In(env.Pipeline)
	field, value := env.Config.Origin(s, "buffer.policy"), fmt.Sprintf("%q", Of(s).Policy)
	switch {
	case program: // which has entries even where it is off
		return view.ByProgram, nil
	case !Of(s).On():
		return view.ByNothing, nil
	case env.By(accountCapability) == view.ByNothing:
		return view.ByNothing, env.Refuse(field, value, accountCapability)
	case env.By(pauseCapability) == view.ByNothing:
		return view.ByNothing, env.Refuse(field, value, pauseCapability)
	case Of(s).Victims() && env.By(departCapability) == view.ByNothing:
		return view.ByNothing, env.Refuse(field, value, departCapability)
	}
	return view.ByTrafficManager, nil
}

// shape is feature.Description.Shape.
func shape(env *feature.Env, c *trafficmanager.Config) error {
	s := env.Switch
	by, err := means(env)
	if by != view.ByTrafficManager || err != nil {
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
	return nil
}

// ownQueues refuses queues of classes under PFC. The embedded switch is told of the map, and takes one in which
// each queue is of one class and not that of PFC frames. No other target is told, and each has its queues obey
// PFC for the class of their number, so that a class in another queue would never be paused.
func ownQueues(env *feature.Env) error {
	s := env.Switch
	classes := queuesOf(env.Config, s)
	for i, k := range qos.Of(env.Config).Classes {
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

// shapedBy is feature.Description.ShapedBy. Its are the fields of the policy; lists are others'.
func shapedBy(env *feature.Env, field string) string {
	switch {
	case strings.Contains(field, "["):
		return ""
	case field == "buffer":
		field = "size"
	}
	return env.Config.Origin(env.Switch, "buffer."+field)
}
