// Package p4src embeds the compiled P4 program, which a switch runs and a controller pushes. The P4 sources
// beside it are compiled with `make p4`; tests in internal/gen fail when sources and artefacts do not belong
// together.
package p4src

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/headgate/headgate/p4src/ids"
)

//go:generate go run ./internal/gen

// packed is build/headgate.json, a thirtieth of its size.
//
//go:embed build/headgate.json.gz
var packed []byte

// JSON returns the program as p4c compiled it for BMv2, always the same bytes. They must not be
// changed; see WithUDPPort.
var JSON = sync.OnceValue(func() []byte {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic(err) // never: the generator's test checks the linked program
	}
	program, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return program
})

// P4Info is the program's control-plane API as a text protobuf (p4.config.v1.P4Info). It
// must not be changed.
//
//go:embed build/headgate.p4info.txtpb
var P4Info []byte

// Chips are the Tofino chips that the program is compiled for, as targets are named in the
// configuration.
func Chips() []string { return []string{"tofino1", "tofino2"} }

// Program is the pipeline that p4c's Tofino backend compiled for one chip, as far as a controller needs it to
// drive a switch. The device's binary is not part of it, because only the switch needs that; `make p4-tofino`
// leaves it in bin/tofino1 and bin/tofino2.
type Program struct {
	Chip   string // one of Chips
	P4Info []byte // text protobuf, p4.config.v1.P4Info; must not be changed
	BFRT   []byte // the BF Runtime schema of the same objects, JSON; must not be changed
}

//go:embed build/tofino*/headgate.p4info.txtpb build/tofino*/bf-rt.json
var tofino embed.FS

// Tofino returns the program for a chip. The error names what is allowed.
func Tofino(chip string) (Program, error) {
	if !slices.Contains(Chips(), chip) {
		return Program{}, fmt.Errorf("chip %q: want one of %s", chip, strings.Join(Chips(), ", "))
	}
	p := Program{Chip: chip}
	for name, to := range map[string]*[]byte{
		"headgate.p4info.txtpb": &p.P4Info,
		"bf-rt.json":            &p.BFRT,
	} {
		data, err := tofino.ReadFile("build/" + chip + "/" + name)
		if err != nil {
			return Program{}, fmt.Errorf("chip %s: the program was not compiled before this binary was built (make p4-tofino): %w", chip, err)
		}
		*to = data
	}
	return p, nil
}

// WithUDPPort returns JSON for another UDP port of packets with a maxQD shim than ids.UDPPortMaxQD: 1 … 65535
// but not ids.UDPPortRoCE. The port is a constant of the parser. P4 has value sets for such settings, but
// BMv2's P4Runtime server does not support them. So the compiled program is changed in the two places with the
// number: the parser branches on it, and the control Foreign checks packets to it.
func WithUDPPort(port uint16) ([]byte, error) {
	switch port {
	case ids.UDPPortMaxQD:
		return JSON(), nil
	case 0, ids.UDPPortRoCE:
		return nil, fmt.Errorf("UDP port %d: want 1 to 65535 but not %d, which is RoCEv2's", port, ids.UDPPortRoCE)
	}
	return bytes.ReplaceAll(JSON(), constant(ids.UDPPortMaxQD), constant(port)), nil
}

// constant returns a constant of 16 bits as p4c writes it.
func constant(v uint16) []byte { return fmt.Appendf(nil, `"0x%04x"`, v) }
