package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/headgate/headgate/controller/authz/audit"
)

// LossError is a state file that does not match the audit log beside it.
type LossError struct {
	Path, Log string
	Text      string // what is missing
	Has       string // what the file has
}

// Error says what is missing and what can be done.
func (e *LossError) Error() string {
	return fmt.Sprintf("state file %s is not what the audit log %s says: %s; the file has %s: put the file that was lost, or a newer backup, in its place, "+
		"or start with --accept-loss to go on with what it has", e.Path, e.Log, e.Text, e.Has)
}

// Loss returns what Options.AcceptLoss accepted; nil for nothing.
func (s *Store) Loss() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// AuditLog returns the line of the audit log that was the last when the last change was made. The zero Head is
// that of a store that has no file, or knows of none.
func (s *Store) AuditLog() audit.Head {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.journal.(*file); ok {
		return f.log
	}
	return audit.Head{}
}

// Beside compares the file with the audit log beside it, before the first change. A file that lacks
// changes of the log, or has others, gives a *LossError unless the loss is accepted. From then on file
// and log record each other's last entry.
func (s *Store) Beside(log *audit.File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.journal.(*file)
	if !ok {
		return nil
	}
	said := log.Said()
	if text := f.missing(said, s.state); text != "" {
		err := &LossError{Path: f.path, Log: log.Path(), Text: text, Has: s.state.summary().String()}
		if !s.options.AcceptLoss {
			return err
		}
		// The number of the next change is none that the log knows.
		f.end.Seq = max(f.end.Seq, said.State.Seq)
		if s.failed = f.rewrite(s.state); s.failed != nil && !IsDiskFull(s.failed) {
			return s.failed
		}
		s.lost = cmp.Or(s.lost, error(err))
	}
	f.hashes = nil // nobody asks again
	s.log = log
	log.Follow(func() audit.Head {
		s.mu.Lock()
		defer s.mu.Unlock()
		return f.end
	})
	return nil
}

// missing says what of a state an audit log knows that the file lacks; empty for nothing.
func (f *file) missing(said audit.Said, state *contents) string {
	generation := fmt.Sprintf("generation %d was applied last", said.Generation)
	has := state.config().Generation
	if said.State == (audit.Head{}) { // no line says how many changes there were
		if said.Generation > has {
			return generation
		}
		if said.Last != "" && f.before.Seq == 0 && !slices.ContainsFunc(state.audit.All(), func(e audit.Entry) bool {
			text, err := json.Marshal(e)
			return err == nil && string(text) == said.Last
		}) {
			return "it lacks at least the change of the log's last line"
		}
		return ""
	}
	if said.Generation <= has {
		generation = "no generation is missing"
	}
	hash, known := f.hash(said.State.Seq)
	switch {
	case said.State.Seq > f.end.Seq:
		return fmt.Sprintf("change %d was the last, the file ends with change %d; %s", said.State.Seq, f.end.Seq, generation)
	case known && hash != said.State.Hash:
		return fmt.Sprintf("its change %d is another one; %s", said.State.Seq, generation)
	}
	return ""
}
