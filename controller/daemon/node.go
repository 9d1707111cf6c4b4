package daemon

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/allocation/priority"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/p4runtime/session"
	"github.com/headgate/headgate/controller/serving/metrics"
	"github.com/headgate/headgate/controller/serving/northbound"
	"github.com/headgate/headgate/controller/state/cluster"
	"github.com/headgate/headgate/controller/state/history"
	"github.com/headgate/headgate/controller/state/store"
	"github.com/headgate/headgate/internal/clients"
	"github.com/headgate/headgate/internal/confine"
	"github.com/headgate/headgate/internal/service"
	"github.com/headgate/headgate/internal/tlsfiles"
)

// noReload is logged on SIGHUP.
const noReload = "a cluster's configuration comes by `headgate apply`: the file was not read again"

// After a lead ends, the member pauses before it stands for election again, so that others come first: the cause that
// ended this lead may end the next at once. The pause is firstPause at first. It grows each time until a lead lasts
// for steady.
const (
	firstPause = 500 * time.Millisecond
	steady     = time.Minute
)

// node is this process in a cluster. Run's goroutine owns it.
type node struct {
	Options
	*cluster.Node
	own   config.Member
	conf  config.Cluster                   // names of files are in the form in which etcd can open them
	creds credentials.TransportCredentials // credentials for its calls to the leader
	tls   *tls.Config                      // TLS configuration of its server for the other members
}

// runMember stands by and leads, in turns, until ctx ends.
func (o Options) runMember(ctx context.Context) error {
	m, err := o.newNode()
	if err != nil {
		return err
	}
	if m.Node, err = cluster.Start(ctx, cluster.Options{Cluster: m.conf, Name: o.Member, Dir: o.Config.Controller.State, Log: o.Log}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-m.Gone():
			cancel(m.Err())
		case <-ctx.Done():
		}
	}()
	err = m.checkRestore(ctx)
	pause, pauses := time.Duration(0), session.Backoff{Min: firstPause, Max: 10 * time.Second}
	for err == nil && ctx.Err() == nil {
		var term *cluster.Term
		if term, err = m.runFollower(ctx, pause); err == nil && term != nil {
			began := time.Now()
			err = m.runLeader(term)
			_ = term.Resign() // if it fails, the lease expires by itself
			if time.Since(began) > steady {
				pauses.Reset()
			}
			pause = pauses.Next()
		}
	}
	select {
	case <-m.Gone():
		err = m.Err()
	default:
	}
	return errors.Join(err, m.Close())
}

// checkRestore refuses a state file if the cluster has begun without it. If etcd does not answer yet, the check is
// repeated when this member leads.
func (m *node) checkRestore(ctx context.Context) error {
	if m.Restore == "" {
		return nil
	}
	var refused *store.RestoreError
	if err := store.CheckRestore(ctx, m.Client(), m.Restore); errors.As(err, &refused) {
		return err
	}
	return nil
}

// newNode checks the configuration's part about this process.
func (o Options) newNode() (*node, error) {
	c := &o.Config.Controller.Cluster
	own, ok := c.Member(o.Member)
	switch {
	case !ok:
		var names []string
		for _, m := range c.Members {
			names = append(names, m.Name)
		}
		return nil, fmt.Errorf("--member %q is not allowed: want one of controller.cluster.members, which are %v", o.Member, names)
	case o.AcceptLoss:
		return nil, errors.New("--accept-loss: a cluster's state is in etcd")
	case o.Replace:
		return nil, errors.New("--replace: a cluster's configuration comes by `headgate apply`")
	}
	if o.Restore != "" {
		if _, err := store.Check(o.Restore); err != nil {
			return nil, fmt.Errorf("--restore: %w", err)
		}
	}
	m := &node{Options: o, own: own, conf: *c, creds: insecure.NewCredentials()}
	files, err := o.files()
	if err != nil {
		return nil, err
	}
	if c.TLS.CA != "" {
		return m, m.secure(files)
	}
	// A member that may call the others can name any caller and write anything into the state.
	if o.Loopback != authz.Admin {
		return nil, errors.New("controller.cluster: want tls, or --insecure-loopback=admin and loopback addresses")
	}
	for i, other := range c.Members {
		for _, a := range []string{other.Raft, other.Relay} {
			if a != "" && !isLoopback(a) {
				return nil, fmt.Errorf("controller.cluster.members[%d] %q: want controller.cluster.tls for an address that others can reach", i, a)
			}
		}
	}
	return m, nil
}

