package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	etcdserverpb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	etcdconfig "go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/headgate/headgate/controller/state/lie"
	"github.com/headgate/headgate/controller/state/outcome"
)

// answers is how long a running member may take to accept a connection.
const answers = 2 * time.Second

// awaited reports whether the other members expect this one to start with an empty disk, after Replace.
func (m *Node) awaited(c etcdconfig.ServerConfig) bool {
	if wal.Exist(c.WALDir()) {
		return false
	}
	for _, members := range m.askOthers(c.Logger, c.PeerTLSInfo) {
		if slices.ContainsFunc(members, func(o *membership.Member) bool {
			return o.Name == "" && o.PeerURLs[0] == c.PeerURLs[0].String()
		}) {
			return true
		}
	}
	return false
}

// askOthers returns the members of etcd's cluster, one list from each other member that answers.
func (m *Node) askOthers(log *zap.Logger, secure transport.TLSInfo) (lists [][]*membership.Member) {
	way, err := transport.NewTransport(secure, answers)
	if err != nil {
		return nil // etcd says so
	}
	defer way.CloseIdleConnections()
	for _, o := range m.Cluster.Members {
		if o.Name == m.Name {
			continue
		}
		u := m.url(o.Raft)
		if all, err := etcdserver.GetClusterFromRemotePeers(log, []string{u.String()}, way); err == nil {
			lists = append(lists, all.Members())
		}
	}
	return lists
}

// whyStopped returns why etcd ended in this process. Either the other members removed this one and refuse its
// messages, or the reason is only in the log.
func (m *Node) whyStopped() error {
	for _, members := range m.askOthers(m.server.Cfg.Logger, m.server.Cfg.PeerTLSInfo) {
		if !slices.ContainsFunc(members, func(o *membership.Member) bool { return o.ID == m.server.MemberID() }) {
			return fmt.Errorf("controller.cluster: member %s was removed from the cluster, or replaced: the data in %s is out of date and is not used; for a new member run `headgate replace member %s` at the others, and start it with an empty folder", m.Name, m.Dir, m.Name)
		}
	}
	return errors.New("controller.cluster: etcd has stopped in this process; the log says why")
}

// Replace removes a lost member from etcd's cluster. It adds a new member with the same name and addresses, which
// starts with an empty disk. If it fails, it can be called again.
func (m *Node) Replace(ctx context.Context, name string) error {
	lost, ok := m.Cluster.Member(name)
	switch {
	case !ok:
		return fmt.Errorf("member %q is not allowed: want one of controller.cluster.members", name)
	case name == m.Name:
		return fmt.Errorf("member %s is the leader, so it is not lost", name)
	}
	dial := net.Dialer{Timeout: answers}
	if conn, err := dial.DialContext(ctx, "tcp", lost.Raft); err == nil {
		_ = conn.Close()
		return fmt.Errorf("member %s is not lost: it answers at %s; stop it first", name, lost.Raft)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	at := m.url(lost.Raft)
	list, err := m.client.MemberList(ctx)
	if err != nil {
		return fmt.Errorf("etcd does not say who its members are: %w", err)
	}
	for _, o := range list.Members {
		if !m.is(o, name, at.String()) {
			continue
		}
		if o.Name == "" {
			return nil // the others already await it
		}
		if _, err := m.client.MemberRemove(ctx, o.ID); err != nil {
			return outcome.Unknown(fmt.Errorf("member %s: etcd does not answer: %w", name, err))
		}
	}
	if _, err := m.client.MemberAdd(ctx, []string{at.String()}); err != nil {
		return outcome.Unknown(fmt.Errorf("member %s was removed, and etcd does not say whether it was added again: %w", name, err))
	}
	return nil
}

// is reports whether o is the member with the given name. etcd knows no name of a member that has not started yet. Such
// a member is recognised by the first URL for its peers, at.
func (*Node) is(o *etcdserverpb.Member, name, at string) bool {
	return o.Name == name || o.Name == "" && o.PeerURLs[0] == at
}

// bootTime is CLOCK_BOOTTIME in ns. Go's monotonic clock, CLOCK_MONOTONIC, stops while the machine is suspended,
// but etcd's leader on another machine continues to count the lease. Both clocks of a guest stop while its
// hypervisor has paused it.
func bootTime() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(err) // every Linux since 2.6.39 has it
	}
	return t.Nano()
}

// leaseEnd returns the earliest time at which a lease may end that was requested or renewed at asked. etcd's leader
// counts from the arrival of the request, which is later. One hundredth is subtracted for clock drift: NTP slews by
// at most 500 ppm.
func leaseEnd(asked, seconds int64) int64 {
	all := seconds * int64(time.Second)
	return asked + all - all/100
}

// Leads returns why another member may lead by now; nil if none can. The error may be temporary: a lease that is
// renewed late continues the same lead.
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

// renew renews a term's lease until the term ends. The session renews it too, but does not report when it sent the
// request.
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
