package fit

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Read digests what compiler and assembler left about one chip: pipe/logs/resources.json and
// phv.json, pipe/context.json, and the assembly.
func Read(chip, pipe, assembly string) (*Report, error) {
	var c compilerReport
	if err := readJSON(filepath.Join(pipe, "logs", "resources.json"), &c); err != nil {
		return nil, err
	}
	if major, _, _ := strings.Cut(c.SchemaVersion, "."); major != "2" {
		return nil, fmt.Errorf("resources.json has schema version %q; version 2 is understood", c.SchemaVersion)
	}
	var phv phvReport
	if err := readJSON(filepath.Join(pipe, "logs", "phv.json"), &phv); err != nil {
		return nil, err
	}
	var ctx contextReport
	if err := readJSON(filepath.Join(pipe, "context.json"), &ctx); err != nil {
		return nil, err
	}
	source, err := os.ReadFile(assembly)
	if err != nil {
		return nil, err
	}
	r := &Report{Chip: chip, Stages: c.Resources.MAU.Stages, PerStage: Use{}, Parser: map[string]int{}}
	r.Ingress, r.Egress = stagesOf(source, "ingress"), stagesOf(source, "egress")
	r.countStages(c.Resources.MAU.Stage, ctx.features())
	r.countContainers(c, phv)
	for _, p := range c.Resources.Parser.Parsers {
		r.Parser[p.Gress] += len(p.States)
		r.ParserRows = p.Rows
	}
	return r, nil
}

// stagesOf lists the stages in which the assembly has a table of one half.
func stagesOf(assembly []byte, half string) []int {
	var list []int
	section := regexp.MustCompile(`(?m)^stage (\d+) ` + half + `:\n((?:[ \t]+.*\n)*)`)
	table := regexp.MustCompile(`(?m)^  (?:exact_match|ternary_match|atcam_match|proxy_hash|hash_action|gateway|always_run_action)\b`)
	for _, m := range section.FindAllSubmatch(assembly, -1) {
		if n, err := strconv.Atoi(string(m[1])); err == nil && table.Match(m[2]) && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list
}

// countStages fills in the use by stage and by feature.
func (r *Report) countStages(stages []stageUsage, names featureNames) {
	features := map[string]*Feature{}
	for _, s := range stages {
		for len(r.Use) <= s.Number {
			r.Use = append(r.Use, Use{})
		}
		units := s.units()
		for k, u := range units {
			r.PerStage[k] = u.has
			seen := map[[6]int]bool{}
			used := map[string]bool{} // feature and place
			for _, e := range u.use {
				first := !seen[e.place()]
				seen[e.place()] = true
				if first {
					r.Use[s.Number][k]++
				}
				stateful := false
				for _, by := range e.users() {
					stateful = stateful || by.For == "stateful_ram"
					name := names.of(by.By)
					key := fmt.Sprint(name, e.place())
					if used[key] {
						continue
					}
					used[key] = true
					f := features[name]
					if f == nil {
						f = &Feature{Name: name, Use: Use{}}
						features[name] = f
					}
					f.Use[k]++
					if by.For == "stateful_ram" && k == MeterALU {
						f.Stateful++
					}
					if !slices.Contains(f.Stages, s.Number) {
						f.Stages = append(f.Stages, s.Number)
					}
				}
				if first && stateful && k == MeterALU {
					r.Stateful++
				}
			}
		}
	}
	for _, f := range features {
		slices.Sort(f.Stages)
		r.Features = append(r.Features, *f)
	}
	slices.SortFunc(r.Features, func(a, b Feature) int { return cmp.Or(rank(a.Name)-rank(b.Name), strings.Compare(a.Name, b.Name)) })
}

// units is what a stage has of a kind, and what of it is in use.
type units struct {
	has int
	use []element
}

func (s stageUsage) units() map[Kind]units {
	var exact, ternary []element
	for _, e := range s.Xbar.Use {
		if e.ByteType == "ternary" {
			ternary = append(ternary, e)
		} else {
			exact = append(exact, e)
		}
	}
	return map[Kind]units{
		SRAM:     {s.RAMs.Rows * s.RAMs.Columns, s.RAMs.Use},
		MapRAM:   {s.MapRAMs.Rows * s.MapRAMs.Units, s.MapRAMs.Use},
		TCAM:     {s.TCAMs.Rows * s.TCAMs.Columns, s.TCAMs.Use},
		MeterALU: {s.MeterALUs.ALUs, s.MeterALUs.Use},
		StatsALU: {s.StatsALUs.ALUs, s.StatsALUs.Use},
		Table:    {s.Tables.Size, s.Tables.Use},
		Gateway:  {s.Gateways.Rows * s.Gateways.Units, s.Gateways.Use},
		VLIW:     {s.VLIW.Size, s.VLIW.Use},
		HashDist: {s.Hash.IDs * s.Hash.Units, s.Hash.Use},
		ExactX:   {s.Xbar.Exact, exact},
		TernaryX: {s.Xbar.Ternary, ternary},
		ActionB:  {s.Bus.Size, s.Bus.Use},
	}
}

// countContainers fills in the PHV.
func (r *Report) countContainers(c compilerReport, phv phvReport) {
	for _, kind := range []string{"normal", "tagalong", "mocha", "dark"} {
		for _, t := range c.Resources.PHV[kind] {
			row := Containers{Kind: kind, Width: t.Width, Total: t.Units}
			seen := map[int]bool{}
			for _, used := range phv.Containers {
				if used.Kind != kind || used.Width != t.Width || seen[used.Number] {
					continue
				}
				seen[used.Number] = true
				switch used.Gress {
				case "ingress":
					row.Ingress++
				case "egress":
					row.Egress++
				}
			}
			r.PHV = append(r.PHV, row)
		}
	}
}
