package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/headgate/headgate/controller/state/history"
	"github.com/headgate/headgate/units"
)

// partial ends the names of files that are not whole yet.
const partial = ".part"

// Summary says what a state file holds.
type Summary struct {
	Config                                            history.Entry // in force; zero when none was applied
	DownLinks, Priorities, Flows, Applications, Audit int
	Configs                                           int // that were applied and are kept
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
}

// Error says what to do about it.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged: %v; put a backup in its place with `headgate state restore`, or move it away to begin with an empty one", e.Name, e.Err)
}

// Unwrap returns what was found.
func (e *DamagedError) Unwrap() error { return e.Err }

// Check reads every line of a state file and changes nothing. A controller may have the file
// open: a change that it is writing at that moment is not part of the summary.
func Check(path string) (Summary, error) {
	_, sum, err := load(path)
	return sum, err
}

func load(path string) (*contents, Summary, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, Summary{}, fmt.Errorf("state file: %w", err)
	}
	defer f.Close()
	c := newContents(0)
	if _, _, err := c.read("state file "+path, f); err != nil {
		return nil, Summary{}, err
	}
	return c, c.summary(), nil
}

func (c *contents) summary() Summary {
	return Summary{
		Config: c.config(), Configs: len(c.history), DownLinks: len(c.links), Priorities: len(c.priorities),
		Flows: len(c.flows), Applications: len(c.budgets), Audit: len(c.audit.All()),
	}
}

// Backup checks a state file, which a controller may have open, and copies it to a new file.
func Backup(path, to string) (Summary, error) {
	c, _, err := load(path)
	if err != nil {
		return Summary{}, err
	}
	return c.create(to)
}

// Take keeps a backup that a controller has sent as a new file, once it was checked.
func Take(text []byte, to string) (Summary, error) {
	c := newContents(0)
	if _, _, err := c.read("the backup", bytes.NewReader(text)); err != nil {
		return Summary{}, err
	}
	return c.create(to)
}

// create puts the contents into a new file.
func (c *contents) create(to string) (Summary, error) {
	if _, err := os.Lstat(to); !errors.Is(err, os.ErrNotExist) {
		return Summary{}, fmt.Errorf("%s is there already: name a new file", to)
	}
	return c.summary(), c.place(to, func(temporary string) error { return os.Link(temporary, to) })
}

// Restore checks a backup and puts a copy of it in a state file's place, which no controller
// may have open. What stood there is kept under the same name with ".old" behind it, which is
// returned; "" when nothing did.
func Restore(from, path string) (sum Summary, old string, err error) {
	c, sum, err := load(from)
	if err != nil {
		return sum, "", err
	}
	err = c.place(path, func(temporary string) error {
		current, err := lock(path, os.O_RDWR)
		if errors.Is(err, os.ErrNotExist) {
			return os.Rename(temporary, path)
		}
		if err != nil {
			return err
		}
		defer current.Close()
		old = path + ".old"
		if err := os.Rename(path, old); err != nil {
			return err
		}
		return os.Rename(temporary, path)
	})
	return sum, old, err
}

// place writes the contents to a temporary file beside to, durably, and lets put move it there.
func (c *contents) place(to string, put func(temporary string) error) error {
	// A name of its own: the controller that has the file open uses the usual one.
	temporary := fmt.Sprintf("%s.%d%s", to, os.Getpid(), partial)
	f, _, err := c.write(temporary)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temporary) }()
	defer f.Close()
	if err := put(temporary); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(to))
}

func syncFolder(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
