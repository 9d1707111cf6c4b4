package weights

import "github.com/headgate/headgate/controller/state/outcome"

// result is the kept result of a change of one flow: its weight before and after.
type result [2]Weight

func resultOf(applied []Applied) []result {
	out := make([]result, len(applied))
	for i, a := range applied {
		out[i] = result{a.Previous, a.Flow.Weight}
	}
	return out
}

// earlier returns the results of the same request's changes, if they were made earlier.
func earlier(r *outcome.Request, changes []Change) ([]Applied, bool) {
	var kept []result
	if !r.Again(&kept) || len(kept) != len(changes) {
		return nil, false
	}
	applied := make([]Applied, len(kept))
	for i, k := range kept {
		applied[i] = Applied{Previous: k[0], Flow: Flow{Key: changes[i].Key, Weight: k[1], Application: changes[i].Application}}
	}
	return applied, true
}
