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

// report prints medians; a ratio is that of medians, to BMv2's.
func report(scenario, program string, kinds []kind, all map[kind][]sample) {
	fmt.Printf("%s, %s (medians of %d runs)\n  %-34s", scenario, program, len(all[kinds[0]]), "")
	theirs := slices.Contains(kinds, bmv2)
	for _, k := range kinds {
		fmt.Printf(" %14v", k)
		if theirs && k != bmv2 {
			fmt.Printf(" %7s", "ratio")
		}
	}
	fmt.Println()
	for i, v := range all[kinds[0]][0] {
		fmt.Printf("  %-34s", v.name)
		for _, k := range kinds {
			m := middle(all[k], i)
			fmt.Printf(" %14.0f", m)
			switch {
			case !theirs || k == bmv2:
			case v.ratio > 0:
				fmt.Printf(" %6.1f×", m/middle(all[bmv2], i))
			case v.ratio < 0:
				fmt.Printf(" %6.1f×", middle(all[bmv2], i)/m)
			default:
				fmt.Printf(" %7s", "")
			}
		}
		fmt.Println()
	}
}
