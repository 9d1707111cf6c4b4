package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"slices"
	"syscall"

	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/state/history"
	"github.com/headgate/headgate/controller/state/outcome"
	"github.com/headgate/headgate/internal/ring"
)

// Version is the layout of the file. A file of another version is refused, never guessed at.
const Version = 2

// record is a line of the file: a change of what is not nil. The first line has nothing but
// Header.
type record struct {
	Header     *header         `json:"header,omitempty"`
	Config     *history.Entry  `json:"config,omitempty"`
	Confirmed  bool            `json:"confirmed,omitempty"`  // the configuration in force is to stay
	Links      map[string]bool `json:"links,omitempty"`      // true: an operator took it out of service
	Priorities map[int]string  `json:"priorities,omitempty"` // virtual priority → application, "" for nobody
	Weights    *weights.Commit `json:"weights,omitempty"`
	Done       *outcome.Done   `json:"done,omitempty"` // for which request the rest of the record was done
}

// header says how many lines follow that were written with it, at once.
type header struct {
	Version int `json:"version"`
	Lines   int `json:"lines"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// line returns a record as it stands in the file: the CRC-32C of its JSON, a space, the JSON.
func line(r record) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(text, castagnoli), text), nil
}

// parse reads a line without its end.
func parse(text []byte) (r record, err error) {
	sum, text, ok := bytes.Cut(text, []byte(" "))
	if !ok || string(sum) != fmt.Sprintf("%08x", crc32.Checksum(text, castagnoli)) {
		return r, errors.New("its checksum is wrong")
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, err
	}
	return r, r.check()
}

// check refuses what no change can say.
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

// contents is what a file says. Whoever has it locks.
type contents struct {
	history    []history.Entry // the configuration in force is the last
	links      map[string]bool
	priorities map[int]string
	flows      map[weights.Key]weights.Flow
	budgets    map[string]weights.Budget
	audit      *ring.Last[audit.Entry]
	done       outcome.Book
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
		b.Used, b.Flows = 0, 0 // which follow from the flows
		c.budgets[b.Application] = b
		if !b.Named() {
			delete(c.budgets, b.Application)
		}
	}
	for _, e := range r.Weights.Audit {
		c.audit.Push(e)
	}
}

// The history keeps this many configurations, with this many bytes of text.
const (
	mostConfigs = 100
	mostText    = 32 << 20
)

// trim drops the oldest configurations that are too many. The one in force stays, and the last one
// that needs no confirmation, to which an unconfirmed one is rolled back.
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

// change copies what is set and deletes what is zero.
func change[K, V comparable](to, from map[K]V) {
	var zero V
	for k, v := range from {
		to[k] = v
		if v == zero {
			delete(to, k)
		}
	}
}

// records returns the changes that make these contents from nothing, behind a header. Lines of bounded length
// keep reading and writing in bounded memory.
func (c *contents) records() []record {
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
	return slices.Insert(list, 0, record{Header: &header{Version, len(list)}})
}

// put writes the lines of a file with these contents.
func (c *contents) put(out io.Writer) (size int64, err error) {
	for _, r := range c.records() {
		text, err := line(r)
		if err != nil {
			return size, err
		}
		n, err := out.Write(text)
		size += int64(n)
		if err != nil {
			return size, err
		}
	}
	return size, nil
}

// write makes a new file with these contents, locked and on disk.
func (c *contents) write(path string) (*os.File, int64, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("state file: %w", err)
	}
	size := int64(0)
	err = func() error {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			return fmt.Errorf("state file %s is in use by another process", path)
		}
		out := bufio.NewWriter(f)
		var err error
		if size, err = c.put(out); err != nil {
			return err
		}
		return errors.Join(out.Flush(), f.Sync())
	}()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close(), os.Remove(path))
	}
	return f, size, nil
}

// read adds what a journal says, with a name for messages. It returns where its last whole line ends and where the file
// ends: what is between was never confirmed to whoever asked for the change.
func (c *contents) read(name string, from io.Reader) (whole, end int64, err error) {
	in := bufio.NewReader(from)
	least := 1 // lines
	for n := 0; ; n++ {
		text, err := in.ReadBytes('\n')
		end += int64(len(text))
		if errors.Is(err, io.EOF) {
			if end > 0 && n < least {
				return 0, end, &DamagedError{name, fmt.Errorf("it ends after %d of %d lines", n, least)}
			}
			return whole, end, nil
		}
		if err != nil {
			return 0, end, fmt.Errorf("%s: %w", name, err)
		}
		whole = end
		r, err := parse(text[:len(text)-1])
		if err == nil && (r.Header != nil) != (n == 0) {
			err = errors.New("a header belongs into the first line and nowhere else")
		}
		if err != nil {
			return 0, end, &DamagedError{name, fmt.Errorf("line %d: %w", n+1, err)}
		}
		if h := r.Header; h != nil {
			if h.Version != Version {
				return 0, end, fmt.Errorf("%s: its layout has version %d, this program reads version %d: use the program that wrote it, or move it away", name, h.Version, Version)
			}
			least += h.Lines
		}
		c.apply(r)
	}
}
