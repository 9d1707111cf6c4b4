// Package daemon is the controller as a process: the core with its state store, the weight
// registry, the northbound API and the metrics, from one configuration.
package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

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
	"github.com/headgate/headgate/controller/serving/web"
	"github.com/headgate/headgate/controller/state/history"
	"github.com/headgate/headgate/controller/state/outcome"
	"github.com/headgate/headgate/controller/state/store"
	"github.com/headgate/headgate/internal/service"
)

// Options of a daemon. Config is required.
type Options struct {
	// Config is the operator's file. It is applied at the start, unless the API applied another configuration after
	// the file was last applied. That one stays, because a restart must not undo it.
	Config *config.Config
	// Replace applies Config even if the API applied another later.
	Replace bool
	// Reload asks for the file to be read and applied again; Load reads it.
	Reload <-chan os.Signal
	Load   func() (*config.Config, error)
	// Member is the name of this process among the members of Config's cluster; empty without one.
	Member string
	// Restore is a state file with which an empty cluster begins; empty for none. A cluster whose state did not
	// begin with this file is refused.
	Restore string
	// AcceptLoss starts even if the state file or the audit log is damaged, or older than the other one records.
	AcceptLoss bool
	// Flags override keys of every configuration that is applied; see config.Options.
	Flags map[string]*pflag.Flag
	// Socket is the path of a Unix socket on which the API is served, with or without TLS elsewhere; empty for none.
	// MayLackSocket allows a start without the socket if another address serves the API.
	Socket        string
	MayLackSocket bool
	// Loopback is the role of callers without credentials; empty for none. Without it, and without
	// TLS, only the socket is served. With it addresses must be on loopback where there is no TLS.
	Loopback authz.Role
	Log      *slog.Logger // slog.Default when nil
}

// daemon is a process that was started with Options. Run's goroutine owns all fields except file.
type daemon struct {
	Options
	leadership
	db         *store.Store
	history    *history.Store
	registry   *weights.Registry
	auditFile  *audit.File // nil without an audit log
	audit      *audit.Log
	authorizer *authz.Authorizer
	core       *controller.Controller
	pending    *outcome.Pending
	file       atomic.Pointer[config.Config] // the operator's file, as it was read last
	refused    atomic.Pointer[error]         // why the file at the start was refused; nil once a file was accepted
}

// Run serves until ctx ends, which is not an error. A start that cannot succeed (an address in use, a state file of
// another process, a configuration that does not fit) returns an error before any switch is touched. The API is
// served once the configuration is in force.
func Run(ctx context.Context, o Options) error {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	switch members := o.Config.Controller.Cluster.Members; {
	case len(members) > 0:
		return o.runMember(ctx)
	case o.Member != "":
		return fmt.Errorf("--member %q: the configuration has no controller.cluster", o.Member)
	case o.Restore != "":
		return errors.New("--restore: the configuration has no controller.cluster: use `headgate state restore`")
	}
	db, err := store.Open(o.Config.Controller.State, store.Options{AcceptLoss: o.AcceptLoss})
	if err != nil {
		return o.withGeneration(err)
	}
	if err := db.Err(); err != nil {
		o.Log.Error("the state file cannot be written: it is read, and changes are refused until it can be", "err", err)
	}
	return o.run(ctx, db, leadership{})
}

// leadership holds the settings of a cluster's leader; it is zero without a cluster.
type leadership struct {
	terms   session.Terms
	members *tls.Config  // for serving the other members; nil: plain text
	relayed net.Listener // listener that the other members connect to
	cluster northbound.Members
	leads   func() error // see northbound.Options.Leads
}

// run drives the switches until ctx ends, and closes the store.
func (o Options) run(ctx context.Context, db *store.Store, at leadership) error {
	defer db.Close()
	file, lost, err := o.openAudit(db.AuditLog())
	if err != nil {
		return err
	}
	if file != nil {
		defer file.Close()
		if err := db.Beside(file); err != nil {
			return err
		}
	}
	pending := &outcome.Pending{}
	log := audit.New(audit.Options{Keeper: db, File: file, Log: o.Log})
	defer log.Close()
	d := &daemon{Options: o, leadership: at, db: db, history: history.New(db, o.Log), auditFile: file, audit: log, registry: weights.New(weights.Options{Keeper: db, Audit: log, Log: o.Log, Pending: pending}), pending: pending}
	files, err := o.files()
	if err != nil {
		return err
	}
	d.authorizer = authz.New(authz.Options{Loopback: o.Loopback, Files: files, Audit: log})
	priorities := priority.New(db)
	priorities.Pending = pending
	saved, _ := db.LoadConfig()
	if d.core, err = controller.New(controller.Options{
		Flags: o.Flags, Generation: saved.Generation, Terms: at.terms, Log: o.Log, Links: db, Save: d.save, Pending: pending,
		CheckCaller: d.authorizer.CheckCaller, Files: files, Fixed: slices.Collect(maps.Keys(fixed(o.Config.Controller))),
		Participants: []controller.Participant{process{o.Config.Controller}, d.authorizer, d.registry, priorities},
	}); err != nil {
		return err
	}
	if lost = errors.Join(db.Loss(), lost); lost != nil {
		d.acceptLoss(lost, saved.Generation)
	}
	listeners, err := o.listen(ctx, files)
	if err != nil {
		return err
	}
	if at.relayed != nil {
		listeners.api = append(listeners.api, authz.Members(at.relayed))
	}
	if err := d.serve(ctx, listeners, priorities, saved); err != nil {
		listeners.close()
		return err
	}
	return nil
}

