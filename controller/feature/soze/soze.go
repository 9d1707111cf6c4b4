// Package soze is the switch side of Söze: it sets the unit in which every switch stamps
// maxQD. The rest of Söze lives at the hosts.
package soze

import (
	"fmt"
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
	"github.com/headgate/headgate/units"
)

type feat struct{}

// New returns the feature; it has no loop.
func New(feature.Callbacks) feature.Feature { return feat{} }

// Name implements feature.Feature.
func (feat) Name() string { return "soze" }

// scaleCapability is the stamping of maxQD.
var scaleCapability = feature.Capability{
	Name:    "soze.maxqd",
	Objects: pipeline.Objects{Tables: []string{ids.TableMaxQDScaleName}},
	Instead: "maxQD passes the switch as it came",
}

// delayFilter is the program's filter that maxQD's stamps go through, one cell per port.
const delayFilter = "egress.maxqd.delay_filter"

// sampleCapability is the low-pass filter in front of it, on chips that have one. Its output is
// undefined before its time constant is set.
var sampleCapability = feature.Capability{
	Name:           "soze.sample",
	Objects:        pipeline.Objects{Filters: []string{delayFilter}},
	SetUp:          true,
	TrafficManager: "sets the time constant of the filter",
	Instead:        "maxQD takes the delay of each packet as it is; where there is a filter, nothing is stamped",
}

// Describe implements feature.Feature.
func (feat) Describe() feature.Description {
	return feature.Description{
		Capabilities:   []feature.Capability{scaleCapability, sampleCapability},
		Section:        config.Section{Key: "soze", Read: read, Check: check},
		HostParameters: hostParameters,
		UDPPort:        udpPort,
		Shape:          shape,
		ShapedBy:       shapedBy,
	}
}

// sampleTime is the time constant of the filter at line rate.
const sampleTime = 10 * units.Microsecond

// shape is feature.Description.Shape.
func shape(env *feature.Env, c *trafficmanager.Config) error {
	if env.By(sampleCapability) != view.ByTrafficManager {
		return nil
	}
	c.Filters = map[string]units.Time{delayFilter: env.Config.Scaled(sampleTime)}
	return nil
}

// shapedBy is feature.Description.ShapedBy.
func shapedBy(_ *feature.Env, field string) string {
	if strings.HasPrefix(field, "filters[") {
		return "scale"
	}
	return ""
}

// Attach implements feature.Feature.
func (feat) Attach(*feature.Env, feature.Switch) feature.Loop { return nil }

// maxShift is the largest value in set_scale's 5 bits.
const maxShift = 31

// Desired implements feature.Feature.
func (feat) Desired(env *feature.Env) ([]*p4v1.Entity, error) {
	s := env.Switch
	if env.By(scaleCapability) != view.ByProgram {
		return nil, nil
	}
	shift := uint64(Of(env.Config).Shift) + uint64(s.Target.TickShift())
	if shift > maxShift {
		return nil, yamlnode.Fault{Field: "soze.shift", Text: fmt.Sprintf(
			"is %d, which on the switch %q of target %s makes %d; want %d at most", Of(env.Config).Shift, s.Name, s.Target, shift, maxShift-s.Target.TickShift())}
	}
	var c feature.EntityList
	if sampleCapability.In(env.Pipeline) && env.By(sampleCapability) == view.ByNothing {
		if env.Config.Given("soze") {
			return nil, env.Refuse("soze", "given", sampleCapability)
		}
		c.Add(env.Pipeline.Default(ids.TableMaxQDScaleName).Action(ids.ActionDisableStampingName).Entity())
		return c.Result()
	}
	c.Add(env.Pipeline.Default(ids.TableMaxQDScaleName).Action(ids.ActionSetScaleName,
		pipeline.Arg{Name: "shift", Value: p4msg.Uint(shift)}).Entity())
	return c.Result()
}
