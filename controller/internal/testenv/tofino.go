package testenv

import (
	"testing"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/p4src"
)

// Tofino returns the program for a chip, without a device configuration.
func Tofino(t testing.TB, chip string) *pipeline.Pipeline {
	t.Helper()
	program, err := p4src.Tofino(chip)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pipeline.LoadChip(program.P4Info, program.BFRT, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// AtSwitch returns the environment of another switch.
func AtSwitch(env *feature.Env, sw string) *feature.Env {
	other := *env
	other.Switch = env.Config.Switch(sw)
	return &other
}

// WithPipeline returns an environment of a switch that runs another program.
func WithPipeline(env *feature.Env, p *pipeline.Pipeline) *feature.Env {
	other := *env
	other.Pipeline = p
	return &other
}
