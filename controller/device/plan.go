package device

import (
	"context"
	"errors"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/controller/reconcile"
	"github.com/headgate/headgate/controller/session"
	"github.com/headgate/headgate/controller/view"
)

// Plan says what would be written to reach want, and writes nothing. A switch that cannot
// be read is taken to be empty, and the plan says why.
func (d *Device) Plan(ctx context.Context, want Want) view.Plan {
	c, err := d.session.Client()
	d.mu.Lock()
	if err != nil && d.why != nil {
		err = d.why
	}
	base, over := d.want.State, d.over(d.want)
	d.mu.Unlock()
	plan := planOf(ctx, d.opts.Switch.Name, c, err, d.opts.Pipeline, want.State, func(have *reconcile.State) *reconcile.State {
		return reconcile.Unstack(have, base, over) // the loops' own is no difference
	})
	if d.manager != nil && want.Manager != nil {
		ctx, cancel := context.WithTimeout(ctx, d.opts.ManagerTime)
		defer cancel()
		m, err := d.manager.get()
		d.mu.Lock()
		manager := d.planManager(want)
		d.mu.Unlock()
		PlanManager(ctx, &plan, m, err, manager)
	}
	return plan
}

// PlanOf compares a switch with want over any client, which may be nil when err says why.
func PlanOf(ctx context.Context, name string, c *session.Client, err error, p *pipeline.Pipeline, want *reconcile.State) view.Plan {
	return planOf(ctx, name, c, err, p, want, func(have *reconcile.State) *reconcile.State { return have })
}

func planOf(ctx context.Context, name string, c *session.Client, err error, p *pipeline.Pipeline, want *reconcile.State, plain func(*reconcile.State) *reconcile.State) view.Plan {
	out := view.Plan{Switch: name}
	have := &reconcile.State{}
	if err == nil {
		have, err = holds(ctx, c, p, &out)
	}
	if err != nil {
		out.Unreachable = reason(err)
		have = &reconcile.State{}
	}
	have = plain(have)
	plan := reconcile.Diff(have, want, p.TableSize)
	for _, batch := range plan.Batches {
		for _, u := range batch {
			out.Changes = append(out.Changes, change(p, have, u))
		}
	}
	return out
}

// holds reads a switch; one with another pipeline will be empty once that is replaced.
func holds(ctx context.Context, c *session.Client, p *pipeline.Pipeline, out *view.Plan) (*reconcile.State, error) {
	running, err := c.Compare(ctx, p)
	switch {
	case err != nil:
		return nil, err
	case running != session.Same && !p.Pushable():
		return nil, noDevice(running)
	case running == session.Missing:
		out.Changes = append(out.Changes, view.Change{Kind: view.Insert, Text: "pipeline: push"})
		return &reconcile.State{}, nil
	case running == session.Other:
		out.Changes = append(out.Changes, view.Change{Kind: view.Modify, Text: "pipeline: replace the one that runs; all its entries are lost"})
		return &reconcile.State{}, nil
	}
	have, _, err := reconcile.Read(ctx, c, p)
	return have, err
}

func change(p *pipeline.Pipeline, have *reconcile.State, u *p4v1.Update) view.Change {
	k, err := reconcile.KeyOf(u.GetEntity())
	if err != nil {
		return view.Change{Text: err.Error()}
	}
	text := p.Describe(u.GetEntity())
	old := have.Get(k)
	switch u.GetType() {
	case p4v1.Update_INSERT:
		return view.Change{Kind: view.Insert, Text: text}
	case p4v1.Update_DELETE:
		return view.Change{Kind: view.Delete, Text: p.Describe(old)}
	}
	if old != nil {
		text += " (was: " + p.Describe(old) + ")"
	}
	return view.Change{Kind: view.Modify, Text: text}
}

// reason returns an error's text for people, without gRPC's frame around it.
func reason(err error) string {
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) && s.GRPCStatus().Message() != "" {
		return s.GRPCStatus().Message()
	}
	return err.Error()
}
