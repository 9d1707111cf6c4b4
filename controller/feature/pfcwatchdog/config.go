package pfcwatchdog

import (
	"time"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/pfcwd"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/units"
)

// Config is the section pfc_watchdog, by the names of SONiC's pfcwd. The fabric has one, and a
// switch may override any key of it in a section of its own. Times are wall-clock times.
type Config struct {
	// DetectionTime is how long a peer may pause a class until that is a storm, 1 ms … 1 h, or off;
	// default off. SONiC's default is 200 ms; a PAUSE of 65535 quanta lasts 335 ms at 100 Mb/s and
	// need not be a storm.
	DetectionTime time.Duration
	// Share is the share of DetectionTime that the class is paused in a storm, above 0 to 1; default
	// 0.98, which each of up to 49 senders to one port stays below. With 1 the pause must have no break.
	Share float64
	// RestorationTime is how long no PAUSE must have come until a storm is over, 1 ms … 1 h;
	// default DetectionTime.
	RestorationTime time.Duration
	// Action is what happens to the class in a storm: drop, forward or alert; default drop.
	Action pfcwd.Action
}

// settings are the configuration's as a switch takes them.
func (c Config) settings() (pfcwd.Settings, error) {
	return pfcwd.Settings{
		Detection: units.FromDuration(c.DetectionTime), Restoration: units.FromDuration(c.RestorationTime), Share: c.Share, Action: c.Action,
	}.WithDefaults()
}

// Of returns the section of a switch.
func Of(s *config.Switch) Config { return config.Of[Config](s, "pfc_watchdog") }

// read is config.Section.Read.
func read(m *yamlnode.Map, _ *config.Config) any {
	return Config{Share: pfcwd.DefaultShare, Action: pfcwd.Drop}.read(m)
}

// readSwitch is config.Section.ReadSwitch.
func readSwitch(m *yamlnode.Map, c *config.Config) any {
	return config.Of[Config](c, "pfc_watchdog").read(m)
}

// read reads a section over what c is.
func (c Config) read(m *yamlnode.Map) Config {
	const low, high = time.Millisecond, time.Hour
	c.DetectionTime = m.WallOrOff("detection_time", c.DetectionTime, low, high)
	c.Share = m.Above("share", c.Share, 0, 1)
	c.RestorationTime = m.Wall("restoration_time", c.RestorationTime, low, high)
	c.Action = pfcwd.Action(m.OneOf("action", string(c.Action), string(pfcwd.Drop), string(pfcwd.Forward), string(pfcwd.Alert)))
	if c.DetectionTime == 0 && (m.Has("restoration_time") || m.Has("share") || m.Has("action")) {
		m.Fault("", "has restoration_time, share or action, want detection_time with them: without it there is no watchdog")
	}
	return c
}
