package weights

import "time"

// DefaultAudit is how many entries the audit log keeps unless told otherwise.
const DefaultAudit = 65536

// What an audit entry is about.
const (
	WhatWeight = "weight"
	WhatBudget = "budget"
	WhatDelete = "delete"
)

// Entry is one line of the audit log: a change, or a refusal, with who asked (§3.4 wants
// time, flow and weight).
type Entry struct {
	Time        time.Time
	Peer        string
	Application string
	Flow        Key // zero for budgets
	Previous    float64
	Value       float64 // as asked, so it may be NaN in a refusal
	What        string
	Refused     string // empty when granted
}

// log is a bounded list of entries, oldest first. Its owner locks.
type log struct {
	limit   int
	entries []Entry
}

// add appends and forgets the oldest; it moves entries only once per limit additions.
func (l *log) add(e ...Entry) {
	l.entries = append(l.entries, e...)
	if len(l.entries) >= 2*l.limit {
		l.entries = append(make([]Entry, 0, 2*l.limit), l.entries[len(l.entries)-l.limit:]...)
	}
}

// last returns the newest n entries of an application ("" for all), oldest first.
func (l *log) last(application string, n int) []Entry {
	kept := l.entries[max(0, len(l.entries)-l.limit):]
	var out []Entry
	for i := len(kept) - 1; i >= 0 && len(out) < n; i-- {
		if application == "" || kept[i].Application == application {
			out = append(out, kept[i])
		}
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}
