package daemon

import (
	"context"
	"log/slog"
	"sync"

	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/allocation/priority"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/serving/northbound"
	"github.com/headgate/headgate/controller/state/history"
	"github.com/headgate/headgate/controller/state/store"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/internal/confine"
)

// follower is a standby member's copy of the state that the leader writes.
type follower struct {
	*node
	journal    *store.Follower
	authorizer *authz.Authorizer

	mu     sync.Mutex // guards what follows
	at     store.Position
	db     *store.Store // as of at, or later
	led    string       // who led when the policy was read
	cfg    *config.Config
	number uint64 // of cfg
	state  *northbound.FollowerState
}

func (m *node) follow(files confine.Dirs) *follower {
	discard := audit.New(audit.Options{Log: slog.New(slog.DiscardHandler)}) // the leader records what it refuses
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
	if f.at.Before(at) { // and not what a later call has read already
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

// configure reads the configuration in force, and its policy as a leader does: with each configuration, and
// with each lead.
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

// derive returns what calls can ask for.
func (f *follower) derive() *northbound.FollowerState {
	db, cfg, number := f.db, f.cfg, f.number
	return &northbound.FollowerState{
		Authorizer: f.authorizer, History: history.New(db, f.Log), Leader: f.AskLeader,
		Fabric: func() view.Fabric {
			down := map[string]bool{}
			for _, name := range db.DownLinks() {
				down[name] = true
			}
			return controller.FabricOf(cfg, number, func(link string) (view.PortState, string) {
				if down[link] {
					return view.PortDown, controller.OutOfService
				}
				return view.PortUnknown, ""
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
