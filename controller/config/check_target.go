package config

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/yamlnode"
)

// checkTargets finds keys of switches whose target has no use for them.
func (c *Config) checkTargets(d *yamlnode.Doc) {
	servers := yamlnode.Unique[string]{}
	for i, s := range c.Switches {
		path := fmt.Sprintf("switches[%d]", i)
		for _, k := range []struct {
			key, value, what string
			ok               bool
			with             string
		}{
			{"device_config", s.DeviceConfig, "its program is built in", s.Target.Chip() != "", "tofino1 or tofino2"},
			{keyBFRuntime, s.BFRuntime, "it has no BF Runtime server", s.Target.Chip() != "", "tofino1 or tofino2"},
			{keyThrift, s.Thrift, "it has no Thrift service", s.Target == BMv2, "bmv2"},
		} {
			if k.value != "" && !k.ok {
				d.Fault(path+"."+k.key, "is %q, but the target of the switch %q is %s: %s; want it with %s only", k.value, s.Name, s.Target, k.what, k.with)
			}
		}
		key, server := s.TrafficManager()
		if server == "" {
			continue
		}
		at := path + "." + key
		servers.Use(d, strings.ToLower(server), at, fmt.Sprintf("%q", server))
		if strings.EqualFold(server, s.Address) {
			d.Fault(at, "is %q, which is the address of the P4Runtime server; the traffic manager's has another", server)
		}
	}
}
