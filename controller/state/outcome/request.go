package outcome

import (
	"context"
	"encoding/json"
)

// Done is what came of a request with an id: a change, with which it is kept, or a refusal.
type Done struct {
	Key    string          `json:"key"`              // who asked, and the id
	Digest string          `json:"digest"`           // of what was asked for
	Result json.RawMessage `json:"result,omitempty"` // what was answered; empty where that says nothing
	// Refusal is the google.rpc.Status of one that was refused. Without it, a copy that comes late on its way could be
	// made after all.
	Refusal []byte `json:"refusal,omitempty"`
}

// Request is a change that a client asks for with an id. Nil is one without: no method of it does anything.
// It belongs to one call.
type Request struct {
	Done          // Result is empty
	Earlier *Done // what was done for the same request earlier; nil for the first time
}

type requestKey struct{}

// With hands a request to the change that is made with the context.
func With(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// RequestOf returns the request of a context, nil for none.
func RequestOf(ctx context.Context) *Request {
	r, _ := ctx.Value(requestKey{}).(*Request)
	return r
}

// Again reports whether the change was made earlier, and reads its result then: the caller makes no other.
// A result of nil reads none.
func (r *Request) Again(result any) bool {
	if r == nil || r.Earlier == nil {
		return false
	}
	if result != nil && json.Unmarshal(r.Earlier.Result, result) != nil {
		return false // no program has written that
	}
	return true
}

// With returns what is to be kept with the change, nil for nothing. A result of nil says nothing.
func (r *Request) With(result any) *Done {
	if r == nil {
		return nil
	}
	d := r.Done
	if result != nil {
		text, err := json.Marshal(result)
		if err != nil {
			panic(err) // numbers and texts
		}
		d.Result = text
	}
	return &d
}

// The newest MaxKept results are kept, as far as they have MaxBytes together; the newest one always is.
const (
	MaxKept  = 16384
	MaxBytes = 8 << 20
)

// Book is the newest results. Its owner locks.
type Book struct {
	byKey map[string]Done
	order []string // keys, oldest first
	bytes int
}

// Add keeps a result, and forgets the oldest ones that are too many. Nil is none.
func (b *Book) Add(d *Done) {
	if d == nil {
		return
	}
	if b.byKey == nil {
		b.byKey = map[string]Done{}
	}
	if _, known := b.byKey[d.Key]; known { // no client gets here: it is answered with what was done earlier
		return
	}
	b.byKey[d.Key] = *d
	b.order = append(b.order, d.Key)
	b.bytes += d.size()
	for len(b.order) > 1 && (len(b.order) > MaxKept || b.bytes > MaxBytes) {
		oldest := b.byKey[b.order[0]]
		b.bytes -= oldest.size()
		delete(b.byKey, oldest.Key)
		b.order = b.order[1:]
	}
}

func (d *Done) size() int { return len(d.Key) + len(d.Digest) + len(d.Result) + len(d.Refusal) }

// Get returns the result with a key.
func (b *Book) Get(key string) (Done, bool) {
	d, ok := b.byKey[key]
	return d, ok
}

// All returns the results, oldest first.
func (b *Book) All() []Done {
	out := make([]Done, 0, len(b.order))
	for _, k := range b.order {
		out = append(out, b.byKey[k])
	}
	return out
}
