package feature

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/internal/yamlnode"
)

// Part is something that a feature can do, and what it takes. It is either part of the
// program that a switch runs, or a matter of the switch's traffic manager.
type Part struct {
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
	// TrafficManager says what a traffic manager does where the program cannot, as in "the traffic
	// manager …"; "" when it can do nothing.
	TrafficManager string
	// Instead says what happens where neither can.
	Instead string
}

// Means is by what a switch does something.
type Means uint8

// The means.
const (
	ByNothing Means = iota
	ByProgram
	ByTrafficManager
	ByTarget
)

// Support says whether a switch can do a part.
type Support struct {
	Means
	// Lacking says why the program does not do it; "" when it does.
	Lacking string
}

// On says whether a switch that runs a pipeline can do the part. It looks at the pipeline's
// objects and at the switch's configuration, at the kind of target for Externs only.
func (p Part) On(pipe *pipeline.Pipeline, s *config.Switch) Support {
	missing := pipe.Lacks(p.Objects)
	var lacking string
	if p.Without != nil {
		if lacking = p.Without(s.Target); lacking == "" {
			return Support{Means: ByTarget}
		}
		return Support{Lacking: lacking}
	}
	switch {
	case len(missing) > 0:
		lacking = fmt.Sprintf("the program for %s has no %s", s.Target.Architecture(), strings.Join(missing, ", no "))
	case s.PriorityQueues < p.Queues:
		lacking = fmt.Sprintf("it takes %d priority queues, the switch is configured with %d", p.Queues, s.PriorityQueues)
	case p.SetUp && s.BFRuntime == "":
		lacking = "it has to be set up by BF Runtime"
	case p.SetUp:
		return Support{Means: ByTrafficManager}
	default:
		return Support{Means: ByProgram}
	}
	if p.TrafficManager != "" && s.BFRuntime != "" {
		return Support{Means: ByTrafficManager, Lacking: lacking}
	}
	return Support{Lacking: lacking}
}

// In reports whether a program has all objects of the part.
func (p Part) In(pipe *pipeline.Pipeline) bool { return len(pipe.Lacks(p.Objects)) == 0 }

// Externs returns the externs that features take of a switch's target.
func Externs(features []Feature, s *config.Switch) []uint32 {
	var list []uint32
	for _, f := range features {
		for _, p := range f.Parts() {
			if p.Without != nil && p.Without(s.Target) == "" {
				list = append(list, p.Externs...)
			}
		}
	}
	return list
}

// Refuse returns the yamlnode.Fault for a field whose value asks a switch for a part that it
// cannot do.
func (e *Env) Refuse(field, value string, p Part) error {
	s := e.Switch
	text := fmt.Sprintf("is %s, which the switch %q cannot do: %s", value, s.Name, p.On(e.Pipeline, s).Lacking)
	if p.TrafficManager != "" && s.Target.Chip() != "" {
		text += fmt.Sprintf("; set %s.bf_runtime so that the traffic manager %s", e.Config.Path(s), p.TrafficManager)
	}
	return yamlnode.Fault{Field: field, Text: text}
}

// Means returns by what the switch does a part.
func (e *Env) Means(p Part) Means { return p.On(e.Pipeline, e.Switch).Means }
