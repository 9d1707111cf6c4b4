package audit

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// Window is how long refusals of one kind are counted after the first.
const Window = time.Minute

// maxKinds bounds the kinds that are counted apart.
const maxKinds = 1000

// kind is the common part of refusals that are summarised together.
type kind struct{ who, what, subject string }

// kindOf returns the kind of a refusal: the identity, or the address without one, and the method.
func kindOf(e Entry) kind {
	who := e.Identity
	if who == "" {
		who = e.Peer
		if host, _, err := net.SplitHostPort(who); err == nil {
			who = host
		}
	}
	k := kind{who: who, what: e.What}
	if e.What == Denied {
		k.subject = e.Subject
	}
	return k
}

// refusals counts refusals. The first of a kind is logged as it is. Those within the Window after it
// become one line with their number, so that nobody can push others' lines out of the log.
type refusals struct {
	record func(Entry) // what a Window has counted

	mu     sync.Mutex
	counts map[kind]*count
}

type count struct {
	more  int
	last  Entry
	timer *time.Timer
}

// first returns the entries to record: all changes, and the first refusal of each kind.
func (r *refusals) first(entries []Entry) []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Entry
	for _, e := range entries {
		if e.Refused == "" {
			out = append(out, e)
			continue
		}
		k := kindOf(e)
		c := r.counts[k]
		if c == nil && len(r.counts) >= maxKinds {
			k = kind{who: "others"}
			c = r.counts[k]
		}
		if c == nil {
			r.counts[k] = &count{timer: time.AfterFunc(Window, func() { r.flush(k) })}
			out = append(out, e)
			continue
		}
		c.more++
		c.last = e
	}
	return out
}

// flush writes one summary entry for the counted refusals of a kind.
func (r *refusals) flush(k kind) {
	r.mu.Lock()
	c := r.counts[k]
	delete(r.counts, k)
	r.mu.Unlock()
	if c == nil || c.more == 0 {
		return
	}
	e := c.last
	e.Count = c.more
	e.Refused = fmt.Sprintf("%d more within %v, the last: %s", c.more, Window, e.Refused)
	r.record(e)
}

// close records all that was counted.
func (r *refusals) close() {
	r.mu.Lock()
	var list []kind
	for k, c := range r.counts {
		c.timer.Stop()
		list = append(list, k)
	}
	r.mu.Unlock()
	for _, k := range list {
		r.flush(k)
	}
}
