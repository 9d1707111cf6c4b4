package device

import (
	"context"
	"errors"
	"fmt"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/reconcile"
	"github.com/headgate/headgate/controller/p4runtime/session"
)

// Plan returns the updates that lead to want. It writes nothing. A switch that cannot be read
// counts as empty, and the plan says why.
func (d *Device) Plan(ctx context.Context, want Desired) *pb.SwitchPlan {
	c, err := d.session.Client()
	d.mu.Lock()
	if err != nil && d.why != nil {
		err = d.why
	}
	d.mu.Unlock()
	plan := PlanOf(ctx, d.opts.Switch.Name, c, err, d.opts.Pipeline, want.State, feature.Externs(d.opts.Features, &d.opts.Switch)...)
	if d.opts.TrafficManager != nil && want.TrafficManager != nil {
		ctx, cancel := context.WithTimeout(ctx, d.opts.TrafficManagerTime)
		defer cancel()
		d.mu.Lock()
		manager := d.planTrafficManager(want)
		d.mu.Unlock()
		PlanTrafficManager(ctx, plan, d.opts.TrafficManager, manager)
	}
	return plan
}

// PlanOf reads a switch by client c and compares it with want. If err is set, c may be nil, and the plan says that the
// switch is unreachable for that reason. externs are the result of feature.Externs.
func PlanOf(ctx context.Context, name string, c *session.Client, err error, p *pipeline.Pipeline, want *reconcile.State, externs ...uint32) *pb.SwitchPlan {
	out := &pb.SwitchPlan{Name: name, Tables: p.Uses(pipeline.UsageOf(want.All()))}
	have := &reconcile.State{}
	if err == nil {
		have, err = readState(ctx, c, p, externs, out)
	}
	if err != nil {
		out.Unreachable = reason(err)
		have = &reconcile.State{}
	}
	plan := reconcile.Diff(have, want, p.TableSize)
	for _, batch := range plan.Batches {
		for _, u := range batch {
			out.Changes = append(out.Changes, change(p, have, u))
		}
	}
	return out
}

// readState reads a switch. A switch that runs another pipeline counts as empty, because it is empty
// after the pipeline is replaced.
func readState(ctx context.Context, c *session.Client, p *pipeline.Pipeline, externs []uint32, out *pb.SwitchPlan) (*reconcile.State, error) {
	running, err := compare(ctx, c, p)
	if err != nil {
		return nil, err
	}
	switch running {
	case session.Missing:
		out.Changes = append(out.Changes, &pb.Change{Kind: pb.Change_KIND_INSERT, Table: "pipeline", New: program(p)})
		return &reconcile.State{}, nil
	case session.Other:
		out.Changes = append(out.Changes, &pb.Change{Kind: pb.Change_KIND_MODIFY, Table: "pipeline", Old: "another program, whose entries are lost", New: program(p)})
		return &reconcile.State{}, nil
	}
	have, _, err := reconcile.Read(ctx, c, p, externs...)
	return have, err
}

// program names a program by its cookie.
func program(p *pipeline.Pipeline) string { return fmt.Sprintf("program %016x", p.Cookie()) }

// compare returns how far the switch runs a pipeline. If it does not, and the controller has no device_config to
// push, that is an error.
func compare(ctx context.Context, c *session.Client, p *pipeline.Pipeline) (session.Running, error) {
	running, err := c.Compare(ctx, p)
	if err != nil || running == session.Same || p.Pushable() {
		return running, err
	}
	what := "runs no pipeline"
	if running == session.Other {
		what = "runs another pipeline"
	}
	return running, fmt.Errorf("the switch %s, and its device_config is not set: want the file that p4c compiled for its chip, or a switch that runs the program already", what)
}

func change(p *pipeline.Pipeline, have *reconcile.State, u *p4v1.Update) *pb.Change {
	named := p.Named(u.GetEntity())
	c := &pb.Change{Kind: pb.Change_KIND_MODIFY}
	c.Table, c.Key = named.Place()
	if k, err := reconcile.KeyOf(u.GetEntity()); err == nil && have.Get(k) != nil {
		c.Old = p.Named(have.Get(k)).Value()
	}
	switch u.GetType() {
	case p4v1.Update_INSERT:
		c.Kind = pb.Change_KIND_INSERT
	case p4v1.Update_DELETE:
		c.Kind = pb.Change_KIND_DELETE
		return c
	}
	c.New = named.Value()
	return c
}

// reason returns the text of an error without the words that gRPC puts around it.
func reason(err error) string {
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) && s.GRPCStatus().Message() != "" {
		return s.GRPCStatus().Message()
	}
	return err.Error()
}
