// Package store keeps what the controller must not forget in one file: the configurations that
// were applied, the last of which is in force, the operator's word on links, virtual priorities, weights, budgets and the
// audit log. The file is a journal. Every change is one line, on disk before the call returns,
// so a crash at any moment leaves the last whole change. When the journal has grown to more
// than twice what it says, a new file with only that takes its place.
package store

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/headgate/headgate/controller/audit"
	"github.com/headgate/headgate/controller/history"
	"github.com/headgate/headgate/controller/weights"
)

const (
	// lockWait is how long Open waits for another process to release the file.
	lockWait = time.Second
	// slack is how many bytes a journal may always grow by before it is compacted.
	slack = 1 << 20
)

// Options of a Store.
type Options struct {
	Audit  int  // audit entries kept, the oldest are dropped first; 0 means audit.DefaultLimit
	NoSync bool // trust the operating system with the last changes; for tests
}

// Store owns its file: a second Open of the same path fails. It is safe for concurrent use.
// Without a path it keeps everything in memory.
type Store struct {
	path string // "" in memory
	sync bool

	mu     sync.Mutex // guards what follows
	state  *contents
	file   *os.File
	size   int64 // of the file's whole lines
	limit  int64 // the size at which the file is compacted
	failed error // of the last write
	torn   bool  // the file may end with a line that was not written whole
}

var (
	_ weights.Keeper = (*Store)(nil)
	_ history.Keeper = (*Store)(nil)
)

// Open opens or creates the file, with its folder; one that is damaged is refused with a
// *DamagedError. An empty path keeps nothing on disk.
func Open(path string, o Options) (*Store, error) {
	s := &Store{path: path, sync: !o.NoSync, state: newContents(o.Audit), limit: slack}
	if path == "" {
		return s, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("state file %s: %w", path, err)
	}
	var err error
	if s.file, err = lock(path, os.O_RDWR|os.O_CREATE); err != nil {
		return nil, err
	}
	var end int64
	if s.size, end, err = s.state.read(path, s.file); err == nil {
		if end == 0 {
			err = s.compact()
		} else if s.size < end { // a line that a crash cut short
			err = s.file.Truncate(s.size)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.file.Close())
	}
	return s, nil
}

// lock opens a file and makes sure that no other process has it open through lock.
func lock(path string, flags int) (*os.File, error) {
	for end := time.Now().Add(lockWait); ; time.Sleep(20 * time.Millisecond) {
		f, err := os.OpenFile(path, flags, 0o600)
		if err != nil {
			return nil, fmt.Errorf("state file: %w", err)
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		mine, _ := f.Stat()
		now, _ := os.Stat(path)
		if err == nil && os.SameFile(mine, now) { // its owner has not put a new file in its place
			return f, nil
		}
		_ = f.Close()
		if err != nil && time.Now().After(end) {
			return nil, fmt.Errorf("state file %s is in use by another process: stop it, or name another file", path)
		}
	}
}

// Close releases the file.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// Err returns why the last write failed, nil when it did not.
func (s *Store) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// change makes a change, which is durable when it returns nil and not made otherwise.
func (s *Store) change(r record) error {
	if err := r.check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed = s.append(r); s.failed != nil {
		return s.failed
	}
	s.state.apply(r)
	if s.file != nil && s.size > s.limit {
		s.limit = 2 * s.size // when compacting fails, the change is on disk all the same
		s.failed = s.compact()
	}
	return nil
}

// append writes a change to the end of the file. The caller has locked mu.
func (s *Store) append(r record) error {
	if s.file == nil {
		return nil
	}
	if s.torn {
		if err := s.compact(); err != nil {
			return err
		}
	}
	text, err := line(r)
	if err != nil {
		return err
	}
	_, err = s.file.WriteAt(text, s.size)
	if err == nil && s.sync {
		err = s.file.Sync()
	}
	if err != nil {
		s.torn = s.file.Truncate(s.size) != nil
		return err
	}
	s.size += int64(len(text))
	return nil
}

// compact puts a file with nothing but the state in the place of the journal. The caller has
// locked mu.
func (s *Store) compact() error {
	f, size, err := s.state.write(s.path + partial)
	if err != nil {
		return err
	}
	err = os.Rename(s.path+partial, s.path)
	if err == nil && s.sync {
		err = syncFolder(filepath.Dir(s.path))
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	_ = s.file.Close()
	s.file, s.size, s.limit, s.torn = f, size, 2*size+slack, false
	return nil
}

// SaveConfig implements history.Keeper.
func (s *Store) SaveConfig(c history.Entry) error { return s.change(record{Config: &c}) }

// ConfirmConfig implements history.Keeper.
func (s *Store) ConfirmConfig() error { return s.change(record{Confirmed: true}) }

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

// SaveLink keeps whether an operator took a link out of service.
func (s *Store) SaveLink(name string, down bool) error {
	return s.change(record{Links: map[string]bool{name: down}})
}

// DownLinks returns the links that an operator took out of service.
func (s *Store) DownLinks() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.state.links))
}

// SavePriority keeps which application has a virtual priority; "" is nobody.
func (s *Store) SavePriority(priority int, application string) error {
	return s.change(record{Priorities: map[int]string{priority: application}})
}

// Priorities returns which application has which virtual priority.
func (s *Store) Priorities() map[int]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.state.priorities)
}

// CommitWeights implements weights.Keeper.
func (s *Store) CommitWeights(c weights.Commit) error { return s.change(record{Weights: &c}) }

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

// LoadAudit implements audit.Keeper.
func (s *Store) LoadAudit() []audit.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.audit.All()
}
