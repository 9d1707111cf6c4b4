package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/state/history"
)

// full makes a state file with something of everything, in many lines.
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

// TestDamage: a file of which any byte was changed, or in which any line is missing, is refused;
// one that a crash has cut short in its last line is what it was before that line.
func TestDamage(t *testing.T) {
	whole, err := os.ReadFile(full(t))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	try := func(name string, text []byte) (Summary, error) {
		t.Helper()
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		defer os.Remove(path)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		sum, cerr := Check(path)
		s, err := Open(path, Options{NoSync: true})
		var damaged *DamagedError
		switch {
		case (cerr == nil) != (err == nil):
			t.Errorf("%s: Check = %v, Open = %v", name, cerr, err)
		case err == nil:
			if err := s.SaveLinks(map[string]bool{"x": true}, nil); err != nil {
				t.Errorf("%s: it opened, then: %v", name, err)
			}
			_ = s.Close()
			if after, err := Check(path); err != nil || after.DownLinks != sum.DownLinks+1 {
				t.Errorf("%s: after a change: %v, %v", name, after, err)
			}
		case !errors.As(err, &damaged) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "state restore"):
			t.Errorf("%s: %v", name, err)
		}
		return sum, err
	}
	if sum, err := try("as it is", whole); err != nil || sum.String() != fullSummary {
		t.Errorf("a sound file: %v, %v", sum, err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		text, at := bytes.Clone(whole), random.IntN(len(whole)-1) // without the end of the last line
		text[at] ^= byte(1 + random.IntN(255))
		if _, err := try(fmt.Sprintf("byte %d", at), text); err == nil {
			t.Errorf("byte %d was %q and is %q: not refused", at, whole[at], text[at])
		}
	}
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for cut := last; cut < len(whole); cut += 7 {
		if sum, err := try(fmt.Sprintf("cut at %d", cut), whole[:cut]); err != nil || sum.Config.Generation != 0 || sum.Flows != 200 {
			t.Errorf("cut at %d of %d: %v, %v", cut, len(whole), sum, err)
		}
	}
	for name, text := range map[string][]byte{
		"zeros in the middle": append(append(bytes.Clone(whole[:last/2]), make([]byte, 4096)...), whole[last/2:]...),
		"first line missing":  whole[bytes.IndexByte(whole, '\n')+1:],
	} {
		if _, err := try(name, text); err == nil {
			t.Errorf("%s: not refused", name)
		}
	}
}

// FuzzRead: no bytes make reading fail in another way than by an error, and what was read
// makes a file of the same contents.
func FuzzRead(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("00000000 {}\n"))
	text, err := line(record{Header: &header{Version, 0}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, data []byte) {
		c := newContents(0)
		whole, end, err := c.read("f", bytes.NewReader(data))
		if err != nil {
			return
		}
		if whole > end || end != int64(len(data)) {
			t.Fatalf("whole %d, end %d of %d", whole, end, len(data))
		}
		var again []byte
		for _, r := range c.records() {
			text, err := line(r)
			if err != nil {
				t.Fatal(err)
			}
			again = append(again, text...)
		}
		if _, _, err := newContents(0).read("f", bytes.NewReader(again)); err != nil {
			t.Fatal(err)
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
