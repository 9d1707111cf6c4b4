package sonic

import (
	"fmt"

	"github.com/headgate/headgate/internal/yamlnode"
)

// report collects what one side does not have.
type report struct {
	approximate bool   // the nearest is taken where there is one, with a warning
	done        string // "exported" or "imported"
	line        func(path string) int
	faults      []yamlnode.Fault
	broken      bool // a fault has no nearest to go on with
	warnings    []string
}

// fault says what is wrong with a field.
func (r *report) fault(path, format string, args ...any) {
	r.broken = true
	r.add(path, format, args...)
}

func (r *report) add(path, format string, args ...any) {
	r.faults = append(r.faults, yamlnode.Fault{Line: r.line(path), Field: path, Text: fmt.Sprintf(format, args...)})
}

// unlike says what the other side does not have, and what is nearest to it.
func (r *report) unlike(path, is, want, nearest string) {
	if r.approximate {
		r.warnings = append(r.warnings, fmt.Sprintf("%s: is %s, want %s: %s as %s", path, is, want, r.done, nearest))
		return
	}
	r.add(path, "is %s, want %s; with --approximate it would be %s as %s", is, want, r.done, nearest)
}
