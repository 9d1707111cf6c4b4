package config

import (
	"fmt"
	"strings"
)

// checkTargets finds keys of switches whose target has no use for them.
func (c *Config) checkTargets(f *faults) {
	servers := unique[string]{}
	for i, s := range c.Switches {
		path := fmt.Sprintf("switches[%d]", i)
		for _, k := range []struct{ key, value, what string }{
			{"device_config", s.DeviceConfig, "its program is built in"},
			{"bf_runtime", s.BFRuntime, "it has no traffic manager of its own"},
		} {
			if k.value != "" && s.Target.Chip() == "" {
				at := path + "." + k.key
				f.add(c.lines[at], at, "is %q, but the target of the switch %q is %s: %s; want it with tofino1 or tofino2 only", k.value, s.Name, s.Target, k.what)
			}
		}
		if s.BFRuntime == "" {
			continue
		}
		at := path + ".bf_runtime"
		servers.use(c, f, strings.ToLower(s.BFRuntime), at, fmt.Sprintf("%q", s.BFRuntime))
		if strings.EqualFold(s.BFRuntime, s.Address) {
			f.add(c.lines[at], at, "is %q, which is the address of the P4Runtime server; the BF Runtime server has another", s.BFRuntime)
		}
	}
}
