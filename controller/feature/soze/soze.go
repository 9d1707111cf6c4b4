// Package soze is the switch side of Söze: it sets the unit in which every switch stamps
// maxQD. The rest of Söze lives at the hosts.
package soze

import (
	"fmt"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/p4src/ids"
)

type soze struct{}

// New returns the feature; it has no loop.
func New(feature.Hub) feature.Feature { return soze{} }

// Name implements feature.Feature.
func (soze) Name() string { return "soze" }

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
	shift := uint64(env.Config.Soze.Shift) + tick(s.Target)
	if shift > maxShift {
		return nil, fmt.Errorf("soze.shift is %d, which on target %s makes %d; at most %d fit", env.Config.Soze.Shift, s.Target, shift, maxShift)
	}
	var c feature.Collect
	c.Add(env.Pipeline.Default(ids.TableMaxQDScaleName).Action(ids.ActionSetScaleName,
		pipeline.Arg{Name: "shift", Value: pipeline.Uint(shift)}).Entity())
	return c.Result()
}

// tick returns how often a target's clock tick has to be halved to be a microsecond:
// BMv2 and the embedded switch stamp microseconds, Tofino nanoseconds, of which 1024 are
// taken for one microsecond, 2.4 % too much.
func tick(t config.Target) uint64 {
	if t == config.Tofino {
		return 10
	}
	return 0
}
