package device

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/reconcile"
	"github.com/headgate/headgate/controller/p4runtime/session"
	"github.com/headgate/headgate/controller/trafficmanager"
)

// attemptTime bounds one attempt to reconcile a switch.
const attemptTime = 2 * time.Minute

// mostPutOff bounds how often in a row a change puts a periodic comparison off.
const mostPutOff = 3

// errPutOff ends a comparison for a change.
var errPutOff = errors.New("the switch has another desired state now")

// knownState is the state of a switch as far as the reconciler knows it without a read, because it
// wrote it over the current session. So a change of a route needs no read of all entries.
type knownState struct {
	epoch uint64
	seq   uint64 // number of the desired state that is in state
	state *reconcile.State

	trafficManager *trafficmanager.Config // state of the traffic manager; nil when it must be read
	lastWritten    *trafficmanager.Config // its state after the last write
}

// reconciler runs until the context ends. It owns the known state of the switch.
func (d *Device) reconciler(ctx context.Context) {
	var known knownState
	var failed job // the job of the last attempt, if it failed
	retry := session.Backoff{Min: max(10*d.opts.RetryMin, 100*time.Millisecond), Max: max(10*d.opts.RetryMax, 100*time.Millisecond)}
	timer := time.NewTimer(0)
	defer timer.Stop()
	var queue chan struct{} // queue of the semaphore in which the reconciler waits to read the switch; nil for none
	periodic, putOff := false, 0
	for {
		release := func() {}              // gives its place back
		trusted, givesWay := known, false // the result if the comparison is put off
		select {
		case <-ctx.Done():
			return
		case <-d.kick:
			periodic = false
		case <-timer.C:
			queue = d.opts.Reads.queue(known.state != nil) // nil: the last attempt failed
			continue
		case queue <- struct{}{}:
			givesWay = d.opts.Reads.isPeriodic(queue) && putOff < mostPutOff
			release, periodic, queue = d.opts.Reads.acquired(queue), true, nil
			known.state, known.trafficManager = nil, nil // do not trust them: read the switch
		}
		job, ready := d.job()
		if !ready {
			release()
			queue = nil
			timer.Stop()
			continue
		}
		if !periodic && failed.seq == job.seq && failed.epoch == job.epoch {
			continue // new victims are no reason to try again sooner
		}
		if known.epoch != job.epoch {
			known = knownState{epoch: job.epoch}
		}
		if known.state == nil && !periodic {
			queue = d.opts.Reads.queue(false)
			continue
		}
		if known.state != nil && known.seq == job.seq {
			// Only the victims can have changed. The timer keeps running, for the next
			// comparison or the next attempt after the traffic manager failed.
			if known.trafficManager == nil {
				continue
			}
			if _, err := d.applyTrafficManager(ctx, job, &known); err == nil {
				continue
			}
			known.state = nil // the attempt reads the switch and reports what is wrong
		}
		job.givesWay = givesWay
		ok, gaveWay := d.attempt(ctx, job, &known, periodic)
		release()
		if gaveWay {
			known = trusted
			putOff++
			continue // SetDesired has kicked
		}
		if periodic {
			putOff = 0
		}
		next := time.Duration(-1)
		failed = job
		if ok {
			failed.seq = 0
			retry.Reset()
			if job.desired.Env != nil {
				next = job.desired.Env.Config.Controller.ResyncInterval
			}
		} else {
			next = retry.Next()
		}
		timer.Stop()
		if next > 0 {
			timer.Reset(next)
		}
	}
}

// job returns the input of an attempt now, and whether there is something to attempt.
func (d *Device) job() (j job, ready bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	j = job{desired: d.desired, trafficManager: d.trafficManagerOf(d.desired), seq: d.desiredSeq, epoch: d.epoch}
	return j, d.role == session.Primary && (j.desired.State != nil || j.desired.Err != nil)
}

// job is the input of one attempt.
type job struct {
	desired        Desired
	trafficManager *trafficmanager.Config // desired.TrafficManager with the loops' victims
	seq            uint64
	epoch          uint64
	givesWay       bool // stop if the desired state changes while the switch is read
}

