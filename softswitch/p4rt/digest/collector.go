// Package digest is the server's side of P4Runtime digests (specification 1.4, "DigestEntry"). It
// gathers messages into lists and decides when a list is due. It suppresses a message that is in a
// list already, or that was sent and not acknowledged. Start reading at Collector.
package digest

import (
	"bytes"
	"cmp"
	"slices"
	"sync"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/softswitch/p4rt/schema"
	"github.com/headgate/headgate/units"
)

// Bounds that keep memory finite for any configuration.
const (
	// maxList bounds the size of a list. It is the size when max_list_size is 0.
	maxList = 1024
	// maxCache bounds the unacknowledged messages that are remembered for one digest.
	maxCache = 1 << 16
)

// Collector gathers the digests of one pipeline. It is safe for concurrent use: the data
// plane adds messages, the control plane configures and acknowledges.
type Collector struct {
	mu      sync.Mutex
	digests map[string]*buffer // all digests by name, enabled or not
	byID    map[uint32]*buffer
	nextID  uint64 // id of the next list
	dropped uint64
}

type buffer struct {
	spec    *schema.Digest
	config  *p4v1.DigestEntry_Config // nil when disabled
	list    []*p4v1.P4Data
	keys    []string
	pending map[string]bool // keys of list
	first   units.Time      // arrival of the oldest message in list
	cache   map[string]bool // keys sent and not acknowledged
	sent    []sentList      // oldest first; acknowledged ones have no keys
}

type sentList struct {
	id   uint64
	at   units.Time
	keys []string
}

// New returns a collector for the digests of a schema, all disabled. lists is the id of
// the first list.
func New(s *schema.Schema, lists uint64) *Collector {
	c := &Collector{digests: map[string]*buffer{}, byID: map[uint32]*buffer{}, nextID: lists}
	for _, d := range s.Digests.List {
		b := &buffer{spec: d, pending: map[string]bool{}, cache: map[string]bool{}}
		c.digests[d.Name], c.byID[d.ID] = b, b
	}
	return c
}

// Configure sets a digest's configuration; nil disables it and forgets its messages. Without
// ack_timeout_ns the digest no longer waits for acknowledgements.
func (c *Collector) Configure(id uint32, config *p4v1.DigestEntry_Config) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.byID[id]
	if b == nil {
		return
	}
	b.config = config
	if config == nil {
		b.list, b.keys = nil, nil
		clear(b.pending)
	}
	if config.GetAckTimeoutNs() <= 0 {
		b.sent = nil
		clear(b.cache)
	}
}

// Add adds a message from the data plane and copies its fields. It returns the list if the list is
// due at once, else nil.
func (c *Collector) Add(name string, fields [][]byte, now units.Time) *p4v1.DigestList {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.digests[name]
	if b == nil || b.config == nil {
		return nil
	}
	// The key is unique, because the fields of a digest always have the same widths.
	key := string(bytes.Join(fields, nil))
	if b.pending[key] || b.cache[key] {
		return nil
	}
	data := b.spec.Type.Encode(fields)
	if data == nil || len(b.cache)+len(b.list) >= maxCache {
		c.dropped++
		return nil
	}
	if len(b.list) == 0 {
		b.first = now
	}
	b.list, b.keys, b.pending[key] = append(b.list, data), append(b.keys, key), true
	if limit := min(cmp.Or(int(b.config.MaxListSize), maxList), maxList); len(b.list) >= limit || b.config.MaxTimeoutNs == 0 {
		return c.flush(b, now)
	}
	return nil
}

// Sweep returns the lists whose oldest message has waited max_timeout_ns, and forgets sent
// lists after ack_timeout_ns.
func (c *Collector) Sweep(now units.Time) []*p4v1.DigestList {
	c.mu.Lock()
	defer c.mu.Unlock()
	var due []*p4v1.DigestList
	for _, b := range c.byID {
		if b.config == nil {
			continue
		}
		for len(b.sent) > 0 && now-b.sent[0].at >= nanoseconds(b.config.AckTimeoutNs) {
			b.forget(0)
		}
		if len(b.list) > 0 && now-b.first >= nanoseconds(b.config.MaxTimeoutNs) {
			due = append(due, c.flush(b, now))
		}
	}
	return due
}

// Ack handles a DigestListAck and reports whether the digest exists. It ignores unknown lists, which
// may have timed out.
func (c *Collector) Ack(digest uint32, list uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.byID[digest]
	if b == nil {
		return false
	}
	if i, ok := slices.BinarySearchFunc(b.sent, list, func(l sentList, id uint64) int { return cmp.Compare(l.id, id) }); ok {
		b.forget(i)
	}
	return true
}

// Dropped returns how many messages were lost because too many were unacknowledged.
func (c *Collector) Dropped() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dropped
}

func (c *Collector) flush(b *buffer, now units.Time) *p4v1.DigestList {
	out := &p4v1.DigestList{DigestId: b.spec.ID, ListId: c.nextID, Data: b.list}
	c.nextID++
	if b.config.AckTimeoutNs > 0 {
		for _, k := range b.keys {
			b.cache[k] = true
		}
		b.sent = append(b.sent, sentList{out.ListId, now, b.keys})
	}
	b.list, b.keys = nil, nil
	clear(b.pending)
	return out
}

func (b *buffer) forget(i int) {
	for _, k := range b.sent[i].keys {
		delete(b.cache, k)
	}
	b.sent[i].keys = nil
	for len(b.sent) > 0 && b.sent[0].keys == nil {
		b.sent = b.sent[1:]
	}
}

// nanoseconds converts a number of nanoseconds, saturating.
func nanoseconds(ns int64) units.Time {
	if ns > int64(units.MaxTime/units.Nanosecond) {
		return units.MaxTime
	}
	return units.Time(ns) * units.Nanosecond
}