// secure reads the cluster's certificates. etcd reads them by their names.
func (m *node) secure(files confine.Dirs) error {
	c := &m.conf
	named := tlsfiles.Files{CA: c.TLS.CA, Cert: c.TLS.Cert, Key: c.TLS.Key, Prefix: "controller.cluster.tls.", Read: files.Secret}
	var err error
	if m.creds, err = tlsfiles.Client(named); err != nil {
		return err
	}
	named.ClientAuth = tls.RequireAndVerifyClientCert
	if m.tls, err = tlsfiles.Server(named, m.Log, "h2"); err != nil {
		return err
	}
	for _, name := range []*string{&c.TLS.CA, &c.TLS.Cert, &c.TLS.Key} {
		if !filepath.IsAbs(*name) {
			*name = filepath.Join(files[0], *name)
		}
	}
	return nil
}

// runFollower answers calls about replicated state and forwards other calls to the leader. After a pause this member
// stands for election. runFollower returns the term once this member leads, or no term when ctx ends.
func (m *node) runFollower(ctx context.Context, pause time.Duration) (*cluster.Term, error) {
	files, err := m.files()
	if err != nil {
		return nil, err
	}
	l, err := m.listen(ctx, files)
	if err != nil {
		return nil, err
	}
	handler, err := metrics.Handler(nil, metrics.HandlerOptions{Ready: m.standing, Allow: m.may, Log: m.Log})
	if err != nil {
		return nil, err
	}
	relay := northbound.NewRelay(northbound.RelayOptions{
		Leader: m.leader, Creds: m.creds, TLS: l.tls, Log: m.Log, Member: m.own.Name, State: m.follow(files).read,
	})
	var term *cluster.Term
	serving, stop := context.WithCancel(ctx)
	defer stop()
	group, serving := errgroup.WithContext(serving)
	group.Go(func() error { return relay.Serve(serving, l.api...) })
	if l.metrics != nil {
		group.Go(func() error {
			return metrics.Serve(serving, l.metrics, l.webTLS, handler)
		})
	}
	group.Go(func() error {
		for {
			select {
			case <-serving.Done():
				return nil
			case <-m.Reload:
				m.Log.Error(noReload)
			}
		}
	})
	group.Go(func() error {
		defer stop()
		select {
		case <-serving.Done():
		case <-time.After(pause):
			term, _ = m.Stand(ctx, serving) // the error is that serving has ended
		}
		return nil
	})
	service.Ready(serving, m.Log, nil)
	if err := group.Wait(); err != nil {
		if term != nil {
			_ = term.Resign()
		}
		return nil, err
	}
	return term, nil
}

// leader returns where the leader takes calls of members.
func (m *node) leader() (string, <-chan struct{}) {
	name, changed := m.Leader()
	other, _ := m.Config.Controller.Cluster.Member(name)
	if name == m.own.Name {
		return "", changed // this member is the leader itself
	}
	return other.Relay, changed
}

// may refuses everybody: only the leader serves metrics and pages, and it checks who may see them.
func (m *node) may(*http.Request) (int, string) {
	name, _ := m.Leader()
	return http.StatusServiceUnavailable, fmt.Sprintf("%s stands by, %s leads: metrics and pages are there", m.own.Name, cmp.Or(name, "nobody"))
}

// standing returns the member that leads as a check.
func (m *node) standing() []metrics.Check {
	c := metrics.Check{Part: "leader"}
	if name, _ := m.Leader(); name == "" {
		c.Err = errors.New("no leader is known")
	}
	return []metrics.Check{c}
}

