package store

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/state/history"
	"github.com/headgate/headgate/units"
)

// partial is the suffix of files that are still being written.
const partial = ".part"

// mostReads is how often a file is read again if it changes meanwhile.
const mostReads = 100

// Summary is the content of a state file in numbers.
type Summary struct {
	Config                                            history.Entry // configuration in force; zero if none was applied
	DownLinks, Priorities, Flows, Applications, Audit int
	Configs                                           int // number of applied configurations that are kept
}

// String writes the summary on one line.
func (s Summary) String() string {
	text := "no configuration"
	if s.Config.Generation > 0 {
		text = fmt.Sprintf("generation %d from %s, applied %s, of %d that are kept", s.Config.Generation, s.Config.File, s.Config.Applied.Format(time.RFC3339), s.Configs)
	}
	return fmt.Sprintf("%s; %s out of service, %s, %s, %s, %s of the audit log",
		text, units.Count(s.DownLinks, "link"), units.Count(s.Priorities, "virtual priority"), units.Count(s.Flows, "flow"), units.Count(s.Applications, "budget"), units.Count(s.Audit, "line"))
}

// DamagedError is a journal that cannot be read whole.
type DamagedError struct {
	Name string // such as "state file state.db"
	Err  error
	Has  string // summary of the part before the damage; empty if that part is useless
}

// Error names the damage and the remedy.
func (e *DamagedError) Error() string {
	text := fmt.Sprintf("%s is damaged: %v; put a backup in its place with `headgate state restore`", e.Name, e.Err)
	if e.Has != "" {
		text += ", or start with --accept-loss to continue with the content before that: " + e.Has
	}
	return text
}

// Unwrap returns the error that the check found.
func (e *DamagedError) Unwrap() error { return e.Err }

// Check reads a state file, of this version or an older one, and changes nothing. A controller may have the file
// open: a change that it is writing at that moment is not part of the summary.
func Check(path string) (Summary, error) {
	c, _, err := read(path)
	if err != nil {
		return Summary{}, err
	}
	return c.summary(), nil
}

// read reads a state file. A controller may write it meanwhile: then the bytes mix several moments, which shows as
// damage, and the file is read again.
func read(path string) (c *contents, l chain, err error) {
	var before []byte
	for range mostReads {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, l, fmt.Errorf("state file: %w", err)
		}
		c = newContents(0)
		l, err = c.load("state file "+path, data)
		var damaged *DamagedError
		if !errors.As(err, &damaged) || bytes.Equal(before, data) {
			return c, l, err
		}
		before = data
		time.Sleep(10 * time.Millisecond)
	}
	return nil, l, fmt.Errorf("state file %s changes while it is read: let the controller that has it open make the backup", path)
}

func (c *contents) summary() Summary {
	return Summary{
		Config: c.config(), Configs: len(c.history), DownLinks: len(c.links), Priorities: len(c.priorities),
		Flows: len(c.flows), Applications: len(c.budgets), Audit: len(c.audit.All()),
	}
}

// text returns a backup whose last change is end.
func (c *contents) text(end audit.Head) (text []byte, err error) {
	records, _, err := c.seal(end, audit.Head{})
	for _, r := range records {
		text = appendLine(text, r)
	}
	return text, err
}

// Backup checks a state file and copies it to a new file, as text. A controller may have the state file open.
func Backup(path, to string) (Summary, error) {
	c, l, err := read(path)
	if err != nil {
		return Summary{}, err
	}
	text, err := c.text(l.end)
	if err != nil {
		return Summary{}, err
	}
	return c.create(text, to)
}

// Take checks a backup that a controller has sent and writes it to a new file.
func Take(text []byte, to string) (Summary, error) {
	c := newContents(0)
	if _, err := c.load("the backup", text); err != nil {
		return Summary{}, err
	}
	return c.create(text, to)
}

// create writes a backup's text to a new file.
func (c *contents) create(text []byte, to string) (Summary, error) {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return Summary{}, fmt.Errorf("%s is there already: name a new file", to)
	}
	if err != nil {
		return Summary{}, fmt.Errorf("state file: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close(), syncFolder(filepath.Dir(to))); err != nil {
		return Summary{}, errors.Join(err, os.Remove(to))
	}
	return c.summary(), nil
}

// Restore checks a backup and writes a state file with its contents at path. No controller may have that file open.
// An earlier file there is kept under the same name with the suffix ".old". That name is returned, "" if there was
// no file.
func Restore(from, path string) (sum Summary, old string, err error) {
	c, l, err := read(from)
	if err != nil {
		return sum, "", err
	}
	f := &file{path: path, sync: true, update: (*bolt.DB).Update}
	// A backup's summary keeps its number, which a later change of the original file may have too.
	if f.end = l.before; l.records > l.summary || l.end.Seq == 0 {
		f.end = l.end
	}
	current, err := lock(path, os.O_RDWR)
	switch {
	case err == nil:
		f.old, f.aside = current, path+".old"
	case errors.Is(err, os.ErrNotExist):
		f.fresh = true
	default:
		return sum, "", err
	}
	err = f.rewrite(c)
	return c.summary(), f.kept, errors.Join(err, f.close())
}

func syncFolder(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// LossError is returned for a state file that does not match the audit log beside it.
type LossError struct {
	Path, Log string
	Text      string // the missing content
	Has       string // the file's content
}

// Error names the missing content and the remedy.
func (e *LossError) Error() string {
	return fmt.Sprintf("state file %s is not what the audit log %s says: %s; the file has %s: put the file that was lost, or a newer backup, in its place, "+
		"or start with --accept-loss to continue with its content", e.Path, e.Log, e.Text, e.Has)
}

// Loss returns the loss that was accepted because of Options.AcceptLoss; nil for none.
func (s *Store) Loss() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.lost
}

// AuditLog returns the last line of the audit log at the time of the last change. It is the zero Head if the store
// has no file or has recorded no line.
func (s *Store) AuditLog() audit.Head {
	s.writing.Lock()
	defer s.writing.Unlock()
	if f, ok := s.journal.(*file); ok {
		return f.log
	}
	return audit.Head{}
}

// Beside compares the file with the audit log beside it, before the first change. If the file lacks changes that
// the log has recorded, or has different ones, Beside returns a *LossError unless the loss is accepted. From then
// on file and log record each other's last entry.
func (s *Store) Beside(log *audit.File) error {
	s.writing.Lock()
	defer s.writing.Unlock()
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
		// The next change must have a number that the log does not know.
		f.end.Seq = max(f.end.Seq, said.State.Seq)
		err2 := f.rewrite(s.state)
		if err2 != nil && !IsDiskFull(err2) {
			return err2
		}
		s.mu.Lock()
		s.failed = err2
		s.mu.Unlock()
		s.lost = cmp.Or(s.lost, error(err))
	}
	f.hashes = nil // hashes are not needed any more
	s.log = log
	log.Follow(func() audit.Head {
		s.writing.Lock()
		defer s.writing.Unlock()
		return f.end
	})
	return nil
}

// missing names the content that the audit log proves and the file lacks; empty for none.
func (f *file) missing(said audit.Said, state *contents) string {
	generation := fmt.Sprintf("generation %d was applied last", said.Generation)
	has := state.config().Generation
	if said.State == (audit.Head{}) { // no line of the log has recorded a number of changes
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
