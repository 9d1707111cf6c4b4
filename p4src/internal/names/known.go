package names

import (
	"fmt"
	"slices"
	"strings"
)

// Reason says why differences are right.
type Reason struct {
	Why         string
	Chips       []string // on which; empty: on every chip
	Differences []Difference
}

// Unexplained compares what was found on a chip with what is known: differences without a
// reason, and known ones that are no more.
func Unexplained(chip string, found []Difference, known []Reason) (unlisted, gone []Difference) {
	var listed []Difference
	for _, r := range known {
		if len(r.Chips) == 0 || slices.Contains(r.Chips, chip) {
			listed = append(listed, r.Differences...)
		}
	}
	for _, d := range found {
		if !slices.Contains(listed, d) {
			unlisted = append(unlisted, d)
		}
	}
	for _, d := range listed {
		if !slices.Contains(found, d) {
			gone = append(gone, d)
		}
	}
	return unlisted, gone
}

// String writes the difference in words.
func (d Difference) String() string {
	switch {
	case d.Aspect == "" && d.Tofino == absent:
		return d.Object + ": only on v1model"
	case d.Aspect == "" && d.V1 == absent:
		return d.Object + ": only on Tofino"
	}
	return fmt.Sprintf("%s, %s: %s on v1model, %s on Tofino", d.Object, d.Aspect, d.V1, d.Tofino)
}

// Markdown writes reasons as a table.
func Markdown(known []Reason) string {
	var w strings.Builder
	w.WriteString("| differs | why |\n| --- | --- |\n")
	for _, r := range known {
		why := r.Why
		if len(r.Chips) > 0 {
			why = fmt.Sprintf("(%s) %s", strings.Join(r.Chips, ", "), why)
		}
		fmt.Fprintf(&w, "| %s | %s |\n", strings.Join(r.lines(), "<br>"), why)
	}
	return w.String()
}

// lines writes the differences: objects that one side lacks together, others one by one.
func (r Reason) lines() []string {
	var v1, tofino, other []string
	for _, d := range r.Differences {
		name := "`" + d.Object + "`"
		switch {
		case d.Aspect == "" && d.Tofino == absent:
			v1 = append(v1, name)
		case d.Aspect == "" && d.V1 == absent:
			tofino = append(tofino, name)
		default:
			other = append(other, strings.ReplaceAll(d.String(), d.Object, name))
		}
	}
	var lines []string
	if len(v1) > 0 {
		lines = append(lines, "only on v1model: "+strings.Join(v1, ", "))
	}
	if len(tofino) > 0 {
		lines = append(lines, "only on Tofino: "+strings.Join(tofino, ", "))
	}
	return append(lines, other...)
}
