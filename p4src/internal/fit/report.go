// Package fit is how the pipeline fits a Tofino chip: the stages, memories and ALUs that it
// takes, by stage and by feature, as the compiler reports them. Read digests the compiler's
// report into a Report, which is committed as JSON beside the program's artefacts;
// documents are made from that.
package fit

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Kind is a resource that every stage of a chip has the same number of.
type Kind string

// The kinds that a report counts.
const (
	SRAM     Kind = "sram"      // blocks of 128 bits × 1024: exact matches, action data, counters, registers
	MapRAM   Kind = "map_ram"   // blocks of 11 bits × 1024: idle times, addresses of counters and registers
	TCAM     Kind = "tcam"      // blocks of 44 bits × 512
	MeterALU Kind = "meter_alu" // stateful ALUs of registers, low-pass filters, meters, selectors
	StatsALU Kind = "stats_alu" // of counters
	Table    Kind = "table"     // logical tables, conditions included
	Gateway  Kind = "gateway"   // conditions
	VLIW     Kind = "vliw"      // instruction words of actions
	HashDist Kind = "hash_dist" // hash distribution units
	ExactX   Kind = "exact_xbar"
	TernaryX Kind = "ternary_xbar" // bytes of the match crossbar
	ActionB  Kind = "action_bus"   // bytes of the action data bus
)

// Kinds lists the kinds in the order of documents.
func Kinds() []Kind {
	return []Kind{SRAM, MapRAM, TCAM, MeterALU, StatsALU, Table, Gateway, VLIW, HashDist, ExactX, TernaryX, ActionB}
}

// Title is the kind's name in a heading.
func (k Kind) Title() string {
	switch k {
	case SRAM:
		return "SRAM blocks"
	case MapRAM:
		return "map RAM blocks"
	case TCAM:
		return "TCAM blocks"
	case MeterALU:
		return "stateful ALUs and filters"
	case StatsALU:
		return "counter ALUs"
	case Table:
		return "logical tables"
	case Gateway:
		return "gateways"
	case VLIW:
		return "instruction words"
	case HashDist:
		return "hash distribution units"
	case ExactX:
		return "exact crossbar bytes"
	case TernaryX:
		return "ternary crossbar bytes"
	case ActionB:
		return "action bus bytes"
	}
	return string(k)
}

// Use counts resources.
type Use map[Kind]int

// Report is the program's fit on one chip.
type Report struct {
	Chip       string         `json:"chip"`
	Stages     int            `json:"stages"`    // that the chip has
	PerStage   Use            `json:"per_stage"` // what each stage has
	Ingress    []int          `json:"ingress"`   // stages that hold an ingress table
	Egress     []int          `json:"egress"`    // stages that hold an egress table
	Use        []Use          `json:"use"`       // by stage
	Stateful   int            `json:"stateful"`  // of MeterALU, those that are registers' ALUs
	Features   []Feature      `json:"features"`
	PHV        []Containers   `json:"phv"`
	Parser     map[string]int `json:"parser"`      // rows of the parser's TCAM in use, by half
	ParserRows int            `json:"parser_rows"` // that each half's parser has
}

// Feature is what one feature takes of one half of the pipeline. A resource that two features
// share counts in both.
type Feature struct {
	Name     string `json:"name"` // half and feature, "ingress routing"
	Stages   []int  `json:"stages"`
	Use      Use    `json:"use"`
	Stateful int    `json:"stateful,omitempty"`
}

// Containers are the PHV containers of one kind and width, and how many of them hold a field
// of each half of the pipeline.
type Containers struct {
	Kind    string `json:"kind"`  // normal, tagalong, mocha, dark
	Width   int    `json:"width"` // bits
	Total   int    `json:"total"`
	Ingress int    `json:"ingress"`
	Egress  int    `json:"egress"`
}

// JSON writes the report as it is committed.
func (r *Report) JSON() ([]byte, error) {
	data, err := json.MarshalIndent(r, "", " ")
	return append(data, '\n'), err
}

// Decode reads a committed report.
func Decode(data []byte) (*Report, error) {
	var r Report
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("report of the fit: %w", err)
	}
	if len(r.Use) > r.Stages {
		return nil, fmt.Errorf("report of the fit: use of %d stages; the chip has %d", len(r.Use), r.Stages)
	}
	return &r, nil
}

// Sum returns the whole use of a kind.
func (r *Report) Sum(k Kind) int {
	n := 0
	for _, u := range r.Use {
		n += u[k]
	}
	return n
}
