package cluster

import (
	"context"
	"fmt"
	"net"
	"time"

	etcdserverpb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	etcdconfig "go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/headgate/headgate/controller/state/outcome"
)

// answers is how long a member that lives may take to accept a connection.
const answers = 2 * time.Second

// awaited reports whether the others wait for this member to begin with an empty disk, in the place of
// one that was replaced.
func (m *Node) awaited(c etcdconfig.ServerConfig) bool {
	if wal.Exist(c.WALDir()) {
		return false
	}
	var others []string
	for _, o := range m.Cluster.Members {
		if o.Name != m.Name {
			u := m.url(o.Raft)
			others = append(others, u.String())
		}
	}
	way, err := transport.NewTransport(c.PeerTLSInfo, answers)
	if err != nil {
		return false // etcd says so
	}
	defer way.CloseIdleConnections()
	all, err := etcdserver.GetClusterFromRemotePeers(c.Logger, others, way)
	if err != nil {
		return false // there are none yet
	}
	for _, o := range all.Members() {
		if o.Name == "" && o.PeerURLs[0] == c.PeerURLs[0].String() {
			return true
		}
	}
	return false
}

// Replace takes a member that is lost out of etcd's cluster and lets one with its name and addresses,
// and an empty disk, join it. It can be called again where it failed.
func (m *Node) Replace(ctx context.Context, name string) error {
	lost, ok := m.Cluster.Member(name)
	switch {
	case !ok:
		return fmt.Errorf("member %q is not allowed: want one of controller.cluster.members", name)
	case name == m.Name:
		return fmt.Errorf("member %s leads, and is not lost", name)
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
			return nil // it is awaited
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

// is reports whether a member of etcd has a name, or has none yet and will be reached there.
func (*Node) is(o *etcdserverpb.Member, name, at string) bool {
	return o.Name == name || o.Name == "" && o.PeerURLs[0] == at
}
