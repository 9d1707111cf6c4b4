package weights

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/headgate/headgate/controller/serving/events"
)

// Update is one change. Either Flow or Budget is set.
type Update struct {
	Flow    Flow
	Deleted bool    // the flow is gone, or no longer one that is watched
	Budget  *Budget // an application's new limit

	old Flow // what Flow was before; zero when new
}

// Batch is the changes that a watcher gets at once.
type Batch struct {
	// Reset says that Updates is the full current state: what is not in it does not exist.
	// The first batch is one; another follows when the watcher was too slow.
	Reset   bool
	Missed  uint64 // updates that were dropped since the last batch, made good by Reset
	Updates []Update
}

// Watcher follows a registry: it gets the state, then every change in order. One goroutine
// calls Next.
type Watcher struct {
	registry *Registry
	match    func(Flow) bool
	updates  *events.Subscription[Update]
	synced   bool // the state was read
	counted  atomic.Bool
}

// Watch starts to follow the flows that match (nil: all) and every budget. buffer updates
// wait for a slow watcher, 0 means events.DefaultBuffer. The caller must Close the watcher.
func (r *Registry) Watch(match func(Flow) bool, buffer int) *Watcher {
	if match == nil {
		match = func(Flow) bool { return true }
	}
	return &Watcher{registry: r, match: match, updates: r.updates.Subscribe(events.Options[Update]{
		Buffer: buffer, Match: func(u Update) bool { return u.Budget != nil || match(u.Flow) || u.old.Weight != 0 && match(u.old) },
	})}
}

// Close ends the watcher. It may be called more than once.
func (w *Watcher) Close() {
	if w.counted.Swap(false) {
		w.registry.following.Add(-1)
	}
	w.updates.Close()
}

// Next waits for something new. It ends with the context's error or events.ErrClosed.
func (w *Watcher) Next(ctx context.Context) (Batch, error) {
	if !w.synced {
		w.synced = true
		b := w.reset()
		b.Missed = 0 // what came before the first state is no news
		w.counted.Store(true)
		w.registry.following.Add(1)
		return b, nil
	}
	list, dropped, err := w.updates.Next(ctx)
	if err != nil {
		return Batch{}, err
	}
	if dropped > 0 {
		b := w.reset()
		b.Missed += dropped + uint64(len(list))
		return b, nil
	}
	for i, u := range list {
		list[i].Deleted = u.Budget == nil && (u.Deleted || !w.match(u.Flow))
	}
	return Batch{Updates: list}, nil
}

// reset returns the state, which has all updates that were published so far.
func (w *Watcher) reset() Batch {
	w.registry.mu.RLock() // updates are published under this lock
	defer w.registry.mu.RUnlock()
	old, dropped := w.updates.Take()
	b := Batch{Reset: true, Missed: dropped + uint64(len(old))}
	for _, f := range w.registry.ledger.list(w.match) {
		b.Updates = append(b.Updates, Update{Flow: f})
	}
	for _, a := range w.registry.ledger.budgets() {
		b.Updates = append(b.Updates, Update{Budget: &a})
	}
	return b
}

// updates lists a stage's changes, before it is applied: flows by key, then limits.
func updates(s *stage) []Update {
	var out []Update
	for k, f := range s.flows {
		old, was := s.ledger.flows[k]
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
		if a := s.apps[name]; a.Limit != s.ledger.apps[name].Limit {
			out = append(out, Update{Budget: &a})
		}
	}
	return out
}
