package controller

import (
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/controller/trafficmanager/bmv2"
	"github.com/headgate/headgate/controller/trafficmanager/tofino"
	"github.com/headgate/headgate/internal/confine"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/units"
)

// programs are the P4 programs that are built in. mu guards ported and chips.
type programs struct {
	v1model *pipeline.Pipeline // the compiled program, unchanged
	files   confine.Dirs
	mu      sync.Mutex
	ported  ported                          // v1model for the UDP port that was last asked for
	chips   map[chipFile]*pipeline.Pipeline // programs of chips at the last reading of their files
}

// ported is v1model's program for another UDP port than it was compiled for.
type ported struct {
	port uint16
	pipe *pipeline.Pipeline
}

// chipFile is a program for a chip with the file that goes to the device; "" for none.
type chipFile struct{ chip, file string }

func newPrograms(files confine.Dirs) (*programs, error) {
	p, err := pipeline.Load(p4src.P4Info, p4src.JSON())
	if err != nil {
		return nil, fmt.Errorf("program for v1model: %w", err)
	}
	return &programs{v1model: p, files: files, chips: map[chipFile]*pipeline.Pipeline{}}, nil
}

// of returns a switch's program. A device configuration is read every time, and makes
// another pipeline when it has changed.
func (p *programs) of(cfg *config.Config, s config.Switch) (*pipeline.Pipeline, error) {
	chip := s.Target.Chip()
	port, field := udpPort(cfg)
	if chip == "" {
		return p.forPort(port, field)
	}
	if port != ids.UDPPortMaxQD {
		return nil, yamlnode.Fault{Field: field, Text: fmt.Sprintf(
			"is %d, but the switch %q of target %s runs a program that was compiled for %d, and a chip's binary cannot be changed; want %d",
			port, s.Name, s.Target, ids.UDPPortMaxQD, ids.UDPPortMaxQD)}
	}
	refused := func(key, format string, args ...any) error {
		return yamlnode.Fault{Field: cfg.Path(&s) + "." + key, Text: fmt.Sprintf(format, args...)}
	}
	var device []byte
	if s.DeviceConfig != "" {
		var info fs.FileInfo
		var err error
		if device, info, err = p.files.Read(s.DeviceConfig, confine.MaxProgram); err != nil {
			return nil, refused("device_config", "is %q on the switch %q, want a file that can be read: %v", s.DeviceConfig, s.Name, err)
		}
		// The caller chooses the address to which the file is sent, so the file must be readable by all.
		if info.Mode().Perm()&0o004 == 0 {
			return nil, refused("device_config", "is %q on the switch %q, with mode %#o: it is sent to the switch's address, want a file that everybody on this machine may read (chmod o+r)", s.DeviceConfig, s.Name, info.Mode().Perm())
		}
		if len(device) == 0 {
			return nil, refused("device_config", "is %q on the switch %q, which is an empty file, want what p4c compiled for %s", s.DeviceConfig, s.Name, chip)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := chipFile{chip, s.DeviceConfig}
	if old := p.chips[key]; old != nil && slices.Equal(old.Device(), device) {
		return old, nil
	}
	program, err := p4src.Tofino(chip)
	if err != nil {
		return nil, refused("target", "is %s on the switch %q: %v", s.Target, s.Name, err)
	}
	made, err := pipeline.LoadChip(program.P4Info, program.BFRT, device)
	if err != nil {
		return nil, refused("target", "is %s on the switch %q: %v", s.Target, s.Name, err)
	}
	p.chips[key] = made
	return made, nil
}

// forPort returns v1model's program for a UDP port that field sets.
func (p *programs) forPort(port uint16, field string) (*pipeline.Pipeline, error) {
	if port == ids.UDPPortMaxQD {
		return p.v1model, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ported.port == port {
		return p.ported.pipe, nil
	}
	device, err := p4src.WithUDPPort(port)
	if err != nil {
		return nil, yamlnode.Fault{Field: field, Text: fmt.Sprintf("is %d: %v", port, err)}
	}
	made, err := pipeline.New(p.v1model.Info(), device)
	if err != nil {
		return nil, fmt.Errorf("program for UDP port %d: %w", port, err)
	}
	p.ported = ported{port, made}
	return made, nil
}

// bridged bounds the metadata that Tofino's program puts before a frame in the buffer: bridged_t of p4src/tna, whose
// fields the compiler may rearrange.
const bridged = 16 * units.Byte

// trafficManagers returns a function that makes drivers of traffic managers: BF Runtime for Tofino chips, Thrift for
// BMv2.
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
