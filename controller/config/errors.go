package config

import (
	"fmt"
	"sort"
	"strings"

	"github.com/headgate/headgate/controller/view"
)

// Error is a fabric file with faults: all that were found, in the order of their lines.
type Error struct {
	File string
	List []view.Fault
}

// Faults returns the faults.
func (e *Error) Faults() []view.Fault { return e.List }

// Error prints one fault a line, each as file:line: field: text.
func (e *Error) Error() string {
	lines := make([]string, len(e.List))
	for i, f := range e.List {
		lines[i] = faultText(e.File, f)
	}
	return strings.Join(lines, "\n")
}

func faultText(file string, f view.Fault) string {
	var b strings.Builder
	b.WriteString(file)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d", f.Line)
	}
	if f.Field != "" {
		b.WriteString(": " + f.Field)
	}
	b.WriteString(": " + f.Text)
	return b.String()
}

// maxFaults bounds a report; the rest would not be read by anybody.
const maxFaults = 100

// faults collects; the zero value is ready.
type faults struct {
	found []view.Fault
	more  int
}

func (f *faults) add(line int, field, format string, args ...any) {
	if len(f.found) >= maxFaults {
		f.more++
		return
	}
	f.found = append(f.found, view.Fault{Line: line, Field: field, Text: fmt.Sprintf(format, args...)})
}

// err returns nil or an *Error.
func (f *faults) err(file string) error {
	if len(f.found) == 0 {
		return nil
	}
	sort.SliceStable(f.found, func(i, j int) bool { return f.found[i].Line < f.found[j].Line })
	list := f.found
	if f.more > 0 {
		list = append(list, view.Fault{Text: fmt.Sprintf("and %d more faults", f.more)})
	}
	return &Error{File: file, List: list}
}
