package store

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/state/history"
)

// pair is a state file and its audit log.
type pair struct {
	*Store
	file *audit.File
	log  *audit.Log
}

func openPair(dir string, o Options) (p *pair, err error) {
	p = &pair{}
	o.NoSync = true
	path := filepath.Join(dir, "state.db")
	if p.Store, err = Open(path, o); err != nil {
		return nil, err
	}
	quiet := slog.New(slog.DiscardHandler)
	if p.file, err = audit.OpenFile(path+".audit", p.AuditLog(), quiet); err == nil {
		err = p.Beside(p.file)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	p.log = audit.New(audit.Options{Keeper: p.Store, File: p.file, Log: quiet})
	return p, nil
}

func (p *pair) close() {
	if p.log != nil {
		p.log.Close()
	}
	if p.file != nil {
		_ = p.file.Close()
	}
	_ = p.Close()
}

// apply keeps a configuration, as the daemon does.
func (p *pair) apply(generation uint64) error {
	err := p.SaveConfig(history.Entry{File: "fabric.yaml", YAML: "name: x\n", Generation: generation, Applied: time.Unix(int64(generation), 0).UTC()}, nil)
	p.log.Record(audit.Entry{What: audit.Apply, Value: float64(generation)}, err)
	return err
}

// text formats the whole content of a state.
func (c *contents) String() string {
	flows, budgets := []string{}, []string{}
	for _, f := range c.flows {
		flows = append(flows, fmt.Sprint(f))
	}
	for _, b := range c.budgets {
		budgets = append(budgets, fmt.Sprint(b))
	}
	slices.Sort(flows)
	slices.Sort(budgets)
	text, err := json.Marshal([]any{c.history, c.links, c.priorities, flows, budgets, c.audit.All(), c.term})
	return fmt.Sprint(string(text), err)
}

func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// TestMutations: a state file with changed bits or pages, a shortened one, or an older copy is either refused or opens
// with its old content. After it opens, the next write can be read again. HEADGATE_MUTATIONS is the number of tries.
func TestMutations(t *testing.T) {
	const page = 4096
	dir := t.TempDir()
	var old [][]byte
	for run := range 3 {
		p, err := openPair(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := weights.New(weights.Options{Keeper: p, Audit: p.log})
		for i := range 30 {
			var changes []weights.Change
			for j := range 1 + i%7 {
				changes = append(changes, weights.Change{Key: key(100*run + 10*i + j), Weight: 1})
			}
			_, err := r.Set(weights.Caller{Peer: "peer"}, changes...)
			err = errors.Join(err, p.SaveLinks(map[string]bool{fmt.Sprint("l", i%5): i%2 == 0}, nil), p.SavePriority(i%8, "web", nil))
			if i%6 == 5 {
				err = errors.Join(err, p.apply(uint64(100*run+i)))
			}
			p.log.Record(audit.Entry{What: audit.Priority}, err) // as the caller of the change does
			data, readErr := os.ReadFile(filepath.Join(dir, "state.db"))
			if err := errors.Join(err, readErr); err != nil {
				t.Fatal(err)
			}
			old = append(old, data)
		}
		p.close()
	}
	path := filepath.Join(dir, "state.db")
	base, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := newContents(0)
	if _, err := want.load("f", base); err != nil {
		t.Fatal(err)
	}
	was := want.String()
	want.links["x"] = true
	next := want.String()
	log, err := os.ReadFile(path + ".audit")
	if err != nil {
		t.Fatal(err)
	}
	head, err := os.ReadFile(audit.HeadName(path + ".audit"))
	if err != nil {
		t.Fatal(err)
	}

	random := rand.New(rand.NewPCG(1, 2))
	at := func(data []byte) []byte { n := random.IntN(len(data) / page); return data[n*page : (n+1)*page] }
	same := func(data []byte) (mine, other []byte) { // a page, and the page at its place in an older copy
		o := old[len(old)-2-random.IntN(20)]
		n := random.IntN(min(len(data), len(o)) / page)
		return data[n*page : (n+1)*page], o[n*page : (n+1)*page]
	}
	kinds := []struct {
		name   string
		mutate func([]byte) []byte
	}{
		{"bit", func(b []byte) []byte { b[random.IntN(len(b))] ^= 1 << random.IntN(8); return b }},
		{"bit of a page's head", func(b []byte) []byte { at(b)[random.IntN(48)] ^= 1 << random.IntN(8); return b }},
		{"cut", func(b []byte) []byte { return b[:random.IntN(len(b))] }},
		{"zeros", func(b []byte) []byte {
			n := random.IntN(len(b))
			clear(b[n:min(len(b), n+random.IntN(page))])
			return b
		}},
		{"page over another", func(b []byte) []byte { copy(at(b), at(b)); return b }},
		{"page over another, with its number", func(b []byte) []byte { to, from := at(b), at(b); copy(to[8:], from[8:]); return b }},
		{"page of an older copy", func(b []byte) []byte { mine, other := same(b); copy(mine, other); return b }},
		{"meta page of an older copy", func(b []byte) []byte {
			copy(b[random.IntN(2)*page:][:page], old[random.IntN(len(old)-1)][random.IntN(2)*page:])
			return b
		}},
		{"older copy", func([]byte) []byte { return slices.Clone(old[random.IntN(len(old)-1)]) }},
	}
	tries := 180
	if n, err := strconv.Atoi(os.Getenv("HEADGATE_MUTATIONS")); err == nil {
		tries = n
	}
	counts := map[string]int{}
	for i := range tries {
		k := kinds[i%len(kinds)]
		data := k.mutate(slices.Clone(base))
		there := t.TempDir()
		path := filepath.Join(there, "state.db")
		if err := errors.Join(os.WriteFile(path, data, 0o600), os.WriteFile(path+".audit", log, 0o600), os.WriteFile(audit.HeadName(path+".audit"), head, 0o600)); err != nil {
			t.Fatal(err)
		}
		p, err := openPair(there, Options{})
		if err != nil {
			var damaged *DamagedError
			var loss *LossError
			if !errors.As(err, &damaged) && !errors.As(err, &loss) || !strings.Contains(err.Error(), "--accept-loss") {
				t.Errorf("%s: %v", k.name, err)
			}
			counts[k.name+": refused"]++
			continue
		}
		counts[k.name+": opened with what it held"]++
		if p.state.String() != was {
			t.Errorf("%s, number %d: it opens with other contents", k.name, i)
		}
		err = p.SaveLinks(map[string]bool{"x": true}, nil)
		p.close()
		again := newContents(0)
		if data, readErr := os.ReadFile(path); err == nil && readErr == nil {
			_, err = again.load("f", data)
		}
		if err != nil || again.String() != next {
			t.Errorf("%s, number %d: it opens, and what is written then is not read again: %v", k.name, i, err)
		}
	}
	for k := range counts {
		t.Log(k, counts[k])
	}
}

// TestOlderStateIsRefused: a state file is refused if it is older than the audit log, another one, or missing. The
// error has the missing generation. If the loss is accepted, it is reported once. An audit log older than the state
// file is refused too.
func TestOlderStateIsRefused(t *testing.T) {
	dir := t.TempDir()
	p, err := openPair(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(18) {
		if err := p.apply(n + 1); err != nil {
			t.Fatal(err)
		}
	}
	p.close()
	older := filepath.Join(t.TempDir(), "older")
	copyFiles(t, dir, older)
	if p, err = openPair(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Backup(filepath.Join(dir, "state.db"), filepath.Join(older, "backup.db")); err != nil {
		t.Fatal(err)
	}
	for n := range uint64(5) {
		if err := p.apply(n + 19); err != nil {
			t.Fatal(err)
		}
	}
	p.close()
	// fork is the older copy with changes of its own, more than the original has.
	fork := filepath.Join(t.TempDir(), "fork")
	copyFiles(t, older, fork)
	if p, err = openPair(fork, Options{}); err != nil {
		t.Fatal(err)
	}
	for n := range uint64(9) {
		if err := p.apply(n + 19); err != nil {
			t.Fatal(err)
		}
	}
	p.close()

	replace := func(t *testing.T, to, from string, names ...string) {
		t.Helper()
		for _, name := range names {
			err := os.Remove(filepath.Join(to, name))
			if from != "" {
				var data []byte
				data, err = os.ReadFile(filepath.Join(from, name))
				err = errors.Join(err, os.WriteFile(filepath.Join(to, name), data, 0o600))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	logs := []string{"state.db.audit", "state.db.audit.head"}
	for _, c := range []struct {
		name string
		do   func(t *testing.T, dir string)
		want string
		has  uint64 // the generation with which it continues
	}{
		{"an older file", func(t *testing.T, dir string) { replace(t, dir, older, "state.db") }, "generation 23 was applied last; the file has generation 18", 18},
		{"another file", func(t *testing.T, dir string) { replace(t, dir, fork, "state.db") }, "line", 27},
		{"no file", func(t *testing.T, dir string) { replace(t, dir, "", "state.db") }, "generation 23 was applied last; the file has no configuration", 0},
		{"a backup", func(t *testing.T, dir string) {
			if _, old, err := Restore(filepath.Join(older, "backup.db"), filepath.Join(dir, "state.db")); err != nil || old == "" {
				t.Fatal(old, err)
			}
		}, "generation 23 was applied last; the file has generation 18", 18},
		{"an older log", func(t *testing.T, dir string) { replace(t, dir, older, logs...) }, "as the state file says", 23},
		{"another log", func(t *testing.T, dir string) { replace(t, dir, fork, logs...) }, "the state file has the hash of another", 23},
		{"no log", func(t *testing.T, dir string) { replace(t, dir, "", logs...) }, "as the state file says", 23},
	} {
		t.Run(c.name, func(t *testing.T) {
			here := filepath.Join(t.TempDir(), "x")
			copyFiles(t, dir, here)
			c.do(t, here)
			for range 2 { // a refused start changes nothing
				p, err := openPair(here, Options{})
				if err == nil {
					p.close()
				}
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("%v, want %q", err, c.want)
				}
				var loss *LossError
				if errors.As(err, &loss) != strings.Contains(c.name, "file") && c.want != "line" && c.name != "a backup" {
					t.Errorf("%v is of another kind", err)
				}
			}
		})
		if strings.Contains(c.name, "log") || c.want == "line" {
			continue // the daemon opens the log without the file's knowledge: see its tests
		}
		t.Run(c.name+", accepted", func(t *testing.T) {
			here := filepath.Join(t.TempDir(), "x")
			copyFiles(t, dir, here)
			c.do(t, here)
			p, err := openPair(here, Options{AcceptLoss: true})
			if err != nil {
				t.Fatal(err)
			}
			if saved, _ := p.LoadConfig(); saved.Generation != c.has || p.Loss() == nil || !strings.Contains(p.Loss().Error(), c.want) {
				t.Errorf("generation %d, accepted: %v", saved.Generation, p.Loss())
			}
			p.log.Record(audit.Entry{What: audit.AcceptLoss, Value: float64(c.has)}, nil)
			p.close()
			if p, err = openPair(here, Options{}); err != nil {
				t.Fatalf("the next start: %v", err)
			}
			p.close()
			replace(t, here, dir, "state.db")
			if p, err = openPair(here, Options{}); err == nil {
				p.close()
				t.Error("the file that was lost is taken for the one that goes on")
			}
		})
	}
}

// TestVersion2: a state file of Headgate of November 2026, which was a journal of lines with an audit log beside it, is
// converted to this version and kept under another name. One that lacks entries of the log is refused.
func TestVersion2(t *testing.T) {
	text, err := os.ReadFile("testdata/version2/state.db")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	lines = lines[:len(lines)-1]
	const whole = "generation 3 from fabric.yaml, applied 2026-11-27T04:17:46Z, of 3 that are kept; 1 link out of service, 2 virtual priorities, 1 flow, 2 budgets, 15 lines of the audit log"
	for _, c := range []struct{ name, text, want string }{
		{"as it is", string(text), ""},
		{"with a line that a crash cut short", string(text) + "0123456", ""},
		{"cut before the last change", strings.Join(lines[:len(lines)-1], ""), "at least the change of the log's last line"},
		{"cut in the last change", string(text[:len(text)-9]), "at least the change of the log's last line"},
		{"cut before the last configuration", strings.Join(lines[:15], ""), "generation 3 was applied last; the file has generation 2"},
		{"without its header", strings.Join(lines[1:], ""), "line 1: a header belongs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "x")
			copyFiles(t, "testdata/version2", dir)
			path := filepath.Join(dir, "state.db")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			before, checkErr := Check(path)
			p, err := openPair(dir, Options{})
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("%v, want %q", err, c.want)
				}
				if p, err = openPair(dir, Options{AcceptLoss: true}); err != nil || p.Loss() == nil {
					t.Fatal(err)
				}
				p.close()
				return
			}
			if err != nil || checkErr != nil || before.String() != whole {
				t.Fatal(before, checkErr, err)
			}
			if err := cmp.Or(p.SaveLinks(map[string]bool{"x": true}, nil), p.apply(4)); err != nil {
				t.Fatal(err)
			}
			p.close()
			if kept, err := os.ReadFile(path + ".version2"); err != nil || string(kept) != c.text {
				t.Errorf("the old file: %v", err)
			}
			if p, err = openPair(dir, Options{}); err != nil {
				t.Fatal(err)
			}
			defer p.close()
			if sum := p.state.summary(); sum.Config.Generation != 4 || sum.DownLinks != 2 || sum.Configs != 4 || sum.Audit != 16 {
				t.Errorf("it holds %v", sum)
			}
		})
	}
}
