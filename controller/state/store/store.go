// Package store keeps what the controller must not forget: the configurations that were applied, the last of which is
// in force, the links out of service, virtual priorities, weights, budgets and the audit log. It is a journal of
// changes, in a file of bbolt or in etcd. Every change is durable before the call returns, so a crash at any moment
// leaves the last whole change. A journal more than twice as large as the state is replaced by a new one with only
// the state.
//
// In a file each change has a number, the hash of the change before, and the position of the audit log; each line of
// the audit log has the position of the state file. So a mismatch of the two files is found.
package store

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/state/history"
	"github.com/headgate/headgate/controller/state/outcome"
)

// Options of a Store.
type Options struct {
	Audit  int  // audit entries kept, the oldest are dropped first; 0 means audit.DefaultLimit
	NoSync bool // trust the operating system with the last changes; for tests
	// Restore is a state file with which a new journal in etcd begins; empty for none. It is ignored if there is a
	// journal: see CheckRestore.
	Restore string
	// AcceptLoss continues with the readable part of a damaged file, or with a file that lacks changes of
	// the audit log. See Store.Loss.
	AcceptLoss bool
}

// Store is safe for concurrent use.
type Store struct {
	options Options
	lead    uint64 // the number of the cluster's lead; 0 without one

	writing sync.Mutex // guards what follows, and is held until a change is durable
	journal journal
	log     *audit.File // audit log beside the file; nil for none
	lost    error       // see Loss

	mu     sync.Mutex // guards what follows, which changes while writing is held too
	state  *contents
	failed error     // error of the last write
	tried  time.Time // time of the last write
}

// journal is where changes are durable. Its methods are not called at the same time.
type journal interface {
	// append stores a change of the state, whole or not at all. If it cannot know which, the error wraps
	// outcome.ErrUnknown.
	append(r record, state *contents) error
	// tidy may replace the journal by one with only the state. If that fails, the old journal stays in use.
	tidy(state *contents) error
	close() error
}

// noJournal stores nothing. It refuses each change with refusal; if that is nil, changes are kept in memory only.
type noJournal struct{ refusal error }

func (j noJournal) append(record, *contents) error { return j.refusal }
func (noJournal) tidy(*contents) error             { return nil }
func (noJournal) close() error                     { return nil }

var (
	_ weights.Keeper = (*Store)(nil)
	_ history.Keeper = (*Store)(nil)
)

// Open opens or creates a file and its folder. It refuses a damaged file with a *DamagedError. A second Open of the
// same path fails. With an empty path nothing is kept on disk. On a full disk an existing file can be read; changes
// are refused until there is room.
func Open(path string, o Options) (*Store, error) {
	s := &Store{state: newContents(o.Audit), journal: noJournal{}, options: o}
	if path == "" {
		return s, nil
	}
	f, damaged, err := openFile(path, o, s.state)
	if f == nil {
		return nil, err
	}
	s.journal, s.failed = f, err
	if damaged != nil {
		s.lost = fmt.Errorf("state file %s was damaged: %w; it continues with the content before that: %v", path, damaged, s.state.summary())
	}
	return s, nil
}

// Close releases the journal.
func (s *Store) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.journal.close()
}

// Term returns the highest known upper half of a P4Runtime election id that was used with this state, by this
// cluster or by the clusters whose backups it began with.
func (s *Store) Term() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.term + s.lead
}

// maxTerm leaves terms for later leaders, whatever term a switch reports.
const maxTerm = 1 << 62

