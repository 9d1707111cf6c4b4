package northbound

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/authz/audit"
)

// TestLease: a host that stays away loses its registrations; one that returns in time keeps them.
func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var gone []string
		table := newHostTable(time.Minute, []string{"late", "never"}, func(host string) {
			mu.Lock()
			defer mu.Unlock()
			gone = append(gone, host)
		})
		attach := func(host string, a *attachment) {
			t.Helper()
			if err := table.attach(t.Context(), host, a); err != nil {
				t.Error(err)
			}
		}
		expect := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if slices.Sort(gone); !slices.Equal(gone, want) {
				t.Errorf("%s: gone are %v, want %v", when, gone, want)
			}
		}
		nothing := func(error) {}
		first, again := &attachment{cancel: nothing}, &attachment{cancel: nothing}
		attach("h1", first)
		attach("late", &attachment{cancel: nothing})
		time.Sleep(time.Minute)
		expect("after a minute", "never")
		table.detach("h1", first)
		time.Sleep(59 * time.Second)
		attach("h1", again)
		table.detach("h1", first) // the end of a stream that was replaced
		time.Sleep(time.Hour)
		expect("attached", "never")
		table.detach("h1", again)
		time.Sleep(59 * time.Second)
		expect("not yet", "never")
		time.Sleep(time.Second)
		expect("not back", "h1", "never")
		table.detach("late", table.hosts["late"])
		table.close()
		time.Sleep(time.Hour)
		expect("closed", "h1", "never")
	})
}

// TestSlowStore: while the end of one host's lease is written to a slow store, other hosts attach, report and leave.
// Only that host waits.
func TestSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		written := make(chan struct{})
		table := newHostTable(time.Minute, []string{"gone"}, func(string) { <-written })
		defer table.close()
		me := &attachment{cancel: func(error) {}}
		time.Sleep(2 * time.Minute)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := table.attach(t.Context(), "h1", me); err != nil {
				t.Error(err)
			}
			table.report("h1", me, &pb.HostReport{Host: "h1"})
			if n := len(table.list()); n != 1 {
				t.Errorf("%d reports, want 1", n)
			}
			table.detach("h1", me)
		}()
		select {
		case <-done:
		case <-time.After(time.Second):
			t.Error("a slow write for one host holds up another")
			close(written)
			<-done
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := table.attach(ctx, "gone", me); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the host attached while its lease was being ended: %v", err)
		}
		close(written)
		if err := table.attach(t.Context(), "gone", me); err != nil {
			t.Error(err)
		}
	})
}

// TestLeaseEndsWeights: after a controller restart, a host's weights end if the host does not
// return. An operator's weights stay.
func TestLeaseEndsWeights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := audit.New(audit.Options{})
		reg := weights.New(weights.Options{Audit: log})
		key := func(n uint32) weights.Key {
			k, err := keyFromProto(flow("10.0.0.1", n))
			if err != nil {
				t.Fatal(err)
			}
			return k
		}
		if _, err := reg.Report(weights.Caller{Peer: "host h1"}, "h1", []weights.Change{{Key: key(1), Weight: 2}}); err != nil {
			t.Fatal(err)
		}
		if _, err := reg.Set(weights.Caller{Peer: "operator"}, weights.Change{Key: key(2), Weight: 3}); err != nil {
			t.Fatal(err)
		}
		srv := New(Options{Backend: &backend{}, Weights: reg, Audit: log, Authorizer: authz.New(authz.Options{}), Log: slog.New(slog.DiscardHandler)})
		defer srv.stop()
		time.Sleep(DefaultLease - time.Second)
		if n := len(reg.Flows("")); n != 2 {
			t.Errorf("%d flows before the lease is over", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		last := log.List("", 1)[0]
		if f := reg.Flows(""); len(f) != 1 || f[0].Host != "" || last.What != audit.Delete || last.Peer != "host h1, not attached for 1m0s" {
			t.Errorf("flows %v, audit %+v", f, last)
		}
	})
}
