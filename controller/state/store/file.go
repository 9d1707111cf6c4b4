package store

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/state/outcome"
)

const (
	// lockWait is how long Open waits for another process to release the file.
	lockWait = time.Second
	// slack is how many bytes a journal may always grow by before it is compacted.
	slack = 1 << 20
)

// file is a state file: the end of a chain in its first line, and the chain's records as lines. No other process has
// it open. The Store's lock guards it.
type file struct {
	chain
	path  string
	out   *os.File // locked; nil until the file is rewritten
	old   *os.File // keeps the file locked until it is rewritten; nil when out does
	aside string   // new name of the old file; empty if it is not kept
	kept  string   // name that the kept file got: aside, or aside with a number if that name is taken
	fresh bool     // there was no file
	limit int64    // the size of the lines at which the file is written anew
	// write writes at an offset of a file: durably, or without syncing, except in tests.
	write func(out *os.File, text []byte, at int64) error
}

// durably writes at an offset of a file, and returns when the disk has what it wrote.
func durably(out *os.File, text []byte, at int64) error {
	if _, err := out.WriteAt(text, at); err != nil {
		return err
	}
	return out.Sync()
}

// tail is the offset of the next line.
func (f *file) tail() int64 { return int64(markSize) + f.size }

// openFile opens or creates a file and adds its content to an empty state. A file of an older version is rewritten.
// So is a damaged file if the damage is accepted; damaged is then the damage.
func openFile(path string, o Options, state *contents) (f *file, damaged error, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, nil, fmt.Errorf("state file %s: %w", path, err)
	}
	f = &file{path: path, limit: slack, write: durably}
	if o.NoSync {
		f.write = func(out *os.File, text []byte, at int64) error { _, err := out.WriteAt(text, at); return err }
	}
	in, err := lock(path, os.O_RDWR)
	switch {
	case errors.Is(err, os.ErrNotExist):
		f.fresh = true
		return f, nil, f.rewrite(state)
	case err != nil:
		return nil, nil, err
	}
	data, err := io.ReadAll(in)
	if err == nil {
		f.chain, err = state.load("state file "+path, data)
	}
	var bad *DamagedError
	switch {
	case errors.As(err, &bad) && o.AcceptLoss:
		f.old, f.aside, damaged = in, path+".damaged", bad.Err
		err = f.rewrite(state)
	case bad != nil:
		bad.Has = state.summary().String()
		f.old = in
	case err != nil:
		f.old = in
	case isText(data):
		f.old, f.aside = in, path+".version2"
		err = f.rewrite(state)
	default:
		f.limit += 2 * f.summed
		f.out = in
		err = in.Truncate(f.tail()) // without what a crash left
	}
	if err != nil && !IsDiskFull(err) {
		return nil, nil, errors.Join(err, f.close())
	}
	return f, damaged, err // the next change tries again
}

// IsDiskFull reports whether an error means that the disk is full or a quota is used up.
func IsDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// lock opens a file and locks it against other processes that use lock.
func lock(path string, flags int) (*os.File, error) {
	for end := time.Now().Add(lockWait); ; time.Sleep(20 * time.Millisecond) {
		f, err := os.OpenFile(path, flags, 0o600)
		if err != nil {
			return nil, fmt.Errorf("state file: %w", err)
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		mine, _ := f.Stat()
		now, _ := os.Stat(path)
		if err == nil && os.SameFile(mine, now) { // the path still names the locked file
			return f, nil
		}
		_ = f.Close()
		if err != nil && time.Now().After(end) {
			return nil, fmt.Errorf("state file %s is in use by another process: stop it, or name another file", path)
		}
	}
}

func (f *file) close() error {
	var err error
	for _, open := range []*os.File{f.out, f.old} {
		if open != nil {
			err = errors.Join(err, open.Close())
		}
	}
	return err
}

// append adds a change to the chain.
func (f *file) append(r record, state *contents) error {
	if f.out == nil {
		if err := f.rewrite(state); err != nil {
			return err
		}
	}
	r.Prev = hex.EncodeToString(f.end.Hash[:])
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	end := audit.Head{Seq: f.end.Seq + 1, Hash: sha256.Sum256(text)}
	switch err = f.write(f.out, appendLine(nil, text), f.tail()); {
	case err == nil: // the end follows the line: after a crash it may be behind, never ahead
		err = f.write(f.out, []byte(end.String()), 0)
	case IsDiskFull(err) && f.out.Truncate(f.tail()) == nil:
		return fmt.Errorf("state file: %w", err)
	}
	if err != nil { // it is unknown whether the change is on disk
		f.out, f.old = nil, f.out
		return outcome.Unknown(fmt.Errorf("state file: %w", err))
	}
	f.end, f.size, f.log = end, f.size+lineSize(text), cmp.Or(r.AuditLog, f.log)
	return nil
}

func (f *file) tidy(state *contents) error {
	if f.size <= f.limit {
		return nil
	}
	f.limit = 2 * f.size
	return f.rewrite(state)
}

// rewrite replaces the file by one that contains only a summary of the state. The summary counts as a change.
func (f *file) rewrite(state *contents) error {
	lines, l, err := state.seal(f.end, f.log)
	if err != nil {
		return err
	}
	// The name contains the process id, because no lock protects the temporary file.
	temporary := fmt.Sprintf("%s.%d%s", f.path, os.Getpid(), partial)
	out, err := os.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("state file: %w", err)
	}
	if err = syscall.Flock(int(out.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		err = f.write(out, append([]byte(l.end.String()), lines...), 0)
	}
	if err == nil && f.aside != "" {
		f.kept, err = keep(f.path, f.aside)
	}
	place := os.Rename
	if f.fresh {
		place = os.Link // Link fails if another process was faster
	}
	if err == nil {
		err = place(temporary, f.path)
	}
	_ = os.Remove(temporary)
	if err == nil {
		err = syncFolder(filepath.Dir(f.path))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("state file: %w", err), out.Close())
	}
	_ = f.close()
	f.chain, f.out, f.old, f.aside, f.fresh, f.limit = l, out, nil, "", false, 2*l.size+slack
	return nil
}

// keep links a file to a second name. If that name is taken, it appends a number.
func keep(path, as string) (name string, err error) {
	name = as
	for n := 2; ; n++ {
		if err := os.Link(path, name); !errors.Is(err, os.ErrExist) {
			return name, err
		}
		name = fmt.Sprintf("%s.%d", as, n)
	}
}
