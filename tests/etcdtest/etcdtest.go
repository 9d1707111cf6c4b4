// Package etcdtest runs etcd in a test's process. Like an etcd that an operator runs elsewhere,
// members of a cluster reach it only by its address.
package etcdtest

import (
	"crypto/tls"
	"net"
	"net/url"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
	etcdconfig "go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/features"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// Options of Start. The zero value serves in plain text.
type Options struct {
	TLS *tls.Config
	// Unary intercepts every unary call.
	Unary grpc.UnaryServerInterceptor
}

// Start runs an etcd of one member until the test ends, and returns the URL at which it serves.
func Start(t testing.TB, o Options) string {
	t.Helper()
	own, err := types.NewURLs([]string{"http://127.0.0.1:1"}) // it has no peers
	if err != nil {
		t.Fatal(err)
	}
	log := zap.NewNop()
	s, err := etcdserver.NewServer(etcdconfig.ServerConfig{
		Name: "outside", DataDir: t.TempDir(), PeerURLs: own, InitialPeerURLsMap: types.URLsMap{"outside": own}, InitialClusterToken: "outside", NewCluster: true,
		TickMs: 100, ElectionTicks: 10, InitialElectionTickAdvance: true,
		SnapshotCount: etcdserver.DefaultSnapshotCount, SnapshotCatchUpEntries: etcdserver.DefaultSnapshotCatchUpEntries,
		MaxTxnOps: 128, MaxRequestBytes: 16 << 20, MaxConcurrentStreams: 1000, QuotaBackendBytes: 1 << 30,
		AuthToken: "simple", Logger: log, ServerFeatureGate: features.NewDefaultServerFeatureGate("outside", nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	select {
	case <-s.ReadyNotify():
	case <-time.After(time.Minute):
		t.Fatal("etcd is not ready")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := v3rpc.Server(s, o.TLS, o.Unary)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); <-ended; s.Stop() })
	at := url.URL{Scheme: "http", Host: l.Addr().String()}
	if o.TLS != nil {
		at.Scheme = "https"
	}
	return at.String()
}