// attempt reconciles the switch and reports whether the switch now has its desired state, or else whether
// it gave way to another desired state.
func (d *Device) attempt(ctx context.Context, j job, known *knownState, periodic bool) (ok, gaveWay bool) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	began := time.Now()
	res, err := d.reconcile(ctx, j, known, periodic)
	if errors.Is(err, errPutOff) {
		return false, true
	}
	if err != nil {
		known.state = nil
	}
	if runsProgram(err) && j.desired.Err == nil {
		rows, merr := d.reconcileTrafficManager(ctx, j, known, periodic)
		res.Modified += uint32(rows)
		err = errors.Join(err, merr)
	}
	if err != nil {
		res.Error = err.Error()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stats.Reconciles++
	if d.epoch != j.epoch {
		return true, false // the session changed meanwhile; its role decides the next step
	}
	if transient(err) {
		d.setState(d.status.State, err.Error())
		return false, false // the session will soon report why
	}
	pb.Clean(res)
	d.done = outcome{seq: j.seq, result: res}
	if s := j.desired.State; s != nil {
		d.forwards = tookMost(err, s.Len())
		d.status.Entries, d.status.Tables = uint64(s.Len()), d.opts.Pipeline.Uses(pipeline.UsageOf(s.All()))
	}
	d.status.Reconciles++
	if d.inLine = err == nil; err != nil {
		d.log.Warn("the switch is not in line", "err", err, "took", time.Since(began))
		d.setState(pb.SwitchStatus_STATE_DEGRADED, err.Error())
	} else {
		if n := res.Inserted + res.Modified + res.Deleted; n > 0 {
			d.log.Info("switch reconciled", "inserted", res.Inserted, "modified", res.Modified, "deleted", res.Deleted, "took", time.Since(began))
		}
		if why := d.ails(); why != "" {
			d.setState(pb.SwitchStatus_STATE_DEGRADED, why)
		} else {
			d.setState(pb.SwitchStatus_STATE_READY, "")
		}
	}
	d.attach(j)
	d.wake()
	return err == nil, false
}

// runsProgram reports whether the switch runs the desired program, even if it refused entries. The
// traffic manager belongs to the running program, so it is not changed under another one.
func runsProgram(err error) bool {
	var refused *session.WriteError
	return err == nil || errors.As(err, &refused)
}

// tookMost reports whether a switch runs the desired program and accepted most of that many entries.
func tookMost(err error, entries int) bool {
	var refused *session.WriteError
	return err == nil || errors.As(err, &refused) && 2*len(refused.Failed) < entries
}

// transient reports whether the connection failed, and not the switch.
func transient(err error) bool {
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) {
		code := s.GRPCStatus().Code()
		return code == codes.Unavailable || code == codes.Canceled
	}
	return errors.Is(err, session.ErrDisconnected)
}

// attach gives the loops their environment. The caller holds mu.
func (d *Device) attach(j job) {
	if j.desired.Env == nil || j.desired.State == nil {
		return
	}
	if a := d.attached; a != nil && a.epoch == j.epoch && sameConfig(a.env, j.desired.Env) {
		return
	}
	since := time.Now()
	if d.attached != nil {
		since = d.attached.since
	}
	d.attached = &attachment{env: j.desired.Env, epoch: j.epoch, since: since}
	signal(d.reattach)
}

// sameConfig reports whether two environments have the same configuration. A file that is
// applied a second time without a change does not restart the loops.
func sameConfig(a, b *feature.Env) bool {
	same := func(x, y *config.Config) bool { return x == y || x.File == y.File && bytes.Equal(x.Source, y.Source) }
	return same(a.Config, b.Config)
}

// reconcile reads the switch, compares it with the desired state, and writes the differences.
func (d *Device) reconcile(ctx context.Context, j job, known *knownState, periodic bool) (*pb.SwitchResult, error) {
	res := &pb.SwitchResult{Name: d.opts.Switch.Name}
	if j.desired.Err != nil {
		return res, j.desired.Err
	}
	c, err := d.session.Client()
	if err != nil {
		return res, err
	}
	fresh := known.state == nil
	if fresh {
		pushed, err := d.program(ctx, c)
		if err != nil {
			return res, err
		}
		read, end := ctx, func() {}
		if j.givesWay && !pushed { // after a push nothing is known
			read, end = d.untilChanged(ctx, j.seq)
		}
		defer end()
		have, unreadable, err := reconcile.Read(read, c, d.opts.Pipeline, feature.Externs(d.opts.Features, &d.opts.Switch)...)
		if errors.Is(context.Cause(read), errPutOff) {
			return res, errPutOff
		}
		if err != nil {
			return res, err
		}
		known.state = have
		d.noteCapabilities(j.epoch, discover(ctx, c, d.opts, unreadable))
		d.count(func(s *Stats) { s.Reads++ })
	}
	plan := reconcile.Diff(known.state, j.desired.State, d.opts.Pipeline.TableSize)
	if periodic && plan.Len() > 0 && d.Status().State == pb.SwitchStatus_STATE_READY {
		d.event(pb.Event_SEVERITY_WARNING, "switch.drift", fmt.Sprintf("%d entries were not what they should be", plan.Len()))
	}
	if err := d.write(ctx, c, plan); err != nil {
		return res, err
	}
	known.state, known.seq = j.desired.State, j.seq
	inserted, modified, deleted := plan.Count()
	res.Inserted, res.Modified, res.Deleted = uint32(inserted), uint32(modified), uint32(deleted)
	return res, nil
}

