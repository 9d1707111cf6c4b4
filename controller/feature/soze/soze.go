// Package soze is the switch side of Söze: it sets the unit in which every switch stamps
// maxQD. The rest of Söze lives at the hosts.
package soze

import (
	"fmt"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/units"
)

type soze struct{}

// New returns the feature; it has no loop.
func New(feature.Hub) feature.Feature { return soze{} }

// Name implements feature.Feature.
func (soze) Name() string { return "soze" }

// scalePart is the stamping of maxQD.
var scalePart = feature.Part{
	Name:    "soze.maxqd",
	Objects: pipeline.Objects{Tables: []string{ids.TableMaxQDScaleName}},
	Instead: "maxQD passes the switch as it came",
}

// samplePart is the low-pass filter in front of it, on chips that have one. What comes out
// of it is not defined before its time constant is set.
var samplePart = feature.Part{
	Name:    "soze.sample",
	Objects: pipeline.Objects{Filters: []string{trafficmanager.MaxQDFilter}},
	Managed: true,
	Manager: "sets the time constant of the filter",
	Instead: "maxQD takes the delay of each packet as it is; where there is a filter, nothing is stamped",
}

// Parts implements feature.Feature.
func (soze) Parts() []feature.Part { return []feature.Part{scalePart, samplePart} }

// sampleTime is the time constant of the filter at line rate (SYSTEMS.md §4).
const sampleTime = 10 * units.Microsecond

// Shape implements feature.Shaper.
func (soze) Shape(env *feature.Env, _ string, c *trafficmanager.Config) error {
	c.MaxQDSample = env.Config.Scaled(sampleTime)
	return nil
}

// Attach implements feature.Feature.
func (soze) Attach(*feature.Env, feature.Switch) feature.Loop { return nil }

// maxShift is what set_scale's 5 bits hold.
const maxShift = 31

// Desired implements feature.Feature.
func (soze) Desired(env *feature.Env, sw string) ([]*p4v1.Entity, error) {
	s := env.Config.Switch(sw)
	if s == nil {
		return nil, fmt.Errorf("there is no switch %q", sw)
	}
	if scalePart.On(env.Pipeline, s).Means != feature.Program {
		return nil, nil
	}
	shift := uint64(env.Config.Soze.Shift) + uint64(s.Target.TickShift())
	if shift > maxShift {
		return nil, &feature.Refused{Field: "soze.shift", Text: fmt.Sprintf(
			"is %d, which on the switch %q of target %s makes %d; want %d at most", env.Config.Soze.Shift, sw, s.Target, shift, maxShift-s.Target.TickShift())}
	}
	var c feature.Collect
	if samplePart.In(env.Pipeline) && samplePart.On(env.Pipeline, s).Means == feature.Nothing {
		if env.Config.Given("soze") {
			return nil, env.Refuse(s, "soze", "given", samplePart)
		}
		c.Add(env.Pipeline.Default(ids.TableMaxQDScaleName).Action(ids.ActionDisableStampingName).Entity())
		return c.Result()
	}
	c.Add(env.Pipeline.Default(ids.TableMaxQDScaleName).Action(ids.ActionSetScaleName,
		pipeline.Arg{Name: "shift", Value: pipeline.Uint(shift)}).Entity())
	return c.Result()
}

var _ feature.Shaper = soze{}
