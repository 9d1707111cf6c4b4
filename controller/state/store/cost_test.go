package store

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller/state/history"
)

// TestCostOfAChange: a change writes its own bytes and a few more, however large the changes before it are and however
// many there are. That is so for the first change of a file that was there, too.
func TestCostOfAChange(t *testing.T) {
	const few = 500
	path := filepath.Join(t.TempDir(), "state.db")
	s := open(t, path, Options{NoSync: true})
	f := s.journal.(*file)
	f.limit = math.MaxInt64 // no change writes the file anew
	wrote := 0              // bytes, since this was 0
	count := func(out *os.File, text []byte, at int64) error {
		wrote += len(text)
		_, err := out.WriteAt(text, at)
		return err
	}
	f.write = count
	change := func(i, own int) {
		t.Helper()
		wrote = 0
		err := s.SaveLinks(map[string]bool{fmt.Sprint("l", i%5): i%2 == 0}, nil)
		if own > 0 {
			wrote = 0
			err = errors.Join(err, s.SaveConfig(history.Entry{YAML: strings.Repeat("#", own)}, nil))
		}
		if err != nil || wrote == 0 || wrote > own+few {
			t.Fatalf("change %d, of %d bytes and a few, writes %d, want at most %d: %v", i, own, wrote, own+few, err)
		}
	}
	for i := range 2000 {
		change(i, max(0, 1-i%400)*400_000)
	}
	if err := errors.Join(f.rewrite(s.state), s.Close()); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, Options{NoSync: true})
	s.journal.(*file).write = count
	change(0, 0)
	if _, err := Check(path); err != nil {
		t.Error(err)
	}
}
