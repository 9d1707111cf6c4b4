package view

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/units"
)

// Table describes what a feature shows of a switch: operators see the rows of a Status,
// Prometheus sees one metric a column. It is never changed.
type Table struct {
	Feature string
	Name    string   // a word, unique within the feature
	Keys    []string // what tells rows apart, words such as "port"; labels of the metrics
	Columns []Column
}

// Column is one value of each row.
type Column struct {
	Head    string // for people, such as "PAUSES"
	Metric  string // its name without "headgate_" and "_total"; "" for what is no metric
	Help    string // of the metric, a sentence
	Counter bool   // it only grows
}

// Status is a table with its rows as of now.
type Status struct {
	*Table
	Rows []Row
}

// Row has one key for each of the table's and one value for each column.
type Row struct {
	Keys []string
	// Values are of the types string, bool, int, uint64, float64, units.Bytes, time.Duration
	// and time.Time; nil and the zero time are unknown.
	Values []any
}

// Text returns a value for people, with its unit; "" for what is unknown.
func Text(v any, now time.Time) string {
	switch v := v.(type) {
	case nil:
		return ""
	case bool:
		return map[bool]string{true: "yes", false: "no"}[v]
	case time.Duration:
		return units.FromDuration(v).String()
	case time.Time:
		if v.IsZero() {
			return ""
		}
		return max(0, now.Sub(v)).Truncate(time.Second).String() + " ago"
	}
	return fmt.Sprint(v)
}

// Number returns a value as a metric has it, in base units; false for a text and for what
// is unknown.
func Number(v any) (float64, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	case units.Bytes:
		return float64(v), true
	case time.Duration:
		return v.Seconds(), true
	case time.Time:
		return float64(v.UnixMilli()) / 1000, !v.IsZero()
	}
	return 0, false
}
