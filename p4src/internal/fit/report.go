// Package fit reports how the pipeline fits a Tofino chip: the stages, memories and ALUs that it takes, by
// stage and by feature, according to the compiler. Read digests the compiler's report into a Report, which is
// committed as JSON beside the program's artefacts. Documents are made from it.
package fit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Kind is a resource that every stage of a chip has the same number of.
type Kind string

// The kinds that a report counts.
const (
	SRAM     Kind = "sram"
	MapRAM   Kind = "map_ram"
	TCAM     Kind = "tcam"
	MeterALU Kind = "meter_alu"
	StatsALU Kind = "stats_alu"
	Table    Kind = "table"
	Gateway  Kind = "gateway"
	VLIW     Kind = "vliw"
	HashDist Kind = "hash_dist"
	ExactX   Kind = "exact_xbar"
	TernaryX Kind = "ternary_xbar"
	ActionB  Kind = "action_bus"
)

// resource is a kind, its name in a heading, and its place in a stage of the compiler's report: the list of
// units in use, and the numbers whose product is the number of units.
type resource struct {
	Kind
	title, section, list string
	size                 []string
}

// resources are the kinds in the order of documents.
var resources = []resource{
	{SRAM, "SRAM blocks", "rams", "srams", []string{"nRows", "nColumns"}},              // of 128 bits × 1024: exact matches, action data, counters, registers
	{MapRAM, "map RAM blocks", "map_rams", "maprams", []string{"nRows", "nUnits"}},     // of 11 bits × 1024: idle times, addresses of counters and registers
	{TCAM, "TCAM blocks", "tcams", "tcams", []string{"nRows", "nColumns"}},             // of 44 bits × 512
	{MeterALU, "stateful ALUs and filters", "meter_alus", "meters", []string{"nAlus"}}, // of registers, low-pass filters, meters, selectors
	{StatsALU, "counter ALUs", "statistic_alus", "stats", []string{"nAlus"}},
	{Table, "logical tables", "logical_tables", "ids", []string{"size"}},       // conditions included
	{Gateway, "gateways", "gateways", "gateways", []string{"nRows", "nUnits"}}, // conditions
	{VLIW, "instruction words", "vliw", "instructions", []string{"size"}},
	{HashDist, "hash distribution units", "hash_distribution_units", "units", []string{"nHashIds", "nUnitIds"}},
	{ExactX, "exact crossbar bytes", "xbar_bytes", "bytes", []string{"exact_size"}},
	{TernaryX, "ternary crossbar bytes", "xbar_bytes", "bytes", []string{"ternary_size"}},
	{ActionB, "action bus bytes", "action_bus_bytes", "bytes", []string{"size"}},
}

// Use counts resources.
type Use map[Kind]int

// Report is the program's fit on one chip.
type Report struct {
	Chip       string         `json:"chip"`
	Stages     int            `json:"stages"`    // stages of the chip
	PerStage   Use            `json:"per_stage"` // capacity of each stage
	Ingress    []int          `json:"ingress"`   // stages that hold an ingress table
	Egress     []int          `json:"egress"`    // stages that hold an egress table
	Use        []Use          `json:"use"`       // by stage
	Stateful   int            `json:"stateful"`  // of MeterALU, those that are registers' ALUs
	Features   []Feature      `json:"features"`
	PHV        []Containers   `json:"phv"`
	Parser     map[string]int `json:"parser"`      // rows of the parser's TCAM in use, by half
	ParserRows int            `json:"parser_rows"` // rows of each half's parser
}

// Feature is one feature's use of one half of the pipeline. A resource that two features
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

// JSON returns the report in the form that is committed.
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

// Markdown writes the report as tables for operators: the whole chip, its stages, its
// features, its containers.
func (r *Report) Markdown() string {
	var w strings.Builder
	fmt.Fprintf(&w, "Ingress takes %s, egress %s, of %d stages.\n\n", stages(r.Ingress), stages(r.Egress), r.Stages)

	w.WriteString("| resource | in use | of | busiest stage | stages 0, 1, 2, … |\n| --- | ---: | ---: | ---: | --- |\n")
	for _, kind := range resources {
		k := kind.Kind
		per, most := make([]string, len(r.Use)), 0
		for i, u := range r.Use {
			per[i] = fmt.Sprint(u[k])
			most = max(most, u[k])
		}
		fmt.Fprintf(&w, "| %s | %d | %d | %s of %d | %s |\n", kind.title, r.Sum(k), r.PerStage[k]*r.Stages,
			fmt.Sprint(most), r.PerStage[k], strings.Join(per, " "))
	}
	fmt.Fprintf(&w, "\n%d of the ALUs for registers, filters and selectors are stateful ALUs of registers.\n", r.Stateful)

	w.WriteString("\n| feature | stages | tables | SRAM | map RAM | TCAM | stateful ALUs | filters, selectors | counter ALUs | gateways |\n" +
		"| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, f := range r.Features {
		fmt.Fprintf(&w, "| %s | %s |", f.Name, list(f.Stages))
		for _, n := range []int{f.Use[Table], f.Use[SRAM], f.Use[MapRAM], f.Use[TCAM], f.Stateful, f.Use[MeterALU] - f.Stateful, f.Use[StatsALU], f.Use[Gateway]} {
			fmt.Fprintf(&w, " %s |", count(n))
		}
		w.WriteString("\n")
	}

	w.WriteString("\n| containers (PHV) | ingress | egress | free | of |\n| --- | ---: | ---: | ---: | ---: |\n")
	for _, c := range r.PHV {
		fmt.Fprintf(&w, "| %s, %d bits | %d | %d | %d | %d |\n", c.Kind, c.Width, c.Ingress, c.Egress, c.Total-c.Ingress-c.Egress, c.Total)
	}
	fmt.Fprintf(&w, "\nThe parsers take %d (ingress) and %d (egress) of %d rows of their TCAMs.\n",
		r.Parser["ingress"], r.Parser["egress"], r.ParserRows)
	return w.String()
}

// stages says how many stages a half takes and which.
func stages(list []int) string {
	if len(list) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d (%s)", len(list), ranges(list))
}

func list(stages []int) string {
	if len(stages) == 0 {
		return "–"
	}
	return ranges(stages)
}

// ranges writes sorted numbers with runs shortened: 0–3, 5.
func ranges(sorted []int) string {
	var parts []string
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, fmt.Sprint(sorted[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d–%d", sorted[i], sorted[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

func count(n int) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprint(n)
}
