package buffer

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/internal/yamlnode"
)

// means says who keeps the policy of a switch: its program, its traffic manager, or nobody,
// because there is none. The error says that the policy is not to be had.
func means(env *feature.Env, s *config.Switch) (feature.Means, error) {
	account, pause := accountPart.On(env.Pipeline, s), pausePart.On(env.Pipeline, s)
	program := accountPart.In(env.Pipeline) && pausePart.In(env.Pipeline)
	field, value := Field(env.Config, s, "policy"), fmt.Sprintf("%q", Of(s).Policy)
	switch {
	case program: // which has entries even where it is off
		return feature.ByProgram, nil
	case !Of(s).On():
		return feature.ByNothing, nil
	case account.Means == feature.ByNothing:
		return feature.ByNothing, env.Refuse(s, field, value, accountPart)
	case pause.Means == feature.ByNothing:
		return feature.ByNothing, env.Refuse(s, field, value, pausePart)
	case Of(s).Victims() && departPart.On(env.Pipeline, s).Means == feature.ByNothing:
		return feature.ByNothing, env.Refuse(s, field, value, departPart)
	}
	return feature.ByTrafficManager, nil
}

// Shape implements feature.Shaper.
func (*feat) Shape(env *feature.Env, sw string, c *trafficmanager.Config) error {
	s := env.Config.Switch(sw)
	if s == nil {
		return fmt.Errorf("there is no switch %q", sw)
	}
	by, err := means(env, s)
	if by != feature.ByTrafficManager || err != nil {
		return err
	}
	h, _, on := Headroom(env.Config, s)
	if !on {
		return nil
	}
	// The chip has a queue obey PFC by its number.
	for i, k := range qos.Of(env.Config).Classes {
		if Of(s).Lossless>>k.Class&1 != 0 && k.Queue != k.Class {
			return yamlnode.Fault{Field: fmt.Sprintf("qos.classes[%d].queue", i), Text: fmt.Sprintf(
				"is %d for class %d, which is lossless on the switch %q: its queues obey PFC for the class of their number, want queue %d", k.Queue, k.Class, s.Name, k.Class)}
		}
	}
	c.MMU, c.LosslessQueues = &h, LosslessQueues(env.Config, s)
	return nil
}

// ShapedBy implements feature.Shaper. Its are the fields of the policy; lists are others'.
func (*feat) ShapedBy(env *feature.Env, s *config.Switch, field string) string {
	switch {
	case strings.Contains(field, "["):
		return ""
	case field == "buffer":
		field = "size"
	}
	return Field(env.Config, s, field)
}

var _ feature.Shaper = (*feat)(nil)
