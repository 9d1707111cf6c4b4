package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/headgate/headgate/controller/state/history"
	"github.com/headgate/headgate/controller/state/outcome"
	"github.com/headgate/headgate/tests/smalldisk"
)

// TestDiskFull: with a full disk, the state can be read, also after a restart, and changes are refused until there is
// room. After that they succeed without help.
func TestDiskFull(t *testing.T) {
	large := history.Entry{YAML: strings.Repeat("#", 300_000), Generation: 9} // more than the file's reserve
	for _, c := range []struct {
		name string
		put  func(path string) error // existing content
		want int                     // links out of service
	}{
		{"a file of this version", func(path string) error {
			s, err := Open(path, Options{})
			if err != nil {
				return err
			}
			return errors.Join(s.SaveLinks(map[string]bool{"a": true}, nil), s.Close())
		}, 1},
		{"an older one", func(path string) error {
			text, err := os.ReadFile("testdata/version2/state.db")
			return errors.Join(err, os.WriteFile(path, text, 0o600))
		}, 1},
		{"none", func(string) error { return nil }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk := smalldisk.New(t, 1<<20)
			path := filepath.Join(disk.Dir, "state.db")
			if err := c.put(path); err != nil {
				t.Fatal(err)
			}
			disk.Fill(t)
			for range 2 {
				s, err := Open(path, Options{})
				if err != nil {
					t.Fatal(err)
				}
				if err := s.SaveConfig(large, nil); !IsDiskFull(err) || errors.Is(err, outcome.ErrUnknown) || !IsDiskFull(s.Err()) {
					t.Errorf("a change: %v, and the store says %v", err, s.Err())
				}
				if got := s.DownLinks(); len(got) != c.want {
					t.Errorf("it reads %v", got)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			s := open(t, path, Options{})
			_ = s.SaveConfig(large, nil)
			disk.Free(t)
			s.tried = time.Time{} // a second later
			if err := s.Err(); err != nil {
				t.Errorf("with room again: %v", err)
			}
			if err := errors.Join(s.SaveLinks(map[string]bool{"y": true}, nil), s.Close()); err != nil {
				t.Fatal(err)
			}
			if sum, err := Check(path); err != nil || sum.DownLinks != c.want+1 {
				t.Errorf("it holds %v, %v", sum, err)
			}
		})
	}
}

// TestWriteFails: a failed write leaves nothing. If its result is unknown, the next write writes the whole state
// again.
func TestWriteFails(t *testing.T) {
	for name, c := range map[string]struct {
		fail    func(db *bolt.DB, fn func(*bolt.Tx) error) error
		unknown bool
	}{
		"a full disk": {func(*bolt.DB, func(*bolt.Tx) error) error {
			return &fs.PathError{Op: "write", Path: "state.db", Err: syscall.ENOSPC}
		}, false},
		"a quota": {func(*bolt.DB, func(*bolt.Tx) error) error { return syscall.EDQUOT }, false},
		"a disk that fails after the write": {func(db *bolt.DB, fn func(*bolt.Tx) error) error {
			return errors.Join(syscall.EIO, db.Update(fn))
		}, true},
		"a panic": {func(db *bolt.DB, fn func(*bolt.Tx) error) error {
			return db.Update(func(tx *bolt.Tx) error { panic("page 7 is no page") })
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state.db")
			s := open(t, path, Options{})
			if err := s.SaveLinks(map[string]bool{"a": true}, nil); err != nil {
				t.Fatal(err)
			}
			f := s.journal.(*file)
			f.update = c.fail
			err := s.SaveLinks(map[string]bool{"x": true}, nil)
			if err == nil || errors.Is(err, outcome.ErrUnknown) != c.unknown || IsDiskFull(err) == c.unknown || s.Err() == nil || !slices.Equal(s.DownLinks(), []string{"a"}) {
				t.Errorf("a write that failed: %v, %v, links %v", err, s.Err(), s.DownLinks())
			}
			f.update = (*bolt.DB).Update
			if _, err := Open(path, Options{}); err == nil || !strings.Contains(err.Error(), "in use") {
				t.Errorf("another process meanwhile: %v", err)
			}
			if err := s.SaveLinks(map[string]bool{"b": true}, nil); err != nil || s.Err() != nil {
				t.Errorf("the next write: %v, %v", err, s.Err())
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if got := open(t, path, Options{}).DownLinks(); !slices.Equal(got, []string{"a", "b"}) {
				t.Errorf("the file has links %v", got)
			}
		})
	}
}
