// Package cluster joins several controllers to one: they keep their state in etcd, which runs in their processes or
// elsewhere, and one of them leads. The leader holds a lease of etcd. The number of a lead, its term, is the etcd
// revision at which the leader stood for election, so a later leader has a higher term.
package cluster

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"

	"github.com/headgate/headgate/controller/config"
)

// leaderKey is the prefix of the candidates' keys. The candidate with the lowest create revision
// leads.
const leaderKey = "/headgate/leader"

// startWait is how long this member's etcd may take until it has joined a majority before the log
// says so again.
const startWait = 10 * time.Second

// Options of a Node.
type Options struct {
	Cluster config.Cluster
	Name    string // name of one of Cluster.Members
	Dir     string // data folder of the etcd in this process
	Log     *slog.Logger
}

// Node is this process in a cluster. It is safe for concurrent use.
type Node struct {
	Options
	server *server // nil: etcd runs elsewhere
	client *clientv3.Client
	cancel context.CancelFunc
	wg     sync.WaitGroup

	err  error // why etcd ended in this process; read once gone is closed
	gone chan struct{}

	mu      sync.Mutex
	leader  string        // name of the member that leads, empty when nobody does
	changed chan struct{} // closed, and replaced, when the leader changes
}

// Start joins the cluster. It waits for a majority.
func Start(ctx context.Context, o Options) (*Node, error) {
	m := &Node{Options: o, changed: make(chan struct{}), gone: make(chan struct{})}
	var err error
	if len(o.Cluster.Etcd) > 0 {
		m.client, err = o.outside()
	} else {
		err = m.embed(ctx)
	}
	if err != nil {
		return nil, err
	}
	watching, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	m.wg.Go(func() { m.follow(watching) })
	if m.server != nil {
		m.wg.Go(func() {
			select {
			case <-m.server.StopNotify():
				m.err = m.whyStopped()
				close(m.gone)
			case <-watching.Done():
			}
		})
	}
	return m, nil
}

// embed starts etcd in this process.
func (m *Node) embed(ctx context.Context) error {
	var err error
	if m.server, err = m.serve(); err != nil {
		return err
	}
	for {
		select {
		case <-m.server.ReadyNotify():
			m.client = v3client.New(m.server.EtcdServer)
			return nil
		case <-time.After(startWait):
			m.Log.Warn("this member waits for a majority of the cluster", "member", m.Name)
			continue
		case <-m.server.StopNotify():
			err = m.whyStopped()
		case <-ctx.Done():
			err = ctx.Err()
		}
		m.server.close()
		return err
	}
}

// Close leaves the cluster. A lead of this member must have ended first.
func (m *Node) Close() error {
	m.cancel()
	m.wg.Wait()
	err := m.client.Close()
	if m.server != nil {
		m.server.close()
		err = nil // etcd has already closed its listeners
	}
	return err
}

// Gone is closed when the etcd in this process has ended by itself. The member is useless then: it can neither read
// nor lead. Err says why.
func (m *Node) Gone() <-chan struct{} { return m.gone }

// Err returns why the member is gone. It may be called once Gone is closed.
func (m *Node) Err() error { return m.err }

// Client returns the member's client of etcd.
func (m *Node) Client() *clientv3.Client { return m.client }

// Leader returns the name of the member that leads, empty if none is known, and a channel that is closed when that
// changes.
func (m *Node) Leader() (name string, changed <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leader, m.changed
}

func (m *Node) setLeader(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == m.leader {
		return
	}
	m.leader = name
	close(m.changed)
	m.changed = make(chan struct{})
}

