package buffer

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/internal/yamlnode"
)

// means says who keeps the policy of a switch: its program, its traffic manager, or nobody,
// because there is none. The error says that the policy is not to be had.
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

// ownQueues refuses classes under PFC in queues of other numbers: no target is told of a map, and each has its
// queues obey PFC for the class of their number, so that such a class would never be paused.
func ownQueues(env *feature.Env) error {
	s := env.Switch
	for i, k := range qos.Of(env.Config).Classes {
		if Of(s).Lossless>>k.Class&1 != 0 && k.Queue != k.Class {
			return yamlnode.Fault{Field: fmt.Sprintf("qos.classes[%d].queue", i), Text: fmt.Sprintf(
				"is %d for class %d, which is lossless on the switch %q: its queues obey PFC for the class of their number, want queue %d", k.Queue, k.Class, s.Name, k.Class)}
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
