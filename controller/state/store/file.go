package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// lockWait is how long Open waits for another process to release the file.
	lockWait = time.Second
	// slack is how many bytes a journal may always grow by before it is compacted.
	slack = 1 << 20
)

// file is a journal in a file that no other process has open. The Store's lock guards it.
type file struct {
	path  string
	sync  bool
	file  *os.File
	size  int64 // of the file's whole lines
	limit int64 // the size at which the file is compacted
	torn  bool  // the file may end with a line that was not written whole
}

// openFile opens or creates a file and adds what it says to an empty state.
func openFile(path string, sync bool, state *contents) (*file, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("state file %s: %w", path, err)
	}
	j := &file{path: path, sync: sync, limit: slack}
	var err error
	if j.file, err = lock(path, os.O_RDWR|os.O_CREATE); err != nil {
		return nil, err
	}
	var end int64
	if j.size, end, err = state.read("state file "+path, j.file); err == nil {
		if end == 0 {
			err = j.compact(state)
		} else if j.size < end { // a line that a crash cut short
			err = j.file.Truncate(j.size)
		}
	}
	if err != nil {
		return nil, errors.Join(err, j.file.Close())
	}
	return j, nil
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

func (j *file) close() error { return j.file.Close() }

// append writes a change to the end of the file.
func (j *file) append(r record, state *contents) error {
	if j.torn {
		if err := j.compact(state); err != nil {
			return err
		}
	}
	text, err := line(r)
	if err != nil {
		return err
	}
	_, err = j.file.WriteAt(text, j.size)
	if err == nil && j.sync {
		err = j.file.Sync()
	}
	if err != nil {
		j.torn = j.file.Truncate(j.size) != nil
		return err
	}
	j.size += int64(len(text))
	return nil
}

func (j *file) tidy(state *contents) error {
	if j.size <= j.limit {
		return nil
	}
	j.limit = 2 * j.size
	return j.compact(state)
}

// compact puts a file with nothing but the state in the place of the journal.
func (j *file) compact(state *contents) error {
	f, size, err := state.write(j.path + partial)
	if err != nil {
		return err
	}
	err = os.Rename(j.path+partial, j.path)
	if err == nil && j.sync {
		err = syncFolder(filepath.Dir(j.path))
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	_ = j.file.Close()
	j.file, j.size, j.limit, j.torn = f, size, 2*size+slack, false
	return nil
}
