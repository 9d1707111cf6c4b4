package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	etcdconfig "go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/etcdhttp"
	"go.etcd.io/etcd/server/v3/etcdserver/api/rafthttp"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3compactor"
	"go.etcd.io/etcd/server/v3/features"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/headgate/headgate/internal/clients"
	"github.com/headgate/headgate/internal/yamlnode"
)

// Timing of etcd's consensus: a leader that is silent for electionTime is replaced. etcd requires a lease of at
// least 1.5 times electionTime; config.MinLease is longer.
const (
	heartbeatTime = 100 * time.Millisecond
	electionTime  = time.Second
)

// maxChange bounds a change in etcd: the largest configuration as JSON, and room for the rest.
const maxChange = 2 * yamlnode.MaxText

// etcdTxnOps is etcd's own default.
const etcdTxnOps = 128

// files returns the TLS configuration for etcd from the cluster's files, nil if the cluster has none.
func (o Options) files() *transport.TLSInfo {
	t := o.Cluster.TLS
	if t.CA == "" {
		return nil
	}
	return &transport.TLSInfo{TrustedCAFile: t.CA, CertFile: t.Cert, KeyFile: t.Key, ClientCertAuth: true}
}

func (o Options) url(address string) url.URL {
	if o.files() != nil {
		return url.URL{Scheme: "https", Host: address}
	}
	return url.URL{Scheme: "http", Host: address}
}

func (o Options) logger() *zap.Logger { return zap.New(&etcdLog{o.Log.With("of", "etcd")}) }

// etcdLog is etcd's log. Its warnings are logged at level debug, its errors at level warn.
type etcdLog struct{ to *slog.Logger }

var etcdLevels = map[zapcore.Level]slog.Level{zapcore.WarnLevel: slog.LevelDebug, zapcore.ErrorLevel: slog.LevelWarn}

// Enabled implements zapcore.Core.
func (l *etcdLog) Enabled(level zapcore.Level) bool { return level >= zapcore.WarnLevel }

// With implements zapcore.Core.
func (l *etcdLog) With(fields []zapcore.Field) zapcore.Core {
	return &etcdLog{l.to.With(attributes(fields)...)}
}

// Check implements zapcore.Core.
func (l *etcdLog) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if l.Enabled(e.Level) {
		return c.AddCore(e, l)
	}
	return c
}

// Write implements zapcore.Core.
func (l *etcdLog) Write(e zapcore.Entry, fields []zapcore.Field) error {
	level, ok := etcdLevels[e.Level]
	if !ok {
		level = slog.LevelError // etcd ends the process
	}
	l.to.Log(context.Background(), level, e.Message, attributes(fields)...)
	return nil
}

// Sync implements zapcore.Core.
func (l *etcdLog) Sync() error { return nil }

func attributes(fields []zapcore.Field) []any {
	values := zapcore.NewMapObjectEncoder()
	var list []any
	for _, f := range fields {
		f.AddTo(values)
	}
	for _, key := range slices.Sorted(maps.Keys(values.Fields)) {
		list = append(list, key, values.Fields[key])
	}
	return list
}

// server is the etcd in this process. It serves only the other members.
type server struct {
	*etcdserver.EtcdServer
	http *http.Server
	wg   sync.WaitGroup
}

// serve starts etcd in this process.
func (m *Node) serve() (*server, error) {
	var own types.URLs
	all := types.URLsMap{}
	for _, other := range m.Cluster.Members {
		u := types.URLs{m.url(other.Raft)}
		all[other.Name] = u
		if other.Name == m.Name {
			own = u
		}
	}
	c := etcdconfig.ServerConfig{
		// Nobody serves the client URLs. They show the other members that this member has started before: if its
		// disk is lost, it must not begin as if it had never voted.
		Name: m.Name, DataDir: m.Dir, PeerURLs: own, ClientURLs: own, InitialPeerURLsMap: all, InitialClusterToken: "headgate", NewCluster: true,
		TickMs: uint(heartbeatTime / time.Millisecond), ElectionTicks: int(electionTime / heartbeatTime), InitialElectionTickAdvance: true, PreVote: true,
		SnapshotCount: etcdserver.DefaultSnapshotCount, SnapshotCatchUpEntries: etcdserver.DefaultSnapshotCatchUpEntries,
		MaxSnapFiles: 5, MaxWALFiles: 5, MaxTxnOps: etcdTxnOps, MaxRequestBytes: maxChange, QuotaBackendBytes: 8 << 30,
		AutoCompactionMode: v3compactor.ModeRevision, AutoCompactionRetention: 1000,
		StrictReconfigCheck: true, AuthToken: "simple", Logger: m.logger(), ServerFeatureGate: features.NewDefaultServerFeatureGate(m.Name, nil),
	}
	secure := transport.TLSInfo{Logger: c.Logger}
	if t := m.files(); t != nil {
		secure = *t
		secure.Logger = c.Logger
	}
	c.PeerTLSInfo = secure
	c.NewCluster = !m.awaited(c)
	lis, err := transport.NewListenerWithOpts(own[0].Host, own[0].Scheme, transport.WithTLSInfo(&secure), transport.WithTimeout(rafthttp.ConnReadTimeout, rafthttp.ConnWriteTimeout))
	if err != nil {
		return nil, fmt.Errorf("controller.cluster: raft %q: %w", own[0].Host, err)
	}
	etcd, err := etcdserver.NewServer(c)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("controller.cluster: etcd: %w", err), lis.Close())
	}
	etcd.Start()
	s := &server{EtcdServer: etcd, http: &http.Server{
		Handler: etcdhttp.NewPeerHandler(c.Logger, etcd), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Minute, ErrorLog: slog.NewLogLogger(m.Log.Handler(), slog.LevelDebug),
	}}
	s.wg.Go(func() {
		if err := s.http.Serve(clients.Limit(lis, clients.Options{Name: "raft", Log: m.Log})); !errors.Is(err, http.ErrServerClosed) {
			m.Log.Error("the other members cannot reach this one's etcd any more", "err", err)
		}
	})
	return s, nil
}

// close ends the servers that Node.serve started.
func (s *server) close() {
	s.Stop()
	_ = s.http.Close()
	s.wg.Wait()
}

// outside connects to an external etcd.
func (o Options) outside() (*clientv3.Client, error) {
	c := clientv3.Config{
		Endpoints: o.Cluster.Etcd, DialTimeout: 5 * time.Second, Logger: o.logger(),
		DialKeepAliveTime: 2 * time.Second, DialKeepAliveTimeout: 2 * time.Second, MaxCallSendMsgSize: 2 * maxChange,
	}
	if t := o.files(); t != nil {
		var err error
		if c.TLS, err = t.ClientConfig(); err != nil {
			return nil, fmt.Errorf("controller.cluster.tls: %w", err)
		}
	}
	client, err := clientv3.New(c)
	if err != nil {
		return nil, fmt.Errorf("controller.cluster.etcd: %w", err)
	}
	return client, nil
}
