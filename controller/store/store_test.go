package store

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/controller/weights"
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
		if _, ok, err := s.LoadConfig(); ok || err != nil {
			t.Errorf("a new store holds a configuration: %v", err)
		}
		want := Config{File: "fabric.yaml", YAML: "name: x\n", Generation: 7, Applied: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}
		if err := s.SaveConfig(want); err != nil {
			t.Fatal(err)
		}
		if p != "" {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, p, Options{})
		}
		if got, ok, err := s.LoadConfig(); !ok || err != nil || got != want {
			t.Errorf("LoadConfig = %+v, %v, %v", got, ok, err)
		}
	}
}

func TestWeightsSurvive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := open(t, path, Options{})
	r, err := weights.Open(weights.Options{Keeper: s})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Configure("configuration fabric.yaml", map[string]float64{"a": 10, "b": 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Set("peer", weights.Change{Key: key(1), Weight: 1.5, Application: "a"}, weights.Change{Key: key(2), Weight: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Report("host h1", "h1", []weights.Change{{Key: key(3), Weight: 0.25, Application: "b"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Set("peer", weights.Change{Key: key(4), Weight: math.NaN()}); err == nil {
		t.Fatal("NaN was accepted")
	}
	if err := r.Delete("peer", key(2)); err != nil {
		t.Fatal(err)
	}
	if err := r.SetBudget("peer", "a", 11); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	again, err := weights.Open(weights.Options{Keeper: open(t, path, Options{})})
	if err != nil {
		t.Fatal(err)
	}
	opts := cmp.Options{cmp.Comparer(func(a, b weights.Key) bool { return a == b }), cmpopts.EquateNaNs()}
	if d := cmp.Diff(r.Flows(""), again.Flows(""), opts); d != "" {
		t.Errorf("flows: %s", d)
	}
	if d := cmp.Diff(r.Budgets(), again.Budgets(), opts); d != "" {
		t.Errorf("budgets: %s", d)
	}
	if d := cmp.Diff(r.Audit("", 100), again.Audit("", 100), opts); d != "" || len(again.Audit("", 100)) != 8 {
		t.Errorf("audit of %d: %s", len(again.Audit("", 100)), d)
	}
}

func TestAuditIsBounded(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "state.db"), Options{Audit: 5, NoSync: true})
	for i := range 12 {
		e := weights.Entry{Peer: fmt.Sprint(i), What: weights.WhatBudget}
		if err := s.CommitWeights(weights.Commit{Audit: []weights.Entry{e, e}}); err != nil {
			t.Fatal(err)
		}
	}
	state, err := s.LoadWeights()
	if err != nil || len(state.Audit) != 5 || state.Audit[4].Peer != "11" || state.Audit[0].Peer != "9" {
		t.Errorf("audit = %+v, %v", state.Audit, err)
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
	newer := filepath.Join(dir, "newer.db")
	tamper(t, newer, func(root *bbolt.Bucket) error { return root.Put(keyVersion, number(2)) })
	for _, tt := range []struct{ path, want string }{
		{write("text.db", strings.Repeat("not a database", 2000)), "invalid database"},
		{filepath.Join(write("file", ""), "state.db"), "not a directory"},
		{busy, "in use by another process"},
		{newer, "this program reads version 1"},
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

func TestLoadNamesTheBadRecord(t *testing.T) {
	for _, tt := range []struct {
		bucket           []byte
		key, value, want string
	}{
		{bucketFlows, "nonsense", `{"weight_millionths":1}`, `flows "nonsense"`},
		{bucketFlows, key(1).String(), `{"weight_millionths":-1}`, "weight of -1 millionths"},
		{bucketBudgets, "a", `{`, `budgets "a"`},
		{bucketAudit, string(number(1)), `{"previous":"x"}`, "audit"},
	} {
		path := filepath.Join(t.TempDir(), "state.db")
		tamper(t, path, func(root *bbolt.Bucket) error { return root.Bucket(tt.bucket).Put([]byte(tt.key), []byte(tt.value)) })
		if _, err := weights.Open(weights.Options{Keeper: open(t, path, Options{})}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error = %v, want %q", err, tt.want)
		}
	}
}

func tamper(t *testing.T, path string, fn func(root *bbolt.Bucket) error) {
	t.Helper()
	s := open(t, path, Options{})
	if err := s.db.Update(func(tx *bbolt.Tx) error { return fn(tx.Bucket(bucketRoot)) }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// child changes weights until it is killed and says after each change that it was made.
func child(path string) {
	s, err := Open(path, Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	r, err := weights.Open(weights.Options{Keeper: s, Log: slog.New(slog.DiscardHandler)})
	for i := 1; err == nil; i++ {
		_, err = r.Set("child", weights.Change{Key: key(1), Weight: float64(i), Application: "a"},
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
	for lines.Scan() { // what it had said before it died
		_, _ = fmt.Sscan(lines.Text(), &said)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()

	r, err := weights.Open(weights.Options{Keeper: open(t, path, Options{})})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := r.Flow(key(1))
	b, _ := r.Flow(key(2))
	got := int(a.Weight / weights.One)
	if a.Weight != b.Weight || got < said || got > said+1 {
		t.Errorf("weights %v and %v after %d acknowledged changes", a.Weight, b.Weight, said)
	}
	if n := len(r.Audit("", 1<<20)); n != 2*got {
		t.Errorf("%d audit entries for %d changes", n, got)
	}
}
