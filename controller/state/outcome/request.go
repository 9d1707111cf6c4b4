// Package outcome tracks the outcome of a change: it was made, it was not made, or the outcome is unknown. A client
// that gives its change a request id can ask again. The result of the first call is stored with the change (Done)
// and returned again.
package outcome

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

// Done is the outcome of a request with an id: a change, which is stored together with its Done, or a refusal.
type Done struct {
	Key    string          `json:"key"`              // who asked, and the id
	Digest string          `json:"digest"`           // digest of the request
	Result json.RawMessage `json:"result,omitempty"` // the answer; empty if it has no fields
	// Refusal is the google.rpc.Status of a refused request. It is stored because a delayed copy of the request
	// could otherwise still be carried out.
	Refusal []byte `json:"refusal,omitempty"`
}

// Request is a change that a client asks for with an id. A nil Request has no id, and its methods do nothing.
// It belongs to one call.
type Request struct {
	Done          // Result is empty
	Earlier *Done // the outcome of the same request earlier; nil the first time
}

type requestKey struct{}

// WithRequest returns a context that carries r to the change.
func WithRequest(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// RequestFromContext returns the request of a context, nil for none.
func RequestFromContext(ctx context.Context) *Request {
	r, _ := ctx.Value(requestKey{}).(*Request)
	return r
}

// Again reports whether the change was already made; the caller must then not make it again. It decodes the earlier
// result into result, unless that is nil.
func (r *Request) Again(result any) bool {
	if r == nil || r.Earlier == nil {
		return false
	}
	if result != nil && json.Unmarshal(r.Earlier.Result, result) != nil {
		return false // cannot happen: this program wrote it
	}
	return true
}

// WithRequest returns the outcome to keep with the change, nil for none. The result may be nil.
func (r *Request) DoneWith(result any) *Done {
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

// A Book keeps the newest results: at most MaxKept, of MaxBytes in total. It always keeps the newest one.
const (
	MaxKept  = 16384
	MaxBytes = 8 << 20
)

// Book holds the newest results. Its owner must lock it.
type Book struct {
	byKey map[string]Done
	order []string // keys, oldest first
	bytes int
}

// Add adds a result and drops the oldest ones beyond the limits. A nil d is ignored.
func (b *Book) Add(d *Done) {
	if d == nil {
		return
	}
	if b.byKey == nil {
		b.byKey = map[string]Done{}
	}
	if _, known := b.byKey[d.Key]; known { // no client gets here, because it gets the earlier answer
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

// ErrUnknown says that it is unknown whether a change was made, will be made, or was not.
var ErrUnknown = errors.New("outcome unknown")

// ErrNotLeader says that another controller leads, or is about to.
var ErrNotLeader = errors.New("this controller does not lead the cluster any more")

// Unknown returns the error of a change that may have been made. err is the reason why that is not known.
func Unknown(err error) error {
	return fmt.Errorf("%w: the change may have been made; ask again with the same request id: %w", ErrUnknown, err)
}

// NotMadeError is a change that was not made because it could not be made durable.
type NotMadeError struct{ Err error }

// Error is the store's error.
func (e *NotMadeError) Error() string {
	return fmt.Sprintf("nothing was changed, the state store failed: %v", e.Err)
}

// Unwrap returns the store's error.
func (e *NotMadeError) Unwrap() error { return e.Err }

// Tells reports whether err states the outcome of a change that a store did not acknowledge: unknown, or not made.
func Tells(err error) bool {
	var not *NotMadeError
	return errors.Is(err, ErrUnknown) || errors.As(err, &not)
}

// FromStore converts the error of a store to the error of the change: one that wraps ErrUnknown, or a *NotMadeError. It
// returns nil for nil. Only this function may state that nothing was changed.
func FromStore(err error) error {
	if err == nil || errors.Is(err, ErrUnknown) {
		return err
	}
	return &NotMadeError{err}
}

// Pending are the changes in progress: they may be durable, but are not yet in the state from which the leader
// answers. A read waits for the changes that are in progress when it begins, because another member may already
// have answered with them. A nil Pending and the zero Pending have none. It is safe for concurrent use.
type Pending struct {
	open sync.Map // a chan struct{} for each change, closed at its end
}

// Begin notes that a change is being made until the returned function is called.
func (p *Pending) Begin() (end func()) {
	if p == nil {
		return func() {}
	}
	c := make(chan struct{})
	p.open.Store(c, nil)
	return func() {
		p.open.Delete(c)
		close(c)
	}
}

// Wait waits until all changes that are in progress now have ended. If ctx ends first, it returns ctx's error.
func (p *Pending) Wait(ctx context.Context) error {
	if p == nil {
		return nil
	}
	var open []any // changes that begin later do not matter
	for c := range p.open.Range {
		open = append(open, c)
	}
	for _, c := range open {
		select {
		case <-c.(chan struct{}):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
