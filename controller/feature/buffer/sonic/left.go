package sonic

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// get returns a value, and notes it as taken.
func (r *importer) get(table, key, field string) (value string, ok bool) {
	if value, ok = r.db[table][key][field]; ok {
		r.taken[path(table, key, field)] = true
	}
	return value, ok
}

// take notes a row, or some fields of it, as taken.
func (r *importer) take(table, key string, fields ...string) {
	if len(fields) == 0 {
		fields = slices.Collect(maps.Keys(r.db[table][key]))
	}
	for _, field := range fields {
		r.get(table, key, field)
	}
}

// left returns the rows of known tables that are not imported, one line for rows with the same reason.
func (r *importer) left() []string {
	lines := r.notes
	for _, table := range slices.Sorted(maps.Keys(known)) {
		rows := r.db[table]
		var order []string
		keys := map[string][]string{}
		whole := len(rows) > 0
		for _, key := range slices.Sorted(maps.Keys(rows)) {
			var fields []string
			for _, field := range slices.Sorted(maps.Keys(rows[key])) {
				if !r.taken[path(table, key, field)] {
					fields = append(fields, field)
				}
			}
			if len(fields) == 0 && len(rows[key]) > 0 {
				whole = false
				continue
			}
			text := strings.Join(fields, ",")
			if len(fields) == len(rows[key]) {
				text = ""
			} else {
				whole = false
			}
			if keys[text] == nil {
				order = append(order, text)
			}
			keys[text] = append(keys[text], key)
		}
		if whole {
			lines = append(lines, fmt.Sprintf("%s (rows: %d): %s", table, len(rows), known[table]))
			continue
		}
		for _, fields := range order {
			at := path(table, strings.Join(keys[fields], " "))
			if fields != "" {
				at = path(at, fields)
			}
			lines = append(lines, at+": "+known[table])
		}
	}
	return lines
}
