package main

import (
	"fmt"
	"slices"
	"strings"
)

// sample is what one run measured, by name and unit.
type sample []value

type value struct {
	name  string
	v     float64
	ratio int // of the table: 1 where more is better, −1 where less is, 0 for none
}

func (s sample) String() string {
	var parts []string
	for _, v := range s {
		parts = append(parts, fmt.Sprintf("%s %.4g", v.name, v.v))
	}
	return strings.Join(parts, ", ")
}

func median(v []float64) float64 {
	slices.Sort(v)
	n := len(v)
	if n%2 == 1 {
		return v[n/2]
	}
	return (v[n/2-1] + v[n/2]) / 2
}

func middle(all []sample, i int) float64 {
	v := make([]float64, len(all))
	for k, s := range all {
		v[k] = s[i].v
	}
	return median(v)
}

// report prints medians; the ratio is that of medians.
func report(scenario, program string, all map[kind][]sample) {
	one := all[ours]
	if len(one) == 0 {
		one = all[bmv2]
	}
	fmt.Printf("%s, %s (medians of %d runs)\n  %-34s %14s %14s %9s\n", scenario, program, len(one), "", "embedded", "BMv2", "ratio")
	for i, v := range one[0] {
		line := fmt.Sprintf("  %-34s", v.name)
		for _, k := range []kind{ours, bmv2} {
			if len(all[k]) > 0 {
				line += fmt.Sprintf(" %14.0f", middle(all[k], i))
			} else {
				line += fmt.Sprintf(" %14s", "-")
			}
		}
		if v.ratio != 0 && len(all[ours]) > 0 && len(all[bmv2]) > 0 {
			a, b := middle(all[ours], i), middle(all[bmv2], i)
			if v.ratio < 0 {
				a, b = b, a
			}
			line += fmt.Sprintf(" %8.1f×", a/b)
		}
		fmt.Println(line)
	}
}
