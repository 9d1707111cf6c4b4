package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"github.com/headgate/headgate/controller/state/lie"
)

// bootTime is CLOCK_BOOTTIME in ns. Go's own monotonic clock, CLOCK_MONOTONIC, stands still while the machine is
// suspended, and etcd's leader elsewhere, which ends the lease, does not wait for that. Neither clock of a guest
// goes on while its hypervisor has paused it.
func bootTime() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(err) // every Linux since 2.6.39 has it
	}
	return t.Nano()
}

// leaseEnd is when a lease may end that was asked for, or for more of, at a time: etcd's leader reckons from when that
// came to it. A hundredth is for clocks that do not run alike: NTP slews by no more than 500 millionths.
func leaseEnd(asked, seconds int64) int64 {
	all := seconds * int64(time.Second)
	return asked + all - all/100
}

// Leads says why somebody else may lead by now; nil where nobody can. It may say so for a while, and then not:
// a lease that was renewed late is the same lead.
func (t *Term) Leads() error {
	if lie.Late {
		return nil
	}
	if t.Context.Err() != nil {
		return fmt.Errorf("this controller does not lead any more (%w): ask again", context.Cause(t.Context))
	}
	if over := time.Duration(bootTime() - t.until.Load()); over > 0 {
		return fmt.Errorf("this controller may not lead any more, as its lease was not renewed in time (by %v): ask again", over.Round(time.Millisecond))
	}
	return nil
}

// renew asks for more of a term's lease until the term ends. The session does too, and does not say from when the
// lease it was given is reckoned.
func (m *Node) renew(ctx context.Context, t *Term, id clientv3.LeaseID) {
	every := time.NewTicker(m.Cluster.Lease / 5)
	defer every.Stop()
	for ctx.Err() == nil && !lie.Late {
		asked := bootTime()
		asking, done := context.WithTimeout(ctx, m.Cluster.Lease)
		r, err := m.client.KeepAliveOnce(asking, id)
		done()
		switch {
		case err == nil:
			t.until.Store(max(t.until.Load(), leaseEnd(asked, r.TTL)))
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			t.End(errors.New("the lease has ended"))
		}
		select {
		case <-every.C:
		case <-ctx.Done():
		}
	}
}
