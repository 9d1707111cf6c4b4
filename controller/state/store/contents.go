package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"

	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/state/history"
	"github.com/headgate/headgate/controller/state/outcome"
	"github.com/headgate/headgate/internal/ring"
)

// Version is the layout of a state file: records in bbolt, or as lines of text in a backup. Each record has the hash of
// the one before.
const Version = 3

// lineVersion is the layout of the journal in etcd and of older state files: independent lines. A file of any other
// version is refused.
const lineVersion = 2

// record is a change: each field that is not nil replaces the state's field. The first record has only Header, Prev
// and AuditLog.
type record struct {
	Prev       string          `json:"prev,omitempty"` // SHA-256 of the record before
	Header     *header         `json:"header,omitempty"`
	Config     *history.Entry  `json:"config,omitempty"`
	Confirmed  bool            `json:"confirmed,omitempty"`  // the configuration in force was confirmed
	Links      map[string]bool `json:"links,omitempty"`      // true: an operator took it out of service
	Priorities map[int]string  `json:"priorities,omitempty"` // virtual priority → application, "" for nobody
	Weights    *weights.Commit `json:"weights,omitempty"`
	Done       *outcome.Done   `json:"done,omitempty"`     // the request that asked for this change
	Term       uint64          `json:"term,omitempty"`     // added to a lead's number after this record
	AuditLog   audit.Head      `json:"audit_log,omitzero"` // the audit log's last line when the change was made
}

// header begins the summary of all earlier changes: it has the number of the records that follow and belong to it.
type header struct {
	Version int    `json:"version"`
	Lines   int    `json:"lines"`
	Change  uint64 `json:"change,omitempty"` // the number of the summary, which counts as a change; 0 in version 2
	Term    uint64 `json:"term,omitempty"`   // see Store.Term
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// line returns a record as a line of text.
func line(r record) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return appendLine(nil, text), nil
}

// appendLine adds the CRC-32C of a record's JSON, a space, the JSON.
func appendLine(to, text []byte) []byte {
	return fmt.Appendf(to, "%08x %s\n", crc32.Checksum(text, castagnoli), text)
}

// cut returns the JSON of a line; the line has no newline.
func cut(text []byte) ([]byte, error) {
	sum, text, ok := bytes.Cut(text, []byte(" "))
	if !ok || string(sum) != fmt.Sprintf("%08x", crc32.Checksum(text, castagnoli)) {
		return nil, errors.New("its checksum is wrong")
	}
	return text, nil
}

// parse reads a line without its newline.
func parse(text []byte) (r record, err error) {
	if text, err = cut(text); err != nil {
		return r, err
	}
	return decode(text)
}

// decode reads a record.
func decode(text []byte) (r record, err error) {
	if err := json.Unmarshal(text, &r); err != nil {
		return r, err
	}
	return r, r.check()
}

// check refuses an impossible change.
func (r *record) check() error {
	if r.Weights == nil {
		return nil
	}
	for _, f := range r.Weights.Put {
		if f.Key == (weights.Key{}) || f.Weight <= 0 || f.Weight > weights.MaxWeight {
			return fmt.Errorf("flow %q has a weight of %d millionths", f.Key, int64(f.Weight))
		}
	}
	return nil
}

// contents is the content of a state file. Its user locks it.
type contents struct {
	history    []history.Entry // the last one is in force
	links      map[string]bool
	priorities map[int]string
	flows      map[weights.Key]weights.Flow
	budgets    map[string]weights.Budget
	audit      *ring.Last[audit.Entry]
	done       outcome.Book
	term       uint64 // is added to the lead's number: see Store.Term
}

func newContents(limit int) *contents {
	return &contents{
		links: map[string]bool{}, priorities: map[int]string{}, flows: map[weights.Key]weights.Flow{},
		budgets: map[string]weights.Budget{}, audit: audit.NewRing(limit),
	}
}

// apply makes a change that check has passed.
func (c *contents) apply(r record) {
	c.done.Add(r.Done)
	if r.Config != nil {
		c.history = trim(append(c.history, *r.Config))
	}
	if r.Confirmed && len(c.history) > 0 {
		c.history[len(c.history)-1].Confirm = 0
	}
	c.term = max(c.term, r.Term)
	change(c.links, r.Links)
	change(c.priorities, r.Priorities)
	if r.Weights == nil {
		return
	}
	for _, f := range r.Weights.Put {
		c.flows[f.Key] = f
	}
	for _, k := range r.Weights.Delete {
		delete(c.flows, k)
	}
	for _, b := range r.Weights.Budgets {
		b.Used, b.Flows = 0, 0 // computed from the flows
		c.budgets[b.Application] = b
		if !b.Named() {
			delete(c.budgets, b.Application)
		}
	}
	for _, e := range r.Weights.Audit {
		c.audit.Push(e)
	}
}

// Bounds of the history: number of configurations, and bytes of their texts.
const (
	mostConfigs = 100
	mostText    = 32 << 20
)

// trim drops the oldest configurations beyond the bounds. It keeps the one in force, and the last one that needed
// no confirmation, which is the target of a rollback.
func trim(list []history.Entry) []history.Entry {
	count, text, confirmed := 0, 0, false
	var kept []history.Entry
	for _, e := range slices.Backward(list) {
		text += len(e.YAML)
		if count++; count <= mostConfigs && text <= mostText || len(kept) == 0 || !confirmed && e.Confirm == 0 {
			kept = append(kept, e)
		}
		confirmed = confirmed || e.Confirm == 0
	}
	slices.Reverse(kept)
	return kept
}

// config returns the configuration in force; zero when none was applied.
func (c *contents) config() history.Entry {
	if len(c.history) == 0 {
		return history.Entry{}
	}
	return c.history[len(c.history)-1]
}

// change copies the entries of from to to. An entry with the zero value deletes the key.
func change[K, V comparable](to, from map[K]V) {
	var zero V
	for k, v := range from {
		to[k] = v
		if v == zero {
			delete(to, k)
		}
	}
}

// records returns a header and the changes that create these contents from an empty state. Each line has a bounded
// length, so that reading and writing take bounded memory.
func (c *contents) records(version int) []record {
	const most = 1000 // flows or entries
	list := []record{{Links: c.links, Priorities: c.priorities, Weights: &weights.Commit{Budgets: slices.Collect(maps.Values(c.budgets))}}}
	for i := range c.history {
		list = append(list, record{Config: &c.history[i]})
	}
	for part := range slices.Chunk(slices.Collect(maps.Values(c.flows)), most) {
		list = append(list, record{Weights: &weights.Commit{Put: part}})
	}
	for part := range slices.Chunk(c.audit.All(), most) {
		list = append(list, record{Weights: &weights.Commit{Audit: part}})
	}
	for _, d := range c.done.All() {
		list = append(list, record{Done: &d})
	}
	return slices.Insert(list, 0, record{Header: &header{Version: version, Lines: len(list), Term: c.term}})
}
