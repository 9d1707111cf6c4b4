package lldp

import (
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
)

// Config is the section punt: how many frames each port of a switch may send to the
// controller, so that a host cannot flood it. What is more is dropped and counted as
// punt_limit.
type Config struct {
	// Rate is in frames per second, 0 … 1 000 000; 0 is no limit; default 100.
	Rate int
	// Burst is how many frames may come at once, 1 … 1000; default 100.
	Burst int
}

// Of returns the section of a configuration.
func Of(c *config.Config) Config { return config.Of[Config](c, "punt") }

// args returns the limit as the pipeline has it, in its ticks of a microsecond: the time
// between two frames, and by how much the next one may come before it is due.
func (c Config) args() []pipeline.Arg {
	var interval, tolerance uint64
	if c.Rate > 0 {
		interval = uint64((1_000_000 + c.Rate - 1) / c.Rate)
		tolerance = uint64(c.Burst-1) * interval
	}
	return []pipeline.Arg{
		{Name: "interval", Value: p4msg.Uint(interval)}, {Name: "tolerance", Value: p4msg.Uint(min(tolerance, ids.Unlimited))},
	}
}

// read is config.Section.Read.
func read(m *yamlnode.Map, _ *config.Config) any {
	return Config{Rate: m.Int("rate", 100, 0, 1_000_000), Burst: m.Int("burst", 100, 1, 1000)}
}
