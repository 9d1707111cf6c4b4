package device

import (
	"context"
	"errors"
	"fmt"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/controller/reconcile"
	"github.com/headgate/headgate/controller/session"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/controller/view"
)

// attemptTime bounds one attempt to bring a switch in line.
const attemptTime = 2 * time.Minute

// held is what the reconciler knows a switch to hold, because it wrote it over the session
// that still stands; it saves reading everything back for each change of a route.
//
// It is state under an overlay, which is nil for none.
type held struct {
	epoch uint64
	seq   uint64 // of the want that state is from
	state *reconcile.State
	over  *reconcile.State

	manager *trafficmanager.Settings // that the traffic manager has; nil when that is to be seen
	managed *trafficmanager.Settings // that it had when it was written last
}

// reconciler runs until the context ends. It alone owns what the switch is known to hold.
func (d *Device) reconciler(ctx context.Context) {
	var known held
	retryMin := max(10*d.opts.RetryMin, 100*time.Millisecond)
	retryMax := max(10*d.opts.RetryMax, retryMin)
	retry := retryMin
	timer := time.NewTimer(0)
	defer timer.Stop()
	periodic := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.kick:
			periodic = false
		case <-timer.C:
			periodic = true
			known.state, known.manager = nil, nil // time to look what is really there
		}
		d.mu.Lock()
		job := job{want: d.want, over: d.over(d.want), manager: d.overManager(d.want), seq: d.wantSeq, epoch: d.epoch}
		ready := d.role == session.Primary && (job.want.State != nil || job.want.Err != nil)
		d.mu.Unlock()
		if !ready {
			timer.Stop()
			continue
		}
		if known.epoch != job.epoch {
			known = held{epoch: job.epoch}
		}
		if known.state != nil && known.seq == job.seq {
			// Only overlays can have changed. When the next comparison is due stays.
			if err := d.restack(ctx, job, &known); err == nil {
				continue
			}
			known.state = nil // the attempt will say what is wrong
		}
		ok := d.attempt(ctx, job, &known, periodic)
		next := time.Duration(-1)
		if ok {
			retry = retryMin
			if job.want.Env != nil {
				next = job.want.Env.Config.Controller.ResyncInterval
			}
		} else {
			next, retry = retry, min(2*retry, retryMax)
		}
		timer.Stop()
		if next > 0 {
			timer.Reset(next)
		}
	}
}

// job is what one attempt is about.
type job struct {
	want    Want
	over    *reconcile.State         // nil for none
	manager *trafficmanager.Settings // want.Manager with the loops' overlay
	seq     uint64
	epoch   uint64
}

// attempt brings the switch in line and reports whether it now holds what it should.
func (d *Device) attempt(ctx context.Context, j job, known *held, periodic bool) bool {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	began := time.Now()
	res, err := d.bring(ctx, j, known, periodic)
	if err != nil {
		known.state = nil
	}
	if manageable(err) && j.want.Err == nil {
		rows, merr := d.manage(ctx, j, known, periodic)
		res.Modified += rows
		err = errors.Join(err, merr)
	}
	if err != nil {
		res.Err = err.Error()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stats.Reconciles++
	if d.epoch != j.epoch {
		return true // the session changed meanwhile; its role says what is next
	}
	if transient(err) {
		d.state(d.status.State, err.Error())
		return false // the session will soon say what it is
	}
	d.done = outcome{seq: j.seq, result: res}
	if j.want.State != nil {
		d.status.Entries = j.want.State.Len()
	}
	d.status.Reconciles++
	if err != nil {
		d.log.Warn("the switch is not in line", "err", err, "took", time.Since(began))
		d.state(view.Degraded, err.Error())
	} else {
		if n := res.Inserted + res.Modified + res.Deleted; n > 0 {
			d.log.Info("switch reconciled", "inserted", res.Inserted, "modified", res.Modified, "deleted", res.Deleted, "took", time.Since(began))
		}
		d.state(view.Ready, "")
	}
	d.attach(j)
	d.wake()
	return err == nil
}

// manageable reports whether the switch runs the wanted program for all that is known, even
// if it refused entries: the traffic manager of another is left alone.
func manageable(err error) bool {
	var refused *session.WriteError
	return err == nil || errors.As(err, &refused)
}

// transient reports whether an error is the connection's, not the switch's.
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
	if j.want.Env == nil || j.want.State == nil {
		return
	}
	if a := d.attached; a != nil && a.epoch == j.epoch && sameConfig(a.env, j.want.Env) {
		return
	}
	since := time.Now()
	if d.attached != nil {
		since = d.attached.since
	}
	d.attached = &attachment{env: j.want.Env, epoch: j.epoch, since: since}
	signal(d.reattach)
}

// bring reads, compares and writes.
func (d *Device) bring(ctx context.Context, j job, known *held, periodic bool) (view.Result, error) {
	res := view.Result{Switch: d.opts.Switch.Name}
	if j.want.Err != nil {
		return res, j.want.Err
	}
	c, err := d.session.Client()
	if err != nil {
		return res, err
	}
	fresh := known.state == nil
	if fresh {
		if err := d.program(ctx, c); err != nil {
			return res, err
		}
		have, unreadable, err := reconcile.Read(ctx, c, d.opts.Pipeline)
		if err != nil {
			return res, err
		}
		known.state, known.over = have, nil
		d.noteCapabilities(j.epoch, discover(ctx, c, d.opts, unreadable))
		d.count(func(s *Stats) { s.Reads++ })
	}
	plan := reconcile.Diff(reconcile.Merge(known.state, known.over), reconcile.Merge(j.want.State, j.over), d.opts.Pipeline.TableSize)
	if periodic && plan.Len() > 0 && d.Status().State == view.Ready {
		d.event(view.Warning, "switch.drift", fmt.Sprintf("%d entries were not what they should be", plan.Len()))
	}
	if err := d.write(ctx, c, plan); err != nil {
		return res, err
	}
	known.state, known.over, known.seq = j.want.State, j.over, j.seq
	res.Inserted, res.Modified, res.Deleted = plan.Count()
	return res, nil
}

// program makes sure that the switch runs the wanted pipeline.
func (d *Device) program(ctx context.Context, c *session.Client) error {
	running, err := c.Compare(ctx, d.opts.Pipeline)
	if err != nil || running == session.Same {
		return err
	}
	if !d.opts.Pipeline.Pushable() {
		return noDevice(running)
	}
	if err := c.Push(ctx, d.opts.Pipeline); err != nil {
		return err
	}
	d.count(func(s *Stats) { s.Pushes++ })
	why := "it ran none"
	if running == session.Other {
		why = "it ran another one"
	}
	d.event(view.Info, "pipeline.pushed", fmt.Sprintf("the switch has a new pipeline: %s", why))
	return nil
}

// write carries out a plan. What the plan took from a read that was incomplete or is out
// of date is repaired: an insert of what is there becomes a modify, and the reverse, and a
// delete of what is gone is done.
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
	d.count(func(s *Stats) {
		s.Updates += uint64(plan.Len() - len(failed))
		s.RefusedUpdates += uint64(len(failed))
	})
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

func (d *Device) event(severity view.Severity, kind, text string) {
	d.opts.Events(view.Event{Time: time.Now(), Severity: severity, Subject: d.opts.Switch.Name, Kind: kind, Message: text})
}

func (d *Device) noteCapabilities(epoch uint64, list []view.Capability) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.epoch == epoch {
		d.status.Capabilities = list
	}
}
