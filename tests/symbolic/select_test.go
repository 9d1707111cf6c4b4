package symbolic

import (
	"regexp"
	"strings"
)

// values matches the values of one packet that the tool adds to a line of its trace. Without them, a line names a
// statement of the program, the branch taken, or the action chosen.
var values = regexp.MustCompile(`\| Computed: .*| Condition: .*; Result:|Key\(s\): .*\| Chosen|->.*| \| Condition.*`)

// statements returns the parts of the program that a case covers.
func (c *testCase) statements() map[string]bool {
	seen := map[string]bool{}
	for _, t := range c.trace {
		kind, rest, _ := strings.Cut(t, "]")
		switch strings.TrimPrefix(kind, "[") {
		case "State", "AssignmentStatement", "MethodCall", "ExtractSuccess", "ExtractFailure", "If Statement":
			seen[kind+values.ReplaceAllString(rest, "")] = true
		}
		if strings.HasPrefix(t, "[Table Branch: ") {
			seen[values.ReplaceAllString(t, "")] = true
		}
	}
	return seen
}

// choose picks cases that together cover as much as the given ones, each time the one that adds most, up to a
// number.
func choose(all []testCase, most int) (chosen []testCase) {
	left := map[string]bool{}
	seen := make([]map[string]bool, len(all))
	for i := range all {
		seen[i] = all[i].statements()
		seen[i]["dropped "+all[i].Drop] = true
		for s := range seen[i] {
			left[s] = true
		}
	}
	used := make([]bool, len(all))
	for len(chosen) < min(most, len(all)) {
		best, gain := -1, -1
		for i := range all {
			n := 0
			for s := range seen[i] {
				if left[s] {
					n++
				}
			}
			if !used[i] && n > gain {
				best, gain = i, n
			}
		}
		if gain == 0 { // everything is covered once: start again with the remaining cases
			clear(left)
			for i := range all {
				for s := range seen[i] {
					if !used[i] {
						left[s] = true
					}
				}
			}
		}
		used[best] = true
		chosen = append(chosen, all[best])
		for s := range seen[best] {
			delete(left, s)
		}
	}
	return chosen
}
