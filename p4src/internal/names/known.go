// Package names says why what a controller sees of the pipeline differs between targets:
// tables with their keys and actions, action profiles, counters, digests, registers and the
// headers of packet I/O. One controller drives every target with the same code, so every
// difference needs a reason. Known lists them, and the package's test compares them with
// the committed P4Infos.
package names

import (
	"fmt"
	"strings"
)

// absent stands for a side that does not have an object or an aspect of it.
const absent = "–"

// Difference is an object, or an aspect of an object, that is not the same on both targets.
type Difference struct {
	Object string // kind and name
	Aspect string // "key depth", "id", …; empty when one side lacks the object
	V1     string // on v1model; "–" when absent
	Tofino string // on Tofino; "–" when absent
}

// Reason says why differences are right.
type Reason struct {
	Why         string
	Chips       []string // on which; empty: on every chip
	Differences []Difference
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