// RaiseTerm raises Term above the given value, for this leader and all later ones, and returns the new Term. It
// fails if another leader may have taken over.
func (s *Store) RaiseTerm(above uint64) (uint64, error) {
	if above >= maxTerm {
		return 0, fmt.Errorf("term %d is not one of Headgate's: want less than 2^62", above)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.state.term+s.lead <= above {
		if err := s.write(record{Term: above - s.lead + 1}); err != nil {
			return 0, err
		}
	}
	return s.state.term + s.lead, nil
}

// Backup returns the store's content as a state file in text form.
func (s *Store) Backup() ([]byte, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	state := *s.state
	state.term += s.lead
	var end audit.Head
	if f, ok := s.journal.(*file); ok {
		end = f.end
	}
	return state.text(end)
}

// retry is how often Err tries to write again.
const retry = time.Second

// Err returns why the last write failed, nil if it did not. It first retries with an empty change.
func (s *Store) Err() error {
	tried, failed := s.lastWrite()
	if _, ok := s.journal.(*file); ok && failed != nil && time.Since(tried) > retry {
		_ = s.change(record{})
		_, failed = s.lastWrite()
	}
	return failed
}

func (s *Store) lastWrite() (at time.Time, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tried, s.failed
}

// Done returns the outcome of a request, by its key.
func (s *Store) Done(key string) (outcome.Done, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.done.Get(key)
}

// KeepDone keeps the outcome of a request that changed nothing else.
func (s *Store) KeepDone(d outcome.Done) error { return s.change(record{Done: &d}) }

// change makes a change. If it returns nil, the change is durable. If the error wraps outcome.ErrUnknown, the
// change may have been made; with any other error it was not made.
func (s *Store) change(r record) error {
	if err := r.check(); err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.write(r)
}

// write is change for a change that was checked. The caller holds writing, and not mu: a disk, or etcd, may take seconds.
func (s *Store) write(r record) error {
	if s.log != nil {
		r.AuditLog = s.log.End()
	}
	err := s.journal.append(r, s.state)
	s.mu.Lock()
	if s.tried, s.failed = time.Now(), err; err == nil {
		s.state.apply(r)
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	err = s.journal.tidy(s.state) // if it fails, the change is still durable
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = err
	return nil
}

// SaveConfig implements history.Keeper.
func (s *Store) SaveConfig(c history.Entry, done *outcome.Done) error {
	return s.change(record{Config: &c, Done: done})
}

// ConfirmConfig implements history.Keeper.
func (s *Store) ConfirmConfig(done *outcome.Done) error {
	return s.change(record{Confirmed: true, Done: done})
}

// LoadConfig returns the configuration in force; false when none was saved yet.
func (s *Store) LoadConfig() (history.Entry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.config(), len(s.state.history) > 0
}

// History implements history.Keeper.
func (s *Store) History() []history.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.state.history)
}

// SaveLinks keeps whether an operator took links out of service, by name.
func (s *Store) SaveLinks(down map[string]bool, done *outcome.Done) error {
	return s.change(record{Links: down, Done: done})
}

// DownLinks returns the links that an operator took out of service.
func (s *Store) DownLinks() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.state.links))
}

// SavePriority stores the application of a virtual priority; "" for none.
func (s *Store) SavePriority(priority int, application string, done *outcome.Done) error {
	return s.change(record{Priorities: map[int]string{priority: application}, Done: done})
}

// Priorities returns which application has which virtual priority.
func (s *Store) Priorities() map[int]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.state.priorities)
}

// CommitWeights implements weights.Keeper.
func (s *Store) CommitWeights(c weights.Commit) error {
	return s.change(record{Weights: &c, Done: c.Done})
}

// LoadWeights implements weights.Keeper.
func (s *Store) LoadWeights() weights.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return weights.State{
		Flows: slices.Collect(maps.Values(s.state.flows)), Budgets: slices.Collect(maps.Values(s.state.budgets)),
	}
}

// CommitAudit implements audit.Keeper.
func (s *Store) CommitAudit(entries []audit.Entry) error {
	return s.change(record{Weights: &weights.Commit{Audit: entries}})
}

// ListAudit implements audit.Keeper.
func (s *Store) ListAudit(application string, n int) []audit.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return audit.Newest(s.state.audit, application, n)
}