// follow watches who leads. It also asks at intervals, because a watch of etcd in this process does not end when
// the majority is lost.
func (m *Node) follow(ctx context.Context) {
	for ctx.Err() == nil {
		watch, stop := context.WithCancel(ctx)
		events := m.client.Watch(clientv3.WithRequireLeader(watch), leaderKey+"/", clientv3.WithPrefix())
		err := m.look(ctx)
		for err == nil {
			select {
			case e, ok := <-events:
				if err = e.Err(); err == nil && !ok {
					err = errors.New("the watch ended")
				}
			case <-time.After(m.Cluster.Lease):
			}
			if err == nil {
				err = m.look(ctx)
			}
		}
		stop()
		m.setLeader("")
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// look asks etcd who leads and stores the answer.
func (m *Node) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	name, err := m.AskLeader(ctx)
	if err == nil {
		m.setLeader(name)
	}
	return err
}

// AskLeader asks etcd which member leads; empty for none. It is a linearizable read.
func (m *Node) AskLeader(ctx context.Context) (name string, err error) {
	r, err := m.client.Get(ctx, leaderKey+"/", clientv3.WithFirstCreate()...)
	if err != nil || len(r.Kvs) == 0 {
		return "", err
	}
	return string(r.Kvs[0].Value), nil
}

// Term is a period in which this member leads.
type Term struct {
	Number uint64 // higher than that of every leader before
	// Context ends with the lead; its cause says why.
	Context context.Context
	// Fence is true in etcd as long as the lead lasts.
	Fence clientv3.Cmp

	cancel  context.CancelCauseFunc
	session *concurrency.Session
	stop    func() bool
	until   atomic.Int64 // value of bootTime from which the lease may have expired
}

// Stand waits until this member leads, or until standing ends; then it returns standing's error. The lead ends with
// ctx.
func (m *Node) Stand(ctx, standing context.Context) (*Term, error) {
	for {
		t, err := m.stand(ctx, standing)
		if err == nil {
			return t, nil
		}
		if standing.Err() != nil {
			return nil, standing.Err()
		}
		m.Log.Warn("this member cannot stand for election; it tries again", "member", m.Name, "err", err)
		select {
		case <-standing.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func (m *Node) stand(ctx, standing context.Context) (*Term, error) {
	granting, cancelGrant := context.WithTimeout(standing, 5*time.Second)
	defer cancelGrant()
	began := bootTime()
	lease, err := m.client.Grant(granting, int64(m.Cluster.Lease/time.Second))
	if err != nil {
		return nil, err
	}
	s, err := concurrency.NewSession(m.client, concurrency.WithLease(lease.ID), concurrency.WithTTL(int(m.Cluster.Lease/time.Second)))
	if err != nil {
		return nil, err
	}
	term, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.Ctx(), func() { end(errors.New("the lease was not renewed in time")) })
	e := concurrency.NewElection(s, leaderKey)
	campaign, stopCampaign := context.WithCancel(term)
	defer stopCampaign()
	defer context.AfterFunc(standing, stopCampaign)()
	if err := e.Campaign(campaign, m.Name); err != nil {
		end(err)
		stop()
		_ = s.Close() // if that fails, the lease expires
		if cause := context.Cause(term); cause != nil {
			err = cause
		}
		return nil, err
	}
	t := &Term{
		Number: uint64(e.Rev()), Context: term, cancel: end, session: s, stop: stop,
		Fence: clientv3.Compare(clientv3.CreateRevision(e.Key()), "=", e.Rev()),
	}
	t.until.Store(leaseEnd(began, lease.TTL))
	go m.renew(term, t, lease.ID)
	// The lease may have expired while another member led. Then this member's key in the election is gone.
	asking, done := context.WithTimeout(term, 5*time.Second)
	defer done()
	answer, err := m.client.Txn(asking).If(t.Fence).Commit()
	if err == nil && !answer.Succeeded {
		err = errors.New("the lease ended before the election")
	}
	if err != nil {
		return nil, errors.Join(err, t.Resign())
	}
	return t, nil
}

// End ends the lead; why becomes the cause of its context.
func (t *Term) End(why error) { t.cancel(why) }

// Resign ends the lead at once, so that nobody has to wait until the lease expires.
func (t *Term) Resign() error {
	t.stop()
	t.cancel(errors.New("this controller has given up leadership"))
	return t.session.Close()
}
