// Package audit is the log of changes and refusals: weights and budgets, configurations, links and
// virtual priorities. An Entry is one line. A Log has the newest entries, a Keeper makes them durable,
// and a File has all of them. Start at Log.Append.
package audit

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// DefaultLimit is how many entries are kept unless told otherwise.
const DefaultLimit = 65536

// What an entry is about.
const (
	Weight   = "weight"
	Budget   = "budget"
	Delete   = "delete"
	Apply    = "apply"   // Subject is the file, Value the generation
	Confirm  = "confirm" // Value is the generation
	LinkUp   = "link up"
	LinkDown = "link down" // Subject are the link's ends
	Priority = "priority"  // Value is the virtual priority
	Release  = "release"
	Policy   = "policy" // who may do what
	Denied   = "denied" // Subject is the method that was called
	Backup   = "backup"
	Replace  = "replace member" // Subject is its name
	// AcceptLoss is a start with a state file that is not what the audit log says: Subject is the file, Value the
	// generation that it has.
	AcceptLoss = "accept loss"
)

// Entry is one line of the log: a change, or a refusal, with who asked.
type Entry struct {
	Time        time.Time `json:"time"`
	Identity    string    `json:"identity,omitempty"` // who asked; "" where that is no caller
	Peer        string    `json:"peer"`               // from where, or what else than a caller it was
	Application string    `json:"application,omitempty"`
	Flow        string    `json:"flow,omitempty"`    // as weights.Key writes it; "" where it is about no flow
	Subject     string    `json:"subject,omitempty"` // what it is about where that is no flow
	Previous    float64   `json:"previous"`
	Value       float64   `json:"value"` // as asked, so it may be NaN in a refusal
	What        string    `json:"what"`
	Refused     string    `json:"refused,omitempty"` // empty when granted
	Before      string    `json:"before,omitempty"`  // what was, where that is no number
	After       string    `json:"after,omitempty"`
	Count       int       `json:"count,omitempty"` // of refusals that this line stands for; 0 for one
}

// Digest stands for a text that is too long for a line; "" for none.
func Digest(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text)))
}

// plain is an Entry without its methods; its Value stands in record as text.
type plain Entry

// record is an Entry in JSON, whose numbers cannot be NaN or infinite.
type record struct {
	plain
	Value string `json:"value"`
}

// MarshalJSON writes the value as a text.
func (e Entry) MarshalJSON() ([]byte, error) {
	return json.Marshal(record{plain(e), strconv.FormatFloat(e.Value, 'g', -1, 64)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *Entry) UnmarshalJSON(text []byte) error {
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	*e = Entry(r.plain)
	var err error
	e.Value, err = strconv.ParseFloat(r.Value, 64)
	return err
}
