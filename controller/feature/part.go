package feature

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/pipeline"
)

// Part is something that a feature can do, and what it takes. It is either part of the
// program that a switch runs, or a matter of the switch's traffic manager.
type Part struct {
	// Name is a word with the feature's in front, unique, such as "qos.queue_limit".
	Name string
	// Objects of the program that it takes, all of them.
	Objects pipeline.Objects
	// Managed says that they are of no use until the traffic manager's server has set them
	// up, which P4Runtime cannot do.
	Managed bool
	// Queues is the least number of priority queues of a port; 0 for any.
	Queues int
	// Manager says what a traffic manager does where the program cannot, as in "the traffic
	// manager …"; "" when it can do nothing.
	Manager string
	// Instead says what happens where neither can.
	Instead string
}

// Means is by what a switch does something.
type Means uint8

// The means.
const (
	Nothing Means = iota
	Program
	Manager
)

// Support says whether a switch can do a part.
type Support struct {
	Means
	// Lacking says why the program does not do it; "" when it does.
	Lacking string
}

// On says whether a switch that runs a pipeline can do the part. It looks at the pipeline's
// objects and at the switch's configuration, not at the kind of target.
func (p Part) On(pipe *pipeline.Pipeline, s *config.Switch) Support {
	missing := pipe.Lacks(p.Objects)
	var lacking string
	switch {
	case len(missing) > 0:
		lacking = fmt.Sprintf("the program for %s has no %s", s.Target.Architecture(), strings.Join(missing, ", no "))
	case s.PriorityQueues < p.Queues:
		lacking = fmt.Sprintf("it takes %d priority queues, the switch is configured with %d", p.Queues, s.PriorityQueues)
	case p.Managed && s.BFRuntime == "":
		lacking = "it has to be set up by BF Runtime"
	case p.Managed:
		return Support{Means: Manager}
	default:
		return Support{Means: Program}
	}
	if p.Manager != "" && s.BFRuntime != "" {
		return Support{Means: Manager, Lacking: lacking}
	}
	return Support{Lacking: lacking}
}

// In reports whether a program has all objects of the part.
func (p Part) In(pipe *pipeline.Pipeline) bool { return len(pipe.Lacks(p.Objects)) == 0 }

// Refused says that a field of the configuration asks a switch for what it cannot do.
type Refused struct {
	Field string // such as qos.queue_limit
	Text  string // the value, the switch, and why
}

// Error implements error.
func (e *Refused) Error() string { return e.Field + ": " + e.Text }

// Refuse returns the *Refused for a field whose value asks a switch for a part that it
// cannot do.
func (e *Env) Refuse(s *config.Switch, field, value string, p Part) error {
	text := fmt.Sprintf("is %s, which the switch %q cannot do: %s", value, s.Name, p.On(e.Pipeline, s).Lacking)
	if p.Manager != "" && s.Target.Chip() != "" {
		text += fmt.Sprintf("; set %s.bf_runtime so that the traffic manager %s", e.Path(s), p.Manager)
	}
	return &Refused{Field: field, Text: text}
}

// Path returns where a switch stands in the file, such as switches[2].
func (e *Env) Path(s *config.Switch) string {
	for i := range e.Config.Switches {
		if e.Config.Switches[i].Name == s.Name {
			return fmt.Sprintf("switches[%d]", i)
		}
	}
	return "switches"
}