// openAudit opens the audit log's file; nil for none. known is the log's last line as the state file has it. lost is
// the damage that --accept-loss accepted.
func (o Options) openAudit(known audit.Head) (file *audit.File, lost, err error) {
	name := o.Config.Controller.Audit
	if name == "" || name == "off" {
		return nil, nil, nil
	}
	var damaged *audit.DamagedError
	if file, err = audit.OpenFile(name, known, o.Log); !errors.As(err, &damaged) || known == (audit.Head{}) {
		return file, nil, err
	}
	lost = err
	switch file, err = audit.OpenFile(name, audit.Head{}, o.Log); {
	case err != nil:
		err = fmt.Errorf("%w; put the log back, or move it away and start with --accept-loss", lost)
	case !o.AcceptLoss:
		err = errors.Join(fmt.Errorf("%w; put the log back, or start with --accept-loss to continue with the lines that it has", lost), file.Close())
	}
	return file, lost, err
}

// withGeneration adds the generation that was in force by the audit log to the error of an unreadable state file.
func (o Options) withGeneration(err error) error {
	var damaged *store.DamagedError
	if !errors.As(err, &damaged) {
		return err
	}
	if file, _, err2 := o.openAudit(audit.Head{}); err2 == nil && file != nil {
		defer file.Close()
		err = fmt.Errorf("%w; the audit log says that generation %d was applied last", err, file.Said().Generation)
	}
	return err
}

// acceptLoss logs and records that --accept-loss was needed.
func (d *daemon) acceptLoss(lost error, generation uint64) {
	d.Log.Error("state was lost, and --accept-loss accepts that", "generation", generation, "err", lost)
	d.audit.Record(audit.Entry{Peer: "controller", What: audit.AcceptLoss, Subject: d.Config.Controller.State, Value: float64(generation), After: lost.Error()}, nil)
	d.core.Events().Publish(&pb.Event{Time: pb.Stamp(time.Now()), Severity: pb.Event_SEVERITY_ERROR, Subject: d.Config.Controller.State, Kind: "state.loss", Message: lost.Error()})
}

// serve applies the configuration and runs everything until ctx ends.
func (d *daemon) serve(ctx context.Context, l *listeners, priorities *priority.Registry, saved history.Entry) error {
	core := d.core
	collector := metrics.NewCollector(metrics.Options{Source: core, Weights: d.registry, Events: core.Events(), Samples: core.Samples(), HostAlarms: core.HostAlarms})
	if err := d.begin(ctx, saved); err != nil {
		return err
	}
	api := northbound.New(northbound.Options{
		Member: d.Member, Members: d.cluster, State: d.db, Leads: d.leads, Pending: d.pending,
		Backend: core, History: d.history, Weights: d.registry, Priorities: priorities, Audit: d.audit, Conduct: core.Conduct(), Events: core.Events(), Samples: core.Samples(),
		Authorizer: d.authorizer, TLS: l.tls, MembersTLS: d.members, Log: d.Log,
	})
	handler, err := metrics.Handler(collector, metrics.HandlerOptions{
		Ready: d.ready, Allow: d.authorizer.Request, Leads: d.leads, Log: d.Log,
		Pages: web.Data(web.API{Fabric: api.Fabric, Hosts: api.Hosts, Events: core.Events()}, d.Log), Free: web.Files(d.authorizer.Login()),
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return ended(ctx, core.Run(ctx)) })
	group.Go(func() error { return api.Serve(ctx, l.api...) })
	if l.metrics != nil {
		group.Go(func() error { return metrics.Serve(ctx, l.metrics, l.webTLS, handler) })
	}
	group.Go(func() error { return d.reloads(ctx) })
	group.Go(func() error { d.history.Run(ctx, d.rollback); return nil })
	// The service watchdog checks that the store answers, but not its errors: a restart cures a store that hangs, but
	// not a full disk.
	service.Ready(ctx, d.Log, func(context.Context) error { _ = d.db.Err(); return nil })
	return group.Wait()
}

// ended returns nil for the error of a requested end, and other errors as they are.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}
