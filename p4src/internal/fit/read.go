package fit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Read digests the output of compiler and assembler for one chip: pipe/logs/resources.json and phv.json,
// pipe/context.json, and the assembly.
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
	if err := r.countStages(c.Resources.MAU.Stage, ctx.features()); err != nil {
		return nil, err
	}
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
func (r *Report) countStages(stages []map[string]json.RawMessage, names featureNames) error {
	features := map[string]*Feature{}
	for _, s := range stages {
		number := 0
		if err := json.Unmarshal(s["stage_number"], &number); err != nil {
			return fmt.Errorf("resources.json: stage_number: %w", err)
		}
		for len(r.Use) <= number {
			r.Use = append(r.Use, Use{})
		}
		for _, kind := range resources {
			has, use, err := kind.in(s)
			if err != nil {
				return err
			}
			k := kind.Kind
			r.PerStage[k] = has
			seen := map[[6]int]bool{}
			used := map[string]bool{} // feature and place
			for _, e := range use {
				first := !seen[e.place()]
				seen[e.place()] = true
				if first {
					r.Use[number][k]++
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
					if !slices.Contains(f.Stages, number) {
						f.Stages = append(f.Stages, number)
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
	return nil
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
