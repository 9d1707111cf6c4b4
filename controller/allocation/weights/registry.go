// Package weights is the registry of Söze's weights: which flow has which weight, which
// application pays for it, and who asked (§3.4 of the paper). The rules are a pure core
// (ledger.go); this file adds the lock, the lines of the audit log and durability.
package weights

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/serving/events"
	"github.com/headgate/headgate/controller/state/outcome"
)

// Keeper makes changes durable. Calls never overlap.
type Keeper interface {
	// LoadWeights returns the committed state. Used and Flows of budgets are ignored.
	LoadWeights() State
	// CommitWeights stores all of c or nothing.
	CommitWeights(c Commit) error
}

// State is everything a registry holds.
type State struct {
	Flows   []Flow
	Budgets []Budget
}

// Commit is one atomic change.
type Commit struct {
	Put     []Flow        `json:"put,omitempty"`
	Delete  []Key         `json:"delete,omitempty"`
	Budgets []Budget      `json:"budgets,omitempty"` // new limits; a budget without limits is to be forgotten
	Audit   []audit.Entry `json:"audit,omitempty"`
	Done    *outcome.Done `json:"-"` // the outcome kept for the request; nil for none
}

// Options of a Registry. The zero value keeps everything in memory.
type Options struct {
	Keeper Keeper       // nil: nothing outlives the process
	Audit  *audit.Log   // nil: one in memory
	Log    *slog.Logger // nil: slog.Default
	// Pending has the changes in progress; nil if nobody waits for them.
	Pending *outcome.Pending
}

// Registry is safe for concurrent use. The lock write serialises changes, from their check to
// their commit; mu guards what readers and watchers see and is never held while the keeper works.
type Registry struct {
	keeper  Keeper
	audit   *audit.Log
	slog    *slog.Logger
	pending *outcome.Pending

	write   sync.Mutex
	refused map[string]map[Key]Change // by host: the refusals of its last report; guarded by write

	mu       sync.RWMutex
	ledger   *ledger
	updates  *events.Bus[Update] // published under mu
	refusals uint64
	changes  uint64

	following atomic.Int64 // watchers that have read the state and are not closed
}

// New returns a registry with the keeper's state.
func New(o Options) *Registry {
	r := &Registry{
		keeper: o.Keeper, audit: o.Audit, slog: cmp.Or(o.Log, slog.Default()), pending: o.Pending, ledger: &ledger{flows: map[Key]Flow{}, hosts: map[string]map[Key]struct{}{}, apps: map[string]Budget{}},
		updates: events.NewBus[Update](0), refused: map[string]map[Key]Change{},
	}
	if r.audit == nil {
		r.audit = audit.New(audit.Options{Log: r.slog})
	}
	if r.keeper == nil {
		return r
	}
	state := r.keeper.LoadWeights()
	s := r.ledger.stage()
	for _, f := range state.Flows {
		s.put(f)
	}
	for _, b := range state.Budgets {
		a := s.app(b.Application)
		a.Limit, a.Configured = b.Limit, b.Configured
		if a.Limit != 0 && a.Used > a.Limit {
			r.slog.Warn("stored weights exceed a stored budget; they can only fall until they fit",
				"application", a.Application, "used", a.Used, "limit", a.Limit)
		}
		s.apps[b.Application] = a
	}
	r.ledger.apply(s)
	return r
}

// Caller is the identity that asks for a change.
type Caller struct {
	Identity, Peer string // for the audit log
	// Applications are the applications whose flows the caller may change, nil for all.
	Applications []string
	// Request is the caller's request; nil if it has no id.
	Request *outcome.Request
}

// May reports whether the caller may have flows of an application.
func (c Caller) May(application string) bool {
	return c.Applications == nil || slices.Contains(c.Applications, cmp.Or(application, DefaultApplication))
}

// entry returns an audit entry; k is the zero Key if the entry is not about a flow.
func (c Caller) entry(what, application string, k Key, previous Weight, value float64) audit.Entry {
	return audit.Entry{
		Identity: c.Identity, Peer: c.Peer, Application: application, Flow: k.String(),
		Previous: previous.Float(), Value: value, What: what,
	}
}

// mayChange refuses a flow of another caller. An unknown flow belongs to nobody.
func (c Caller) mayChange(f Flow) error {
	if f.Weight == 0 || c.May(f.Application) {
		return nil
	}
	return &ForeignError{Flow: f.Key, Owner: f.Application}
}

// Set makes all changes or none. It checks them together against the budgets. On refusal the error is an
// *InvalidError, a *BudgetError, an *UnknownApplicationError, a *ForeignError or ErrFull. Other errors come from
// outcome.FromStore.
func (r *Registry) Set(by Caller, changes ...Change) ([]Applied, error) {
	r.write.Lock()
	defer r.write.Unlock()
	if applied, again := earlier(by.Request, changes); again {
		return applied, nil
	}
	s := r.ledger.stage()
	var err error
	for _, c := range changes {
		if err = by.mayChange(r.ledger.flows[c.Key]); err != nil {
			break
		}
	}
	var applied []Applied
	if err == nil {
		applied, err = s.set("", changes)
	}
	entries := make([]audit.Entry, len(changes))
	for i, c := range changes {
		old := r.ledger.flows[c.Key]
		entries[i] = by.entry(audit.Weight, cmp.Or(c.Application, old.Application, DefaultApplication), c.Key, old.Weight, c.Weight)
		if err == nil {
			entries[i].Application, entries[i].Value = applied[i].Flow.Application, applied[i].Flow.Weight.Float()
		}
	}
	s.done = by.Request.DoneWith(resultOf(applied))
	if err := r.finish(s, entries, err); err != nil {
		return nil, err
	}
	return applied, nil
}

