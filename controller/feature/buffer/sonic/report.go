package sonic

import (
	"fmt"
	"slices"
	"strings"

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

// fault reports a fault of a field.
func (r *report) fault(path, format string, args ...any) {
	r.broken = true
	r.add(path, format, args...)
}

func (r *report) add(path, format string, args ...any) {
	r.faults = append(r.faults, yamlnode.Fault{Line: r.line(path), Field: path, Text: fmt.Sprintf(format, args...)})
}

// unlike names a value that the other side does not have, and the nearest one.
func (r *report) unlike(path, is, want, nearest string) {
	if r.approximate {
		r.warnings = append(r.warnings, fmt.Sprintf("%s: is %s, want %s: %s as %s", path, is, want, r.done, nearest))
		return
	}
	r.add(path, "is %s, want %s; with --approximate it would be %s as %s", is, want, r.done, nearest)
}

// merged returns faults with those alike of several rows of a table as one, which names the rows.
func merged(faults []yamlnode.Fault) (all []yamlnode.Fault) {
	type kind struct{ table, field, text string }
	rows := map[kind][]string{}
	var order []kind
	for _, f := range faults {
		k := kind{text: f.Text}
		var row string
		if k.table, row, _ = strings.Cut(f.Field, "|"); row != "" {
			row, k.field, _ = strings.Cut(row, "|")
		}
		if rows[k] == nil {
			order = append(order, k)
		}
		if !slices.Contains(rows[k], row) {
			rows[k] = append(rows[k], row)
		}
	}
	for _, k := range order {
		field := k.table
		if names := portList(rows[k]); names != "" {
			field = path(field, names)
		}
		if k.field != "" {
			field = path(field, k.field)
		}
		all = append(all, yamlnode.Fault{Field: field, Text: k.text})
	}
	return all
}

// portList writes names, and of many the first ones and how many others there are.
func portList(names []string) string {
	const most = 8
	if len(names) > most {
		return fmt.Sprintf("%s and %d others", strings.Join(names[:most], " "), len(names)-most)
	}
	return strings.Join(names, " ")
}