// untilChanged returns a context that also ends, with errPutOff, when the desired state is no longer number seq.
func (d *Device) untilChanged(ctx context.Context, seq uint64) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for {
			d.mu.Lock()
			is, changed := d.desiredSeq, d.changed
			d.mu.Unlock()
			if is != seq {
				cancel(errPutOff)
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// program pushes the desired pipeline unless the switch runs it.
func (d *Device) program(ctx context.Context, c *session.Client) (pushed bool, err error) {
	running, err := compare(ctx, c, d.opts.Pipeline)
	if err != nil || running == session.Same {
		return false, err
	}
	if err := c.Push(ctx, d.opts.Pipeline); err != nil {
		return false, err
	}
	d.count(func(s *Stats) { s.Pushes++ })
	why := "it ran none"
	if running == session.Other {
		why = "it ran another one"
	}
	d.event(pb.Event_SEVERITY_INFO, "pipeline.pushed", fmt.Sprintf("the switch has a new pipeline: %s", why))
	return true, nil
}

// write writes a plan to the switch. The read that the plan is based on may be incomplete or out of
// date. So write retries an insert of an existing entry as a modify, and a modify of a missing entry
// as an insert. A delete of a missing entry counts as done.
func (d *Device) write(ctx context.Context, c *session.Client, plan reconcile.Plan) error {
	var failed []session.UpdateError
	for _, batch := range plan.Batches {
		refused, err := writeBatch(ctx, c, batch)
		if err != nil {
			return err
		}
		redo, rest := repair(refused)
		if len(redo) > 0 {
			again, err := writeBatch(ctx, c, redo)
			if err != nil {
				return err
			}
			rest = append(rest, again...)
		}
		failed = append(failed, rest...)
	}
	d.count(func(s *Stats) { s.Updates += uint64(plan.Len() - len(failed)) })
	if len(failed) > 0 {
		first := failed[0]
		return fmt.Errorf("%w; first: %s", &session.WriteError{Failed: failed, Total: plan.Len()}, d.opts.Pipeline.Describe(first.Update.GetEntity()))
	}
	return nil
}

func writeBatch(ctx context.Context, c *session.Client, batch []*p4v1.Update) ([]session.UpdateError, error) {
	err := c.Write(ctx, batch)
	var partial *session.WriteError
	if errors.As(err, &partial) {
		return partial.Failed, nil
	}
	return nil, err
}

func repair(refused []session.UpdateError) (redo []*p4v1.Update, rest []session.UpdateError) {
	for _, f := range refused {
		kind := f.Update.GetType()
		switch {
		case kind == p4v1.Update_INSERT && f.Code == codes.AlreadyExists:
			redo = append(redo, &p4v1.Update{Type: p4v1.Update_MODIFY, Entity: f.Update.GetEntity()})
		case kind == p4v1.Update_MODIFY && f.Code == codes.NotFound && !f.Update.GetEntity().GetTableEntry().GetIsDefaultAction():
			redo = append(redo, &p4v1.Update{Type: p4v1.Update_INSERT, Entity: f.Update.GetEntity()})
		case kind == p4v1.Update_DELETE && f.Code == codes.NotFound:
		default:
			rest = append(rest, f)
		}
	}
	return redo, rest
}

func (d *Device) count(f func(*Stats)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(&d.stats)
}

func (d *Device) event(severity pb.Event_Severity, kind, text string) {
	d.opts.Events(&pb.Event{Time: pb.Stamp(time.Now()), Severity: severity, Subject: d.opts.Switch.Name, Kind: kind, Message: text})
}

func (d *Device) noteCapabilities(epoch uint64, list []*pb.Capability) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.epoch == epoch {
		d.status.Capabilities = list
	}
}
