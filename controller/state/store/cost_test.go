package store

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/headgate/headgate/controller/state/history"
)

// TestCostOfAChange: a change writes its own bytes and a few pages, whatever the number and size of earlier changes.
// This also holds for the first change after opening a file.
func TestCostOfAChange(t *testing.T) {
	// The pages: the last leaf, the leaves it splits into, their branch, the leaf of the end, the root of both buckets,
	// the free list.
	const pages = 10 * 4096
	path := filepath.Join(t.TempDir(), "state.db")
	s := open(t, path, Options{NoSync: true})
	f := s.journal.(*file)
	f.limit = math.MaxInt64 // no change rewrites the file
	var wrote int64         // bytes, since this was 0
	count := func(db *bolt.DB, fn func(*bolt.Tx) error) error {
		return db.Update(func(tx *bolt.Tx) error {
			tx.OnCommit(func() { stats := tx.Stats(); wrote += stats.GetPageAlloc() })
			return fn(tx)
		})
	}
	f.update = count
	change := func(i, own int) {
		t.Helper()
		wrote = 0
		err := s.SaveLinks(map[string]bool{fmt.Sprint("l", i%5): i%2 == 0}, nil)
		if own > 0 {
			wrote = 0
			err = errors.Join(err, s.SaveConfig(history.Entry{YAML: strings.Repeat("#", own)}, nil))
		}
		if most := int64(own + own/20 + pages); err != nil || wrote == 0 || wrote > most {
			t.Fatalf("change %d, of %d bytes and a few, writes %d, want at most %d: %v", i, own, wrote, most, err)
		}
	}
	for i := range 2000 {
		change(i, max(0, 1-i%400)*400_000)
	}
	if err := errors.Join(f.rewrite(s.state), s.Close()); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, Options{NoSync: true})
	s.journal.(*file).update = count
	change(0, 0)
	if _, err := Check(path); err != nil {
		t.Error(err)
	}
}
