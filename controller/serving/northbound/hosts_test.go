package northbound

import (
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/authz/audit"
)

// TestLease: hosts that stay away lose what they registered, those that come back do not.
func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var gone []string
		table := newHostTable(time.Minute, []string{"late", "never"}, func(host string) {
			mu.Lock()
			defer mu.Unlock()
			gone = append(gone, host)
		})
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
		table.attach("h1", first)
		table.attach("late", &attachment{cancel: nothing})
		time.Sleep(time.Minute)
		expect("after a minute", "never")
		table.detach("h1", first)
		time.Sleep(59 * time.Second)
		table.attach("h1", again)
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

// TestLeaseEndsWeights: what a host registered before the controller was restarted ends when
// the host does not come back; what an operator registered stays.
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
