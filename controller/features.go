package controller

import (
	"github.com/headgate/headgate/controller/allocation/priority"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/feature/buffer"
	"github.com/headgate/headgate/controller/feature/gateway"
	"github.com/headgate/headgate/controller/feature/lldp"
	"github.com/headgate/headgate/controller/feature/pacc"
	"github.com/headgate/headgate/controller/feature/pfcwatchdog"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/controller/feature/routing"
	"github.com/headgate/headgate/controller/feature/sourceguard"
	"github.com/headgate/headgate/controller/feature/soze"
	"github.com/headgate/headgate/controller/feature/telemetry"
	"github.com/headgate/headgate/p4src/ids"
)

// features returns the features, one line each, in the order in which they are shown.
func features() []feature.Constructor {
	return []feature.Constructor{
		routing.New,
		sourceguard.New,
		gateway.New,
		qos.New,
		soze.New,
		buffer.New,
		pfcwatchdog.New,
		pacc.New,
		telemetry.New,
		lldp.New,
	}
}

// udpPort returns the UDP port of maxQD's packets in a configuration, and the key that sets it.
func udpPort(cfg *config.Config) (port uint16, key string) {
	for _, construct := range features() {
		if port := construct(nil).UDPPort; port != nil {
			return port(cfg)
		}
	}
	return ids.UDPPortMaxQD, ""
}

// Sections returns the sections of the configuration that have owners outside package config.
func Sections() []config.Section {
	list := []config.Section{priority.Section()}
	for _, construct := range features() {
		if s := construct(nil).Section; s.Key != "" {
			list = append(list, s)
		}
	}
	return list
}