// Delete forgets a flow and gives its weight back. ErrUnknownFlow when there is none.
func (r *Registry) Delete(by Caller, k Key) error {
	r.write.Lock()
	defer r.write.Unlock()
	if by.Request.Again(nil) {
		return nil
	}
	s := r.ledger.stage()
	s.done = by.Request.DoneWith(nil)
	old := r.ledger.flows[k]
	err := by.mayChange(old)
	if err == nil {
		old, err = s.delete(k)
	}
	return r.finish(s, []audit.Entry{by.entry(audit.Delete, old.Application, k, old.Weight, 0)}, err)
}

// Refuse records a change that was refused before it reached the registry, because its flow could not be parsed.
func (r *Registry) Refuse(e audit.Entry, reason error) {
	r.audit.Record(e, reason)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusals++
}

// finish commits a stage, or its refusal, to the keeper, then publishes it. The caller holds write.
func (r *Registry) finish(s *stage, entries []audit.Entry, refusal error) error {
	r.audit.Stamp(entries, refusal)
	if refusal != nil {
		s = r.ledger.stage()
	}
	if err := r.commit(s, entries); err != nil {
		if refusal != nil {
			r.slog.Error("a refusal is missing from the stored audit log", "error", err)
			return refusal
		}
		return err
	}
	return refusal
}

// commit does what finish does, but takes complete entries. Some of them may be refusals.
func (r *Registry) commit(s *stage, entries []audit.Entry) error {
	all := entries
	entries = r.audit.First(entries)
	if r.keeper != nil && len(entries)+len(s.flows)+len(s.apps) > 0 {
		defer r.pending.Begin()()
		c := Commit{Audit: entries, Done: s.done}
		for k, f := range s.flows {
			if f.Weight == 0 {
				c.Delete = append(c.Delete, k)
			} else {
				c.Put = append(c.Put, f)
			}
		}
		for name, a := range s.apps {
			if old := r.ledger.apps[name]; a.Limit != old.Limit || a.Configured != old.Configured {
				c.Budgets = append(c.Budgets, a)
			}
		}
		if err := r.keeper.CommitWeights(c); err != nil {
			return outcome.FromStore(err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range updates(s) {
		r.updates.Publish(u)
	}
	r.ledger.apply(s)
	r.audit.Append(entries...)
	for _, e := range all {
		if e.Refused != "" {
			r.refusals++
		} else {
			r.changes++
		}
	}
	return nil
}

// Flow returns a flow.
func (r *Registry) Flow(k Key) (Flow, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	f, ok := r.ledger.flows[k]
	return f, ok
}

// Flows returns the flows of an application ("" for all), ordered by key.
func (r *Registry) Flows(application string) []Flow {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.ledger.list(func(f Flow) bool { return application == "" || f.Application == application })
}

func (l *ledger) list(match func(Flow) bool) []Flow {
	var out []Flow
	for _, f := range l.flows {
		if match == nil || match(f) {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(x, y Flow) int { return x.Key.Compare(y.Key) })
	return out
}

// Hosts returns the hosts that registered flows, ordered by name.
func (r *Registry) Hosts() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.ledger.hosts))
}

// Budgets returns every application that has a limit or a flow, ordered by name.
func (r *Registry) Budgets() []Budget {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.ledger.budgets()
}

func (l *ledger) budgets() []Budget {
	out := make([]Budget, 0, len(l.apps))
	for _, name := range slices.Sorted(maps.Keys(l.apps)) {
		out = append(out, l.apps[name])
	}
	return out
}

// Stats counts since the registry was opened.
type Stats struct {
	Changes, Refusals uint64
	Flows, Watchers   int
}

// Stats returns the registry's counters.
func (r *Registry) Stats() Stats {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return Stats{Changes: r.changes, Refusals: r.refusals, Flows: len(r.ledger.flows), Watchers: int(r.following.Load())}
}

type result [2]Weight

func resultOf(applied []Applied) []result {
	out := make([]result, len(applied))
	for i, a := range applied {
		out[i] = result{a.Previous, a.Flow.Weight}
	}
	return out
}

// earlier returns the results of the same request's changes, if they were made earlier.
func earlier(r *outcome.Request, changes []Change) ([]Applied, bool) {
	var kept []result
	if !r.Again(&kept) || len(kept) != len(changes) {
		return nil, false
	}
	applied := make([]Applied, len(kept))
	for i, k := range kept {
		applied[i] = Applied{Previous: k[0], Flow: Flow{Key: changes[i].Key, Weight: k[1], Application: changes[i].Application}}
	}
	return applied, true
}

// Update is one change. Either Flow or Budget is set.
type Update struct {
	Flow    Flow
	Deleted bool    // the flow is gone, or no longer matches the watcher
	Budget  *Budget // an application's new limit

	old Flow // the earlier Flow; zero when new
}

// Batch is the changes that a watcher gets at once.
type Batch struct {
	// Reset is set if Updates is the full current state: a flow that is not in it does not exist. It is set in the
	// first batch, and again when the watcher was too slow.
	Reset   bool
	Missed  uint64 // updates dropped since the last batch; Reset replaces them
	Updates []Update
}

// Watcher follows a registry: it gets the state, then every change in order. One goroutine
// calls Next.
type Watcher struct {
	registry *Registry
	match    func(Flow) bool
	updates  *events.Subscription[Update]
	synced   bool // the watcher has returned a full state
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
		b.Missed = 0 // the first state includes all earlier updates
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