// runLeader runs the controller until the lead is lost or the term's context ends otherwise. It returns only errors
// that another leader would have too.
func (m *node) runLeader(term *cluster.Term) (err error) {
	ctx := term.Context
	m.Log.Info("this controller leads the cluster", "member", m.own.Name, "term", term.Number)
	defer func() {
		m.Log.Warn("this controller does not lead the cluster any more", "member", m.own.Name, "term", term.Number, "why", cmp.Or(context.Cause(ctx), err))
	}()
	if err := m.checkRestore(ctx); err != nil {
		return err
	}
	relayed, err := (&net.ListenConfig{}).Listen(ctx, "tcp", m.own.Relay)
	if err != nil {
		return fmt.Errorf("controller.cluster: relay %q: %w", m.own.Relay, err)
	}
	relayed = clients.Limit(relayed, clients.Options{Name: "members", Log: m.Log})
	defer relayed.Close()
	db, err := store.OpenReplicated(ctx, store.Lead{Client: m.Client(), Fence: term.Fence, Lost: term.End, Term: term.Number}, store.Options{Restore: m.Restore})
	if err == nil {
		at := leadership{terms: db, leads: term.Leads, members: m.tls, relayed: relayed}
		if len(m.conf.Etcd) == 0 {
			at.cluster = m.Node
		}
		err = m.run(ctx, db, at)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// follower is a standby member's copy of the state that the leader writes.
type follower struct {
	*node
	journal    *store.Follower
	authorizer *authz.Authorizer

	mu     sync.Mutex // guards the fields below
	at     store.Position
	db     *store.Store // the state at position at, or later
	led    string       // who led when the policy was read
	cfg    *config.Config
	number uint64 // generation of cfg
	state  *northbound.FollowerState
}

func (m *node) follow(files confine.Dirs) *follower {
	discard := audit.New(audit.Options{Log: slog.New(slog.DiscardHandler)}) // the leader records refusals
	return &follower{node: m, journal: store.Follow(m.Client()), authorizer: authz.New(authz.Options{Loopback: m.Loopback, Files: files, Audit: discard})}
}

// read is northbound.RelayOptions.State.
func (f *follower) read(ctx context.Context) (*northbound.FollowerState, error) {
	db, at, err := f.journal.Read(ctx)
	if err != nil || db == nil {
		return nil, err
	}
	leader, _ := f.Leader()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at.Before(at) { // a later call may have read newer contents
		f.at, f.db, f.state = at, db, nil
	}
	saved, ok := f.db.LoadConfig()
	if !ok {
		return nil, nil
	}
	if err := f.configure(saved, leader); err != nil {
		return nil, err
	}
	if f.state == nil {
		f.state = f.derive()
	}
	return f.state, nil
}

// configure reads the configuration in force and its policy. As on a leader, the policy is read again with each
// configuration and each lead.
func (f *follower) configure(saved history.Entry, leader string) error {
	same := f.cfg != nil && saved.Generation == f.number
	if same && (leader == f.led || leader == "") {
		return nil
	}
	cfg := f.cfg
	if !same {
		var err error
		if cfg, err = f.parse(saved); err != nil {
			return err
		}
	}
	if _, err := f.authorizer.Configure(cfg); err != nil {
		return err
	}
	f.cfg, f.number, f.led, f.state = cfg, saved.Generation, leader, nil
	return nil
}

// derive returns the services that calls can reach.
func (f *follower) derive() *northbound.FollowerState {
	db, cfg, number := f.db, f.cfg, f.number
	return &northbound.FollowerState{
		Authorizer: f.authorizer, History: history.New(db, f.Log), Leader: f.AskLeader,
		Fabric: func() *pb.GetFabricResponse {
			down := map[string]bool{}
			for _, name := range db.DownLinks() {
				down[name] = true
			}
			return controller.FabricOf(cfg, number, func(link string) (pb.PortStatus_State, string) {
				if down[link] {
					return pb.PortStatus_STATE_DOWN, controller.OutOfService
				}
				return pb.PortStatus_STATE_UNKNOWN, ""
			})
		},
		Weights: sync.OnceValue(func() *weights.Registry { return weights.New(weights.Options{Keeper: db, Log: f.Log}) }),
		Audit:   sync.OnceValue(func() *audit.Log { return audit.New(audit.Options{Keeper: db, Log: f.Log}) }),
		Priorities: sync.OnceValues(func() (*priority.Registry, error) {
			r := priority.New(db)
			_, err := r.Configure(cfg)
			return r, err
		}),
	}
}
