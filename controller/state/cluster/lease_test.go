package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate/controller/config"
)

// leasing answers each renewal of a lease on the test's signal.
type leasing struct {
	clientv3.Lease
	answers chan error
}

func (l leasing) KeepAliveOnce(ctx context.Context, _ clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	select {
	case err := <-l.answers:
		return &clientv3.LeaseKeepAliveResponse{TTL: 60}, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestLeads: leadership lasts until the lease may have expired, counted from the request for its renewal. A late answer
// to the request prolongs it.
func TestLeads(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	term := &Term{Context: ctx, cancel: end}
	is := func(want string) {
		t.Helper()
		err := term.Leads()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("it leads: %v, want %q", err, want)
		}
	}
	now := bootTime()
	term.until.Store(leaseEnd(now, 60))
	is("")
	if left := time.Duration(term.until.Load() - now); left >= time.Minute || left < 59*time.Second {
		t.Errorf("the lease ends in %v", left)
	}
	term.until.Store(now - int64(time.Second))
	is("not renewed in time")

	l := leasing{answers: make(chan error)}
	client := clientv3.NewCtxClient(ctx)
	client.Lease = l
	m := &Node{Options: Options{Cluster: config.Cluster{Lease: 5 * time.Millisecond}}, client: client}
	go m.renew(ctx, term, 1)
	before := bootTime()
	l.answers <- errors.New("no leader")
	is("not renewed in time")
	l.answers <- nil
	for end := time.Now().Add(10 * time.Second); term.Leads() != nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	is("")
	if left := time.Duration(term.until.Load() - before); left > time.Minute {
		t.Errorf("the lease ends in %v: it is reckoned from an answer", left)
	}
	term.End(errors.New("somebody else leads"))
	is("somebody else leads")
}
