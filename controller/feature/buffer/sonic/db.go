package sonic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/units"
)

const maxFaults = 100

// known are the tables of buffers and classes, each with the reason why parts of it are not imported.
var known = map[string]string{
	tablePool:    "no priority group of a port has this pool, or the field is not of its policy",
	tableProfile: "no priority group of a port has this profile, or the field is not of its policy",
	tablePG:      "no such port has PFC",
	tableQueue:   "egress queues have no limit below the buffer here",
	tableCable:   "no such port has PFC",
	tablePortQoS: "the sections have no such setting of a port",
	tableDSCP:    "no port has this map",
	tableTCQueue: "no port has this map",
	tableTCPG:    "no port has this map",
	tablePFC:     "no port has this map",
	tablePFCPG:   "no port has this map",
	tablePFCWD:   "the sections have no such setting of the watchdog",

	"BUFFER_PORT_INGRESS_PROFILE_LIST":  "ports have no limit beside those of their queues here",
	"BUFFER_PORT_EGRESS_PROFILE_LIST":   "ports have no limit beside those of their queues here",
	"DEFAULT_LOSSLESS_BUFFER_PARAMETER": "it is what the switch computes headroom from",
	"LOSSLESS_TRAFFIC_PATTERN":          "it is what the switch computes headroom from",
	tableWRED:                           "no queue of a port under PFC marks by this profile, or the field is for packets that a meter coloured",
	tableEgress:                         "queues mark but never drop early here",
	tableSched:                          "no queue of a port under PFC has it, or the field is of a rate or a meter, which queues do not have here",
	"DOT1P_TO_TC_MAP":                   "classes are by DSCP here",
	"EXP_TO_FC_MAP":                     "classes are by DSCP here",
	"DSCP_TO_FC_MAP":                    "classes are by DSCP here",
	"MPLS_TC_TO_TC_MAP":                 "classes are by DSCP here",
	"TC_TO_DSCP_MAP":                    "packets keep their DSCP here",
	"TC_TO_DOT1P_MAP":                   "packets keep their priority here",
}

// read reads some tables of a CONFIG_DB. Values must be strings. Others are a fault in tables that are imported, and
// are skipped in tables such as PORT, of which few fields are needed.
func read(text []byte, tables ...string) (db DB, faults []yamlnode.Fault) {
	db = DB{}
	fault := func(field, format string, args ...any) {
		faults = append(faults, yamlnode.Fault{Field: field, Text: fmt.Sprintf(format, args...)})
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil || all == nil {
		fault("", "is no JSON object of tables: %v", err)
		return nil, faults
	}
	dump, err := dumped(all)
	if err != nil {
		fault("", "%v", err)
		return nil, faults
	}
	for _, table := range tables {
		rows := dump[table]
		if dump == nil && all[table] != nil {
			if err := json.Unmarshal(all[table], &rows); err != nil {
				fault(table, "is not an object of rows, each an object of fields: %v", err)
				continue
			}
		}
		if rows == nil {
			continue
		}
		db[table] = map[string]map[string]string{}
		for _, key := range slices.Sorted(maps.Keys(rows)) {
			row := map[string]string{}
			db[table][key] = row
			for _, field := range slices.Sorted(maps.Keys(rows[key])) {
				value := rows[key][field]
				var s string
				switch err := json.Unmarshal(value, &s); {
				case field == empty && s == empty:
				case err == nil && !bytes.Equal(value, []byte("null")):
					row[field] = s
				case table != tablePort && slices.Contains(owned, table):
					fault(path(table, key, field), "is %.40s, want a string, as all values of a CONFIG_DB are", value)
				}
			}
		}
	}
	return db, faults
}

// empty is the field, and its value, that a row without fields has in the database.
const empty = "NULL"

// dumped returns the tables of a dump of the database, as sonic-db-dump and redis-dump write it: a key for each row,
// with the row as value. It returns nil for a file of tables.
func dumped(all map[string]json.RawMessage) (map[string]map[string]map[string]json.RawMessage, error) {
	dump, other := map[string]map[string]map[string]json.RawMessage{}, ""
	for key, text := range all {
		var row struct {
			Type  string
			Value json.RawMessage
		}
		if err := json.Unmarshal(text, &row); err != nil || row.Type == "" || row.Value == nil {
			continue // a table
		}
		table, name, ok := strings.Cut(key, "|")
		if !ok {
			if strings.Contains(key, ":") {
				other = max(other, key)
			}
			continue
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(row.Value, &fields); err != nil {
			return nil, fmt.Errorf("is a dump of a database, whose key %q has %.40s as value, want an object of fields", key, row.Value)
		}
		if dump[table] == nil {
			dump[table] = map[string]map[string]json.RawMessage{}
		}
		dump[table][name] = fields
	}
	switch {
	case len(dump) > 0:
		return dump, nil
	case other != "":
		return nil, fmt.Errorf("is a dump of another database, with the key %q, want that of CONFIG_DB: sonic-db-dump -n CONFIG_DB -y, or /etc/sonic/config_db.json", other)
	}
	return nil, nil
}

// ReadPorts reads the table PORT of a CONFIG_DB, for Options.Switch. The error is as Import's.
func ReadPorts(file string, text []byte) (DB, error) {
	db, faults := read(text, tablePort)
	return db, yamlnode.NewError(file, faults, maxFaults)
}

func path(parts ...string) string { return strings.Join(parts, "|") }

// name returns the row that a value refers to: releases before 202106 wrote [BUFFER_PROFILE|name].
func name(value string) string {
	if strings.HasPrefix(value, "[") && strings.HasSuffix(value, "]") {
		_, value, _ = strings.Cut(value[1:len(value)-1], "|")
	}
	return value
}

// members reads a key such as Ethernet0|3-4, or Ethernet0,Ethernet4|3: its ports, and the first and the last of
// its priority groups or queues.
func members(key string) (ports []string, low, high int, ok bool) {
	names, numbers, _ := strings.Cut(key, "|")
	first, last, isRange := strings.Cut(numbers, "-")
	if !isRange {
		last = first
	}
	low, err := strconv.Atoi(first)
	high, err2 := strconv.Atoi(last)
	return strings.Split(names, ","), low, high, err == nil && err2 == nil && 0 <= low && low <= high && high < 64
}

func classList(text string) (mask uint8, ok bool) {
	var classes units.Classes
	err := classes.UnmarshalText([]byte(cmp.Or(text, "none")))
	return uint8(classes), err == nil
}

// get returns a value, and notes it as taken.
func (r *importer) get(table, key, field string) (value string, ok bool) {
	if value, ok = r.db[table][key][field]; ok {
		r.taken[path(table, key, field)] = true
	}
	return value, ok
}

// take marks a row, or some of its fields, as imported.
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

// report collects the settings that one side cannot express.
type report struct {
	approximate bool   // use the nearest value, if there is one, with a warning
	done        string // "exported" or "imported"
	line        func(path string) int
	faults      []yamlnode.Fault
	broken      bool // a fault has no nearest to go on with
	warnings    []string
}

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

// merged returns the faults; equal ones of several rows of a table become one fault that names the rows.
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

func portList(names []string) string {
	const most = 8
	if len(names) > most {
		return fmt.Sprintf("%s and %d others", strings.Join(names[:most], " "), len(names)-most)
	}
	return strings.Join(names, " ")
}
