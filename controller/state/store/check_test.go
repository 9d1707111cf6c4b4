package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/state/history"
)

// full makes a state file with one of each kind of content, in many lines.
func full(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.db")
	s := open(t, path, Options{NoSync: true})
	r := weights.New(weights.Options{Keeper: s})
	for i := range 10 {
		var changes []weights.Change
		for j := range 20 {
			changes = append(changes, weights.Change{Key: key(20*i + j), Weight: 1})
		}
		if _, err := r.Set(weights.Caller{Peer: "peer"}, changes...); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		r.SetBudget(weights.Caller{Peer: "peer"}, "default", 1000), s.SaveLinks(map[string]bool{"a-b": true}, nil), s.SaveLinks(map[string]bool{"c-d": true}, nil), s.SaveLinks(map[string]bool{"c-d": false}, nil), s.SavePriority(3, "web", nil),
		s.SaveConfig(history.Entry{File: "fabric.yaml", YAML: "name: x\n", Generation: 7, Applied: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, nil), s.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return path
}

const fullSummary = "generation 7 from fabric.yaml, applied 2026-01-02T03:04:05Z, of 1 that are kept; 1 link out of service, 1 virtual priority, 200 flows, 1 budget, 201 lines of the audit log"

// FuzzRead: reading any bytes gives a state or an error. A state that was read can be written to a
// file with the same contents.
func FuzzRead(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("00000000 {}\n"))
	text, err := line(record{Header: &header{Version: lineVersion}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	path := filepath.Join(f.TempDir(), "state.db")
	s, err := Open(path, Options{NoSync: true})
	if err != nil {
		f.Fatal(err)
	}
	backup, err := s.Backup()
	data, readErr := os.ReadFile(path)
	if err := errors.Join(err, readErr, s.SaveLinks(map[string]bool{"l": true}, nil), s.Close()); err != nil {
		f.Fatal(err)
	}
	f.Add(backup)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		c := newContents(0)
		l, err := c.load("f", data)
		if err != nil {
			return
		}
		again, err := c.text(l.end)
		if err != nil {
			t.Fatal(err)
		}
		if l2, err := newContents(0).load("f", again); err != nil || l2.end.Seq != l.end.Seq+1 {
			t.Fatal(l2.end, err)
		}
	})
}

func TestBackupAndRestore(t *testing.T) {
	path := full(t)
	dir := filepath.Dir(path)
	copied, into := filepath.Join(dir, "copy.db"), filepath.Join(dir, "new.db")
	if sum, err := Check(path); err != nil || sum.String() != fullSummary {
		t.Errorf("Check = %v, %v", sum, err)
	}
	if sum, err := Backup(path, copied); err != nil || sum.String() != fullSummary {
		t.Errorf("Backup = %v, %v", sum, err)
	}
	if _, err := Backup(path, copied); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("over another backup: %v", err)
	}
	for i, want := range []string{"", into + ".old"} {
		if sum, old, err := Restore(copied, into); err != nil || old != want || sum.String() != fullSummary {
			t.Errorf("Restore %d = %v, %q, %v", i, sum, old, err)
		}
	}
	if sum, err := Check(into); err != nil || sum.String() != fullSummary {
		t.Errorf("restored: %v, %v", sum, err)
	}

	s := open(t, path, Options{})
	if sum, err := Check(path); err != nil || sum.String() != fullSummary {
		t.Errorf("check of a file in use: %v, %v", sum, err)
	}
	if sum, err := Backup(path, into+".2"); err != nil || sum.String() != fullSummary {
		t.Errorf("backup of a file in use: %v, %v", sum, err)
	}
	if _, _, err := Restore(copied, path); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("restore over a file in use: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(copied, 5000); err != nil {
		t.Fatal(err)
	}
	var damaged *DamagedError
	if _, _, err := Restore(copied, path); !errors.As(err, &damaged) {
		t.Errorf("restore of a damaged backup: %v", err)
	}
	if sum, err := Check(path); err != nil || sum.Flows != 200 {
		t.Errorf("after it: %v, %v", sum, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*"+partial)); left != nil {
		t.Errorf("left over: %v", left)
	}
	if _, err := Check(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("a file that is not there is fine")
	}
}
