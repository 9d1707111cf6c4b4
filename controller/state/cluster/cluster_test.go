package cluster_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/state/cluster"
	"github.com/headgate/headgate/controller/state/history"
	"github.com/headgate/headgate/controller/state/outcome"
	"github.com/headgate/headgate/controller/state/store"
)

func address(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestTerms: the next leader reads the last leader's writes under a higher term, after a smaller journal has
// replaced the old one, and after a restart of etcd. The old leader cannot write any more.
func TestTerms(t *testing.T) {
	o := cluster.Options{
		Name: "c1", Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler),
		Cluster: config.Cluster{Lease: time.Minute, Members: []config.Member{{Name: "c1", Raft: address(t), Relay: "127.0.0.1:0"}}},
	}
	ctx := t.Context()
	open := func(m *cluster.Node) (*cluster.Term, *store.Store) {
		t.Helper()
		term, err := m.Stand(ctx, ctx)
		if err != nil {
			t.Fatal(err)
		}
		s, err := store.OpenReplicated(term.Context, store.Lead{Client: m.Client(), Fence: term.Fence, Lost: term.End}, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return term, s
	}
	m, err := cluster.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	first, s := open(m)
	text := strings.Repeat("#", 10_000)
	for i := range 130 {
		if err := s.SaveConfig(history.Entry{YAML: text, Generation: uint64(i + 1)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SaveLinks(map[string]bool{"l": true}, nil); err != nil {
		t.Fatal(err)
	}
	if err := first.Resign(); err != nil {
		t.Fatal(err)
	}
	second, next := open(m)
	if second.Number <= first.Number {
		t.Errorf("term %d comes after %d", second.Number, first.Number)
	}
	// The context of a frozen leader is still valid when it wakes up, so only etcd refuses its
	// write.
	var lost error
	late, err := store.OpenReplicated(ctx, store.Lead{Client: m.Client(), Fence: first.Fence, Lost: func(err error) { lost = err }}, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := late.SaveLinks(map[string]bool{"m": true}, nil); !errors.Is(err, outcome.ErrNotLeader) || !errors.Is(lost, outcome.ErrNotLeader) {
		t.Errorf("a write of the leader before: %v, and the lead ends with %v", err, lost)
	}
	if got := next.DownLinks(); !slices.Equal(got, []string{"l"}) || len(next.History()) != 100 {
		t.Errorf("the next leader reads links %v and %d configurations", got, len(next.History()))
	}
	name, _ := m.Leader()
	for end := time.Now().Add(10 * time.Second); name != "c1" && time.Now().Before(end); name, _ = m.Leader() {
		time.Sleep(time.Millisecond)
	}
	if name != "c1" {
		t.Errorf("%q leads", name)
	}
	if err := errors.Join(second.Resign(), m.Close()); err != nil {
		t.Fatal(err)
	}
	if err := next.SaveLinks(map[string]bool{"n": true}, nil); err == nil || context.Cause(second.Context) == nil {
		t.Errorf("a write after the end: %v", err)
	}

	if m, err = cluster.Start(ctx, o); err != nil {
		t.Fatal(err)
	}
	third, s := open(m)
	if last, ok := s.LoadConfig(); !ok || last.Generation != 130 || !slices.Equal(s.DownLinks(), []string{"l"}) || third.Number <= second.Number {
		t.Errorf("after a restart generation %d, links %v, term %d", last.Generation, s.DownLinks(), third.Number)
	}
	if err := errors.Join(third.Resign(), m.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestRemovedMember: a member that was removed from the cluster ends and gives the reason, both while it runs and when
// it returns with the data from before its removal.
func TestRemovedMember(t *testing.T) {
	shared := config.Cluster{Lease: 2 * time.Second}
	for _, name := range []string{"c1", "c2", "c3"} {
		shared.Members = append(shared.Members, config.Member{Name: name, Raft: address(t), Relay: "127.0.0.1:0"})
	}
	dir := t.TempDir()
	nodes := map[string]*cluster.Node{}
	start := func(names ...string) {
		t.Helper()
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, name := range names {
			wg.Go(func() {
				m, err := cluster.Start(t.Context(), cluster.Options{Name: name, Dir: filepath.Join(dir, name), Log: slog.New(slog.DiscardHandler), Cluster: shared})
				mu.Lock()
				defer mu.Unlock()
				if nodes[name] = m; err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		if wg.Wait(); t.Failed() {
			t.FailNow()
		}
	}
	start("c1", "c2", "c3")
	list, err := nodes["c1"].Client().MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list.Members {
		for end := time.Now().Add(20 * time.Second); o.Name == "c3"; time.Sleep(50 * time.Millisecond) { // etcd requires peers to be up for 5 s
			if _, err = nodes["c1"].Client().MemberRemove(t.Context(), o.ID); err == nil || time.Now().After(end) {
				break
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	says := func(err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "member c3 was removed from the cluster") || !strings.Contains(err.Error(), "headgate replace member c3") {
			t.Errorf("a member that was removed says: %v", err)
		}
	}
	select {
	case <-nodes["c3"].Gone():
		says(nodes["c3"].Err())
	case <-time.After(20 * time.Second):
		t.Error("a member that was removed runs on")
	}
	_ = nodes["c3"].Close()
	restarted := make(chan error, 1)
	go func() {
		_, err := cluster.Start(t.Context(), cluster.Options{Name: "c3", Dir: filepath.Join(dir, "c3"), Log: slog.New(slog.DiscardHandler), Cluster: shared})
		restarted <- err
	}()
	select {
	case err := <-restarted:
		says(err)
	case <-time.After(20 * time.Second):
		t.Error("a member that was removed waits for a majority")
	}
	select {
	case <-nodes["c1"].Gone():
		t.Errorf("a member ended: %v", nodes["c1"].Err())
	default:
	}
	for _, name := range []string{"c1", "c2"} {
		if err := nodes[name].Close(); err != nil {
			t.Error(err)
		}
	}
}
