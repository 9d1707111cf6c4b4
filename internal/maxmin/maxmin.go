// Package maxmin computes weighted max-min fair rates by progressive filling (Bertsekas and Gallager, Data
// Networks, §6.5.2). It does not depend on Söze: the measured shares of Söze and of other laws are compared
// with its results.
package maxmin

import (
	"fmt"
	"math"
	"slices"
)

// None is the bottleneck of a flow that its own limit bounds.
const None = -1

// Flow is one flow over links.
type Flow struct {
	Weight float64 // finite and above 0
	Path   []int   // indices of the links it crosses, each once
	Limit  float64 // limit of its rate, in the unit of the capacities; 0 for none
}

// Allocation is the weighted max-min fair allocation: no flow's rate can grow without
// taking from a flow whose rate per weight is not larger.
type Allocation struct {
	Rate       []float64 // per flow, in the unit of the capacities
	Bottleneck []int     // per flow: the link that holds it, None when its limit does
}

// Solve returns the allocation for links with the given capacities, in any unit, at least
// 0 and finite. An error names the flow or link that is wrong. The time is proportional
// to the number of distinct bottlenecks times the sum of path lengths.
func Solve(capacity []float64, flows []Flow) (Allocation, error) {
	if err := check(capacity, flows); err != nil {
		return Allocation{}, err
	}
	a := Allocation{Rate: make([]float64, len(flows)), Bottleneck: make([]int, len(flows))}
	fixed := make([]bool, len(flows))
	left := make([]float64, len(capacity))   // capacity of each link that the fixed flows leave
	weight := make([]float64, len(capacity)) // sum of the weights of each link's flows that still rise
	for rising := len(flows); rising > 0; {
		copy(left, capacity)
		clear(weight)
		for i, f := range flows {
			for _, l := range f.Path {
				if fixed[i] {
					left[l] -= a.Rate[i]
				} else {
					weight[l] += f.Weight
				}
			}
		}
		level, link := math.Inf(1), None // rate per weight at which the next flow is held
		for l := range capacity {
			if weight[l] > 0 && max(left[l], 0)/weight[l] < level {
				level, link = max(left[l], 0)/weight[l], l
			}
		}
		limited := false
		for i, f := range flows {
			if !fixed[i] && f.Limit > 0 && f.Limit/f.Weight <= level {
				fixed[i], limited = true, true
				a.Rate[i], a.Bottleneck[i] = f.Limit, None
				rising--
			}
		}
		if limited {
			// Flows bounded by their limits leave more to the others, so the level is searched again.
			continue
		}
		for i, f := range flows {
			if !fixed[i] && slices.Contains(f.Path, link) {
				fixed[i] = true
				a.Rate[i], a.Bottleneck[i] = level*f.Weight, link
				rising--
			}
		}
	}
	return a, nil
}

func check(capacity []float64, flows []Flow) error {
	for l, c := range capacity {
		if !(c >= 0) || math.IsInf(c, 1) {
			return fmt.Errorf("link %d: capacity %v: want a finite number of at least 0", l, c)
		}
	}
	for i, f := range flows {
		if !(f.Weight > 0) || math.IsInf(f.Weight, 1) {
			return fmt.Errorf("flow %d: weight %v: want a finite number above 0", i, f.Weight)
		}
		if !(f.Limit >= 0) {
			return fmt.Errorf("flow %d: limit %v: want 0 for none, or more", i, f.Limit)
		}
		if len(f.Path) == 0 && (f.Limit == 0 || math.IsInf(f.Limit, 1)) {
			return fmt.Errorf("flow %d: nothing bounds its rate: want a path or a limit", i)
		}
		for j, l := range f.Path {
			if l < 0 || l >= len(capacity) {
				return fmt.Errorf("flow %d: link %d: want 0 to %d", i, l, len(capacity)-1)
			}
			for _, k := range f.Path[:j] {
				if k == l {
					return fmt.Errorf("flow %d: link %d is on its path twice", i, l)
				}
			}
		}
	}
	return nil
}
