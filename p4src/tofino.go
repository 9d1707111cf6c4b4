package p4src

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

// Chips are the Tofino chips that the program is compiled for, as targets are named in the
// configuration.
func Chips() []string { return []string{"tofino1", "tofino2"} }

// Program is the pipeline as p4c's Tofino backend compiled it for one chip: what a
// controller needs to drive a switch that runs it. The device's binary is not here: it
// belongs to the switch, `make p4-tofino` leaves it in bin/tofino1 and bin/tofino2.
type Program struct {
	Chip   string // of Chips
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
