package feature

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/internal/yamlnode"
)

// Capability is something that a feature can do, and what it takes. It is either part of the
// program that a switch runs, or a matter of the switch's traffic manager.
type Capability struct {
	// Name is a word with the feature's in front, unique, such as "qos.queue_limit".
	Name string
	// Objects of the program that it takes, all of them.
	Objects pipeline.Objects
	// FilledBy is the field of the configuration that the objects' entries follow from, such as
	// hosts, for when there are more than an object holds; "" when the switch is to blame.
	FilledBy string
	// SetUp says that they are of no use until the traffic manager's server has set them
	// up, which P4Runtime cannot do.
	SetUp bool
	// Externs are entries that it takes of the target itself, whatever its program: externs that
	// no P4Info declares, by id. They are read back with the rest.
	Externs []uint32
	// Without says why a kind of target has no such externs, "" for one that does; nil without
	// Externs.
	Without func(config.Target) string
	// Queues is the least number of priority queues of a port; 0 for any.
	Queues int
	// TrafficManager says what a traffic manager does where the program cannot, as in "the traffic manager
	// …"; "" for nothing.
	TrafficManager string
	// Instead says what happens where neither can.
	Instead string
}

// On returns the capability as it is on a switch that runs a pipeline.
func (c Capability) On(pipe *pipeline.Pipeline, s *config.Switch) view.Capability {
	by, lacking := c.By(pipe, s)
	v := view.Capability{Name: c.Name, Supported: by != view.ByNothing, By: by}
	switch by {
	case view.ByTrafficManager:
		v.Detail = "the traffic manager " + c.TrafficManager
	case view.ByNothing:
		v.Detail = lacking
		if c.TrafficManager != "" && s.Target.Chip() != "" {
			v.Detail += ", bf_runtime is not set"
		}
		v.Detail += "; " + c.Instead
	}
	return v
}

// By returns what does it on a switch that runs a pipeline, and why the program does not; "" where it
// does. It looks at the pipeline's objects and at the switch's configuration, at the kind of target for
// Externs only.
func (c Capability) By(pipe *pipeline.Pipeline, s *config.Switch) (by, lacking string) {
	if c.Without != nil {
		if lacking = c.Without(s.Target); lacking == "" {
			return view.ByTarget, ""
		}
		return view.ByNothing, lacking
	}
	switch missing := pipe.Lacks(c.Objects); {
	case len(missing) > 0:
		lacking = fmt.Sprintf("the program for %s has no %s", s.Target.Architecture(), strings.Join(missing, ", no "))
	case s.PriorityQueues < c.Queues:
		lacking = fmt.Sprintf("it takes %d priority queues, the switch is configured with %d", c.Queues, s.PriorityQueues)
	case c.SetUp && s.BFRuntime == "":
		return view.ByNothing, "it has to be set up by BF Runtime"
	case c.SetUp:
		return view.ByTrafficManager, ""
	default:
		return view.ByProgram, ""
	}
	if c.TrafficManager != "" && s.BFRuntime != "" {
		return view.ByTrafficManager, lacking
	}
	return view.ByNothing, lacking
}

// In reports whether a program has all objects of the capability.
func (c Capability) In(pipe *pipeline.Pipeline) bool { return len(pipe.Lacks(c.Objects)) == 0 }

// Externs returns the externs that features take of a switch's target.
func Externs(features []Feature, s *config.Switch) []uint32 {
	var list []uint32
	for _, f := range features {
		for _, c := range f.Describe().Capabilities {
			if c.Without != nil && c.Without(s.Target) == "" {
				list = append(list, c.Externs...)
			}
		}
	}
	return list
}

// Refuse returns the yamlnode.Fault for a field whose value asks a switch for a capability that it
// does not have.
func (e *Env) Refuse(field, value string, c Capability) error {
	s := e.Switch
	_, lacking := c.By(e.Pipeline, s)
	text := fmt.Sprintf("is %s, which the switch %q cannot do: %s", value, s.Name, lacking)
	if c.TrafficManager != "" && s.Target.Chip() != "" {
		text += fmt.Sprintf("; set %s.bf_runtime so that the traffic manager %s", e.Config.Path(s), c.TrafficManager)
	}
	return yamlnode.Fault{Field: field, Text: text}
}

// By returns what does something on the switch.
func (e *Env) By(c Capability) string {
	by, _ := c.By(e.Pipeline, e.Switch)
	return by
}
