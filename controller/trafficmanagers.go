package controller

import (
	"log/slog"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/controller/trafficmanager/bmv2"
	"github.com/headgate/headgate/controller/trafficmanager/tofino"
	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/units"
)

// bridged bounds what the program for Tofino puts before a frame for its way through the
// buffer: bridged_t of p4src/tna, whose fields the compiler arranges as it likes.
const bridged = 16 * units.Byte

// trafficManagers returns what makes the drivers of traffic managers: those of Tofino chips by
// BF Runtime, BMv2's by Thrift.
func trafficManagers(log *slog.Logger) func(config.Switch) (trafficmanager.Driver, error) {
	return func(s config.Switch) (trafficmanager.Driver, error) {
		_, address := s.TrafficManager()
		if s.Target == config.BMv2 {
			return bmv2.New(address), nil
		}
		program, err := p4src.Tofino(s.Target.Chip())
		if err != nil {
			return nil, err
		}
		return tofino.New(tofino.Options{
			Name: s.Name, Address: address, Chip: program.Chip, Schema: program.BFRT, Bridged: bridged, Log: log,
		})
	}
}
