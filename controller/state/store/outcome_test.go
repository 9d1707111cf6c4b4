package store

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/controller/allocation/priority"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/state/history"
	"github.com/headgate/headgate/controller/state/outcome"
	"github.com/headgate/headgate/tests/etcdtest"
)

// TestOutcomeUnknown: etcd makes a change, but its answer is lost. No error claims that nothing changed, and the
// old leader overwrites nothing.
func TestOutcomeUnknown(t *testing.T) {
	var lose atomic.Bool
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{etcdtest.Start(t, etcdtest.Options{
		Unary: func(ctx context.Context, in any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			answer, err := next(ctx, in)
			if strings.HasSuffix(info.FullMethod, "/Txn") && lose.CompareAndSwap(true, false) {
				return nil, status.Error(codes.Unavailable, "etcdserver: request timed out")
			}
			return answer, err
		},
	})}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	done := (&outcome.Request{Done: outcome.Done{Key: "k", Digest: "d"}}).DoneWith(7)
	for name, tc := range map[string]struct {
		change func(*Store) error
		made   func(*Store) bool
	}{
		"weight": {
			func(s *Store) error {
				_, err := weights.New(weights.Options{Keeper: s}).Set(weights.Caller{}, weights.Change{Key: key(9), Weight: 7})
				return err
			},
			func(s *Store) bool { return len(s.LoadWeights().Flows) == 1 },
		},
		"priority": {
			func(s *Store) error { return outcome.FromStore(s.SavePriority(3, "web", done)) },
			func(s *Store) bool {
				d, ok := s.Done("k")
				return s.Priorities()[3] == "web" && ok && string(d.Result) == "7"
			},
		},
		"link": {
			func(s *Store) error { return outcome.FromStore(s.SaveLinks(map[string]bool{"l": true}, nil)) },
			func(s *Store) bool { return len(s.DownLinks()) == 1 },
		},
		"configuration": {
			func(s *Store) error {
				return history.New(s, nil).Save(t.Context(), history.Entry{Generation: 1, YAML: "x"})
			},
			func(s *Store) bool { return len(s.History()) == 1 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := client.Delete(t.Context(), "/headgate/", clientv3.WithPrefix()); err != nil {
				t.Fatal(err)
			}
			ctx, end := context.WithCancelCause(t.Context())
			s, err := OpenReplicated(ctx, Lead{Client: client, Fence: clientv3.Compare(clientv3.CreateRevision("none"), "=", 0), Lost: func(err error) { end(err) }}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			lose.Store(true)
			if err := tc.change(s); !errors.Is(err, outcome.ErrUnknown) || strings.Contains(err.Error(), "nothing was changed") || context.Cause(ctx) == nil {
				t.Errorf("the change: %v; the lead: %v", err, context.Cause(ctx))
			}
			if err := s.SaveLinks(map[string]bool{"other": true}, nil); !errors.Is(err, outcome.ErrNotLeader) || errors.Is(err, outcome.ErrUnknown) {
				t.Errorf("a later change: %v", err)
			}
			if next, _, err := Follow(client).Read(t.Context()); err != nil || !tc.made(next) {
				t.Errorf("the change is not there: %v", err)
			}
		})
	}
}

var _ priority.Keeper = (*Store)(nil)

// TestDoneIsKept: the outcome of a request survives a restart and a compaction of the journal.
func TestDoneIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	for range 3 {
		s, err := Open(path, Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := s.Done("k"); !ok {
			if err := s.SavePriority(1, "web", (&outcome.Request{Done: outcome.Done{Key: "k", Digest: "d"}}).DoneWith(1)); err != nil {
				t.Fatal(err)
			}
		}
		if d, ok := s.Done("k"); !ok || d.Digest != "d" || string(d.Result) != "1" {
			t.Errorf("%+v, %v", d, ok)
		}
		backup, err := s.Backup()
		if err != nil || !strings.Contains(string(backup), `"key":"k"`) {
			t.Errorf("the backup has no request: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
