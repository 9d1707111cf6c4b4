package weights

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
)

// DefaultBuffer is how many updates wait for a slow watcher before it is resynchronised.
const DefaultBuffer = 4096

// ErrWatcherClosed is returned by Next after Close.
var ErrWatcherClosed = errors.New("the watcher is closed")

// Update is one change. Either Flow or Budget is set.
type Update struct {
	Flow    Flow
	Deleted bool    // the flow is gone, or no longer one that is watched
	Budget  *Budget // an application's new limit

	old Flow // what Flow was before; zero when new
}

// Batch is what a watcher sees at once.
type Batch struct {
	// Reset says that Updates is the full current state: what is not in it does not exist.
	// The first batch is one; another follows when the watcher was too slow.
	Reset   bool
	Missed  uint64 // updates that were dropped since the last batch, made good by Reset
	Updates []Update
}

// Watcher follows a registry: it gets the state, then every change in order. It owns its
// queue under mu, which is taken after the registry's mu. One goroutine calls Next.
type Watcher struct {
	registry *Registry
	match    func(Flow) bool
	limit    int
	ready    chan struct{} // holds a token when there may be something to read

	mu     sync.Mutex
	queue  []Update
	reset  bool
	synced bool // a first full state was read, so that dropped updates are news
	missed uint64
	closed bool
}

// Watch starts to follow the flows that match (nil: all) and every budget. buffer updates
// wait for a slow watcher, 0 means DefaultBuffer. The caller must Close the watcher.
func (r *Registry) Watch(match func(Flow) bool, buffer int) *Watcher {
	if buffer <= 0 {
		buffer = DefaultBuffer
	}
	w := &Watcher{registry: r, match: match, limit: buffer, ready: make(chan struct{}, 1), reset: true}
	w.wake()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watchers[w] = struct{}{}
	return w
}

// Close ends the watcher. It may be called more than once.
func (w *Watcher) Close() {
	w.registry.mu.Lock()
	delete(w.registry.watchers, w)
	w.registry.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.wake()
}

// Next waits for something new. It ends with the context's error or ErrWatcherClosed.
func (w *Watcher) Next(ctx context.Context) (Batch, error) {
	for {
		b, ok, closed := w.take()
		switch {
		case closed:
			return Batch{}, ErrWatcherClosed
		case ok:
			return b, nil
		}
		select {
		case <-ctx.Done():
			return Batch{}, ctx.Err()
		case <-w.ready:
		}
	}
}

func (w *Watcher) take() (b Batch, ok, closed bool) {
	// The registry's lock keeps the state and the queue in step when the state is read.
	w.registry.mu.RLock()
	defer w.registry.mu.RUnlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return b, false, true
	}
	if w.reset {
		b = Batch{Reset: true, Missed: w.missed}
		for _, f := range w.registry.book.list(w.match) {
			b.Updates = append(b.Updates, Update{Flow: f})
		}
		for _, a := range w.registry.book.budgets() {
			b.Updates = append(b.Updates, Update{Budget: &a})
		}
		w.reset, w.synced, w.missed, w.queue = false, true, 0, nil
		return b, true, false
	}
	if len(w.queue) == 0 {
		return b, false, false
	}
	b.Updates, w.queue = w.queue, nil
	return b, true, false
}

// push queues updates, or, where they do not fit, drops the queue for a new full state.
func (w *Watcher) push(updates []Update) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.queue)
	for _, u := range updates {
		if u.Budget == nil && w.match != nil {
			is, was := !u.Deleted && w.match(u.Flow), u.old.Weight != 0 && w.match(u.old)
			if !is && !was {
				continue
			}
			u.Deleted = !is
		}
		if w.reset {
			if w.synced {
				w.missed++
			}
			continue
		}
		if len(w.queue) >= w.limit {
			w.missed += uint64(len(w.queue)) + 1
			w.queue, w.reset = nil, true
			continue
		}
		w.queue = append(w.queue, u)
	}
	if w.reset || len(w.queue) > before {
		w.wake()
	}
}

func (w *Watcher) wake() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// updates lists a stage's changes, before it is applied: flows by key, then limits.
func updates(s *stage) []Update {
	var out []Update
	for k, f := range s.flows {
		old, was := s.book.flows[k]
		if f.Weight == 0 {
			if was {
				out = append(out, Update{Flow: old, Deleted: true, old: old})
			}
			continue
		}
		out = append(out, Update{Flow: f, old: old})
	}
	slices.SortFunc(out, func(a, b Update) int { return a.Flow.Key.Compare(b.Flow.Key) })
	for _, name := range slices.Sorted(maps.Keys(s.apps)) {
		if a := s.apps[name]; a.Limit != s.book.apps[name].Limit {
			out = append(out, Update{Budget: &a})
		}
	}
	return out
}
