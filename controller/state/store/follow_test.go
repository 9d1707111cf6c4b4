package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate/controller/state/history"
	"github.com/headgate/headgate/controller/state/outcome"
	"github.com/headgate/headgate/tests/etcdtest"
)

// TestFollower: a follower's read sees the leader's earlier writes, over many lines and after a smaller journal
// has replaced the old one. A follower cannot write.
func TestFollower(t *testing.T) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{etcdtest.Start(t, etcdtest.Options{})}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx := t.Context()
	f := Follow(client)
	if s, at, err := f.Read(ctx); s != nil || at != (Position{}) || err != nil {
		t.Fatalf("before the first leader: %v, %v, %v", s, at, err)
	}
	leader, err := OpenReplicated(ctx, Lead{Client: client, Fence: clientv3.Compare(clientv3.CreateRevision("none"), "=", 0), Lost: func(err error) { t.Error(err) }}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	last := Position{}
	check := func(step string, newer bool) {
		t.Helper()
		s, at, err := f.Read(ctx)
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		want, got := leader.History(), s.History()
		if !slices.Equal(s.DownLinks(), leader.DownLinks()) || len(got) != len(want) || len(want) > 0 && got[len(got)-1].Generation != want[len(want)-1].Generation {
			t.Errorf("%s: links %v and %d configurations, want %v and %d", step, s.DownLinks(), len(got), leader.DownLinks(), len(want))
		}
		if last.Before(at) != newer || at.Before(last) {
			t.Errorf("%s: read up to %v after %v", step, at, last)
		}
		last = at
		if err := s.SaveLinks(map[string]bool{"x": true}, nil); !errors.Is(err, outcome.ErrNotLeader) {
			t.Errorf("%s: a follower writes: %v", step, err)
		}
	}
	link := func(i int) {
		t.Helper()
		if err := leader.SaveLinks(map[string]bool{fmt.Sprint("l", i): true}, nil); err != nil {
			t.Fatal(err)
		}
	}
	check("empty", true)
	link(0)
	check("one change", true)
	check("no change", false)
	for i := range 2*pageLines + 1 {
		link(i)
	}
	check("changes of three pages", true)
	journal := leader.journal.(*replicated)
	for n := uint64(1); journal.epoch == last.epoch; n++ {
		if err := leader.SaveConfig(history.Entry{YAML: strings.Repeat("#", 20_000), Generation: n}, nil); err != nil {
			t.Fatal(err)
		}
	}
	link(-1)
	check("another journal", true)
	link(-2)
	check("a change of it", true)
}

// TestTermAfterRestore: a cluster that starts with a backup has higher terms than the lost cluster, whose term is in
// the backup. This also holds after a change of its leader and for the next backup.
func TestTermAfterRestore(t *testing.T) {
	lead := func(etcd string, term uint64, o Options) *Store {
		t.Helper()
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		s, err := OpenReplicated(t.Context(), Lead{Client: client, Term: term, Fence: clientv3.Compare(clientv3.CreateRevision("none"), "=", 0), Lost: func(err error) { t.Error(err) }}, o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	backup := func(s *Store) string {
		t.Helper()
		text, err := s.Backup()
		path := filepath.Join(t.TempDir(), "backup.db")
		if err := errors.Join(err, os.WriteFile(path, text, 0o600)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	last := lead(etcdtest.Start(t, etcdtest.Options{}), 1_000_000, Options{})
	if last.Term() != 1_000_000 {
		t.Errorf("the first cluster has term %d", last.Term())
	}
	for range 2 {
		file := filepath.Join(t.TempDir(), "state.db") // through a single controller
		if _, _, err := Restore(backup(last), file); err != nil {
			t.Fatal(err)
		}
		alone := open(t, file, Options{})
		if err := alone.SaveLinks(map[string]bool{"l": true}, nil); err != nil || alone.Term() != last.Term() {
			t.Errorf("a controller by itself has term %d, want %d: %v", alone.Term(), last.Term(), err)
		}
		etcd, from := etcdtest.Start(t, etcdtest.Options{}), backup(alone)
		for term := range uint64(3) {
			next := lead(etcd, 5+term, Options{Restore: from})
			if next.Term() <= last.Term() || next.Term() <= 1_000_000+termStep/2 {
				t.Errorf("after a restore term %d follows on %d", next.Term(), last.Term())
			}
			last = next
		}
		// A switch knows the term of a leader that came after the backup. Every later leader is above that term, and
		// so is a later backup.
		known := last.Term() + 7<<40
		if term, err := last.RaiseTerm(known); err != nil || term <= known || term != last.Term() {
			t.Errorf("above %d is %d: %v", known, term, err)
		}
		next := lead(etcd, 9, Options{})
		if term, err := next.RaiseTerm(known); err != nil || term <= last.Term() || term != next.Term() {
			t.Errorf("after a raised term %d the next one is %d: %v", last.Term(), term, err)
		}
		if term, err := next.RaiseTerm(1 << 62); err == nil || next.Term() >= 1<<62 {
			t.Errorf("a switch that lies gets term %d", term)
		}
		last = next
	}
}
