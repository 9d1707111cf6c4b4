package store

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/state/history"
	"github.com/headgate/headgate/tests/lag"
)

const childEnv = "HEADGATE_STORE_TEST_FILE"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		child(path)
	}
	goleak.VerifyTestMain(m)
}

func key(n int) weights.Key {
	k, err := weights.NewKey("10.0.0.1", "10.0.0.2", uint32(1000+n), 50151)
	if err != nil {
		panic(err)
	}
	return k
}

func open(t *testing.T, path string, o Options) *Store {
	t.Helper()
	s, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestConfigSurvives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "state.db")
	for _, p := range []string{path, ""} {
		s := open(t, p, Options{})
		if _, ok := s.LoadConfig(); ok {
			t.Error("a new store holds a configuration")
		}
		want := history.Entry{File: "fabric.yaml", YAML: "name: x\n", Generation: 7, Applied: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}
		if err := s.SaveConfig(want, nil); err != nil {
			t.Fatal(err)
		}
		if p != "" {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, p, Options{})
		}
		if got, ok := s.LoadConfig(); !ok || got != want {
			t.Errorf("LoadConfig = %+v, %v", got, ok)
		}
	}
}

func TestWeightsSurvive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := open(t, path, Options{})
	log := audit.New(audit.Options{Keeper: s})
	r := weights.New(weights.Options{Keeper: s, Audit: log})
	if _, err := r.Configure(&config.Config{File: "fabric.yaml", Applications: []config.Application{{Name: "a", Budget: 10}, {Name: "b", Budget: 2}, {Name: "default", Budget: 5}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Set(weights.Caller{Peer: "peer"}, weights.Change{Key: key(1), Weight: 1.5, Application: "a"}, weights.Change{Key: key(2), Weight: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Report(weights.Caller{Peer: "host h1"}, "h1", []weights.Change{{Key: key(3), Weight: 0.25, Application: "b"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Set(weights.Caller{Peer: "peer"}, weights.Change{Key: key(4), Weight: math.NaN()}); err == nil {
		t.Fatal("NaN was accepted")
	}
	if err := r.Delete(weights.Caller{Peer: "peer"}, key(2)); err != nil {
		t.Fatal(err)
	}
	if err := r.SetBudget(weights.Caller{Peer: "peer"}, "a", 11); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = open(t, path, Options{})
	again := weights.New(weights.Options{Keeper: s})
	opts := cmp.Options{cmp.Comparer(func(a, b weights.Key) bool { return a == b }), cmpopts.EquateNaNs()}
	if d := cmp.Diff(r.Flows(""), again.Flows(""), opts); d != "" {
		t.Errorf("flows: %s", d)
	}
	if d := cmp.Diff(r.Budgets(), again.Budgets(), opts); d != "" {
		t.Errorf("budgets: %s", d)
	}
	kept := s.ListAudit("", 100)
	if d := cmp.Diff(log.List("", 100), kept, opts); d != "" || len(kept) != 9 {
		t.Errorf("audit of %d: %s", len(kept), d)
	}
}

func TestAuditIsBounded(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "state.db"), Options{Audit: 5, NoSync: true})
	for i := range 12 {
		e := audit.Entry{Peer: fmt.Sprint(i), What: audit.Budget}
		if err := s.CommitAudit([]audit.Entry{e, e}); err != nil {
			t.Fatal(err)
		}
	}
	if audit := s.ListAudit("", math.MaxInt); len(audit) != 5 || audit[4].Peer != "11" || audit[0].Peer != "9" {
		t.Errorf("audit = %+v", audit)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	busy := filepath.Join(dir, "busy.db")
	open(t, busy, Options{})
	for _, tt := range []struct{ path, want string }{
		{write("text.db", strings.Repeat("not a state file\n", 2000)), "is damaged: it is no state file"},
		{write("newer.db", lines(t, record{Header: &header{Version: 4}})), "this program reads version 2 and 3"},
		{write("headless.db", lines(t, record{Links: map[string]bool{"l": true}})), "line 1: a header belongs"},
		{write("short.db", lines(t, record{Header: &header{Version: lineVersion, Lines: 2}}, record{})), "it ends after 2 of 3 lines"},
		{filepath.Join(write("file", ""), "state.db"), "not a directory"},
		{busy, "in use by another process"},
	} {
		s, err := Open(tt.path, Options{})
		if err == nil {
			_ = s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.path) {
			t.Errorf("%s: error = %v, want %q", tt.path, err, tt.want)
		}
	}
}

func TestOpenNamesTheBadLine(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`{"weights":{"put":[{"flow":"nonsense","weight_millionths":1}]}}`, `flow: "nonsense" is not allowed`},
		{`{"weights":{"put":[{"flow":"","weight_millionths":1}]}}`, `flow "" has a weight of 1 millionths`},
		{`{"weights":{"put":[{"flow":"10.0.0.1:1,10.0.0.2:2","weight_millionths":-1}]}}`, "a weight of -1 millionths"},
		{`{"weights":{"budgets":[{]}}`, "invalid character"},
		{`{"weights":{"audit":[{"value":"x"}]}}`, `parsing "x"`},
		{`{"header":{"version":2}}`, "a header belongs into the first line"},
	} {
		path := filepath.Join(t.TempDir(), "state.db")
		text := lines(t, record{Header: &header{Version: lineVersion}}) + fmt.Sprintf("%08x %s\n", crc32.Checksum([]byte(tt.text), castagnoli), tt.text)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var damaged *DamagedError
		if _, err := Open(path, Options{}); !errors.As(err, &damaged) || !strings.Contains(err.Error(), "line 2: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error = %v, want %q", err, tt.want)
		}
	}
}

// lines returns records in the form of the file.
func lines(t *testing.T, list ...record) string {
	t.Helper()
	var all []byte
	for _, r := range list {
		text, err := line(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	return string(all)
}

// TestCompacts: a compacted journal has the same contents, and another process still finds it
// locked.
func TestCompacts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := open(t, path, Options{NoSync: true})
	text := strings.Repeat("#", 10_000)
	for i := range 400 {
		if err := s.SaveConfig(history.Entry{YAML: text, Generation: uint64(i + 1)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if f := s.journal.(*file); f.size > 300*int64(len(text)) || f.end.Seq < 400 {
		t.Errorf("the file has records of %d bytes, and ends with change %d", f.size, f.end.Seq)
	}
	if _, err := Open(path, Options{}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second store of the new file: %v", err)
	}
	if sum, err := Check(path); err != nil || sum.Config.Generation != 400 {
		t.Errorf("Check = %+v, %v", sum, err)
	}
}

// child changes weights until it is killed, and reports each change after it was made.
func child(path string) {
	s, err := Open(path, Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	r := weights.New(weights.Options{Keeper: s, Log: slog.New(slog.DiscardHandler)})
	for i := 1; err == nil; i++ {
		_, err = r.Set(weights.Caller{Peer: "child"}, weights.Change{Key: key(1), Weight: float64(i), Application: "a"},
			weights.Change{Key: key(2), Weight: float64(i), Application: "a"})
		fmt.Println(i)
	}
	os.Exit(1)
}

func TestKilledWhileWriting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	said := 0
	for said < 10 && lines.Scan() {
		if _, err := fmt.Sscan(lines.Text(), &said); err != nil {
			t.Errorf("the child says %q", lines.Text())
			break
		}
	}
	_ = cmd.Process.Kill()
	for lines.Scan() { // reported before it died
		_, _ = fmt.Sscan(lines.Text(), &said)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()

	s := open(t, path, Options{})
	r := weights.New(weights.Options{Keeper: s})
	a, _ := r.Flow(key(1))
	b, _ := r.Flow(key(2))
	got := int(a.Weight / weights.One)
	if a.Weight != b.Weight || got < said || got > said+1 {
		t.Errorf("weights %v and %v after %d acknowledged changes", a.Weight, b.Weight, said)
	}
	if n := len(s.ListAudit("", math.MaxInt)); n != 2*got {
		t.Errorf("%d audit entries for %d changes", n, got)
	}
}

// TestAuditInMemory: memory has each line of the audit log once: its texts, and the unused part of its ring.
func TestAuditInMemory(t *testing.T) {
	const lines, most = 20000, 1.5 * float64(unsafe.Sizeof(audit.Entry{}))
	held := lag.Held(t, func() any {
		s, err := Open("", Options{Audit: lines}) // it stays closed: a cleanup would keep it in memory
		if err != nil {
			t.Fatal(err)
		}
		log := audit.New(audit.Options{Keeper: s, Limit: lines})
		for i := range 2 * lines { // the second half evicts the first
			log.Record(audit.Entry{Peer: "@", Flow: fmt.Sprintf("10.1.0.0:%d>10.1.0.1:50151/17", i), What: audit.Weight}, nil)
		}
		if n := len(log.List("", math.MaxInt)); n != lines {
			t.Errorf("%d lines, want %d", n, lines)
		}
		return log
	})
	if each := held / lines; each > most {
		t.Errorf("a line takes %.0f B, want %.0f at most", each, most)
	}
}

// TestHistory: applied configurations survive restarts and compactions, within the bounds, together
// with the one that an unconfirmed configuration is rolled back to.
func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := open(t, path, Options{NoSync: true})
	save := func(e history.Entry) {
		t.Helper()
		if err := s.SaveConfig(e, nil); err != nil {
			t.Fatal(err)
		}
	}
	save(history.Entry{Generation: 1, YAML: "a", By: "cn:alice", Why: "it is time"})
	big := strings.Repeat("#", mostText/4)
	for n := range 5 {
		save(history.Entry{Generation: uint64(n + 2), YAML: big, Confirm: time.Minute})
	}
	generations := func() (list []uint64) {
		for _, e := range s.History() {
			list = append(list, e.Generation)
		}
		return list
	}
	want := []uint64{1, 3, 4, 5, 6} // the first needed no confirmation
	if got := generations(); !slices.Equal(got, want) {
		t.Errorf("generations %v, want %v", got, want)
	}
	reopen := func() {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, path, Options{NoSync: true})
	}
	reopen()
	if got := s.History(); !slices.Equal(generations(), want) || got[0].By != "cn:alice" || got[0].Why != "it is time" || got[4].Confirm != time.Minute {
		t.Errorf("after a restart %v", generations())
	}
	if err := s.ConfirmConfig(nil); err != nil {
		t.Fatal(err)
	}
	reopen()
	if last, _ := s.LoadConfig(); last.Confirm != 0 || last.Generation != 6 {
		t.Errorf("the confirmed one is generation %d, %v", last.Generation, last.Confirm)
	}
	for n := range mostConfigs + 5 {
		save(history.Entry{Generation: uint64(n + 7), YAML: "b"})
	}
	if got := generations(); len(got) != mostConfigs || got[len(got)-1] != mostConfigs+11 {
		t.Errorf("%d of %d are kept: %v", len(got), mostConfigs, got)
	}
}

// slowJournal is a journal whose disk or etcd answers on a signal.
type slowJournal struct {
	noJournal
	asked, answer chan struct{}
}

func (j slowJournal) append(record, *contents) error {
	close(j.asked)
	<-j.answer
	return nil
}

// TestReadsWhileWriting: no reader of the state waits for a change that the disk or etcd has not taken yet.
func TestReadsWhileWriting(t *testing.T) {
	j := slowJournal{asked: make(chan struct{}), answer: make(chan struct{})}
	s := &Store{state: newContents(0), journal: j}
	written := make(chan error, 1)
	go func() { written <- s.SaveConfig(history.Entry{Generation: 1}, nil) }()
	<-j.asked
	read := make(chan int)
	go func() {
		s.Term()
		s.Done("k")
		s.DownLinks()
		s.Priorities()
		s.LoadWeights()
		s.ListAudit("", 1)
		s.Err()
		read <- len(s.History())
	}()
	select {
	case n := <-read:
		if n != 0 {
			t.Errorf("%d configurations are read before the first is durable", n)
		}
	case <-time.After(10 * time.Second):
		t.Error("reads wait for a change")
	}
	close(j.answer)
	if err := <-written; err != nil || len(s.History()) != 1 {
		t.Errorf("after the change: %v, %v", s.History(), err)
	}
}
