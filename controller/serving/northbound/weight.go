package northbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/priority"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/state/outcome"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/units"
)

// defaultAudit is how many entries ListAudit returns if the client gives no number.
const defaultAudit = 1000

type weightService struct {
	pb.UnimplementedWeightServiceServer
	weights *weights.Registry
	audit   *audit.Log
	running context.Context
}

// callerOf is the caller for the registry and the audit log.
func callerOf(ctx context.Context) weights.Caller {
	c := authz.CallerFromContext(ctx)
	return weights.Caller{Identity: clean(c.Name), Peer: clean(c.Address), Applications: c.Applications, Request: outcome.RequestFromContext(ctx)}
}

// record writes a caller's request into the audit log, unless the request was made before.
func record(ctx context.Context, l *audit.Log, e audit.Entry, err error) {
	by := callerOf(ctx)
	if by.Request.Again(nil) {
		return
	}
	e.Identity, e.Peer = by.Identity, by.Peer
	l.Record(e, err)
}

// key reads a flow. A request without one is logged here, as e, because the registry never sees it.
func (s *weightService) key(ctx context.Context, f *pb.FlowKey, e audit.Entry) (weights.Key, error) {
	k, err := keyFromProto(f)
	if err != nil {
		by := callerOf(ctx)
		e.Identity, e.Peer = by.Identity, by.Peer
		s.weights.Refuse(e, err)
	}
	return k, err
}

// change reads one request.
func (s *weightService) change(ctx context.Context, r *pb.SetWeightRequest) (weights.Change, error) {
	k, err := s.key(ctx, r.GetFlow(), audit.Entry{Application: r.GetApplication(), Value: r.GetWeight(), What: audit.Weight})
	return weights.Change{Key: k, Weight: r.GetWeight(), Application: r.GetApplication()}, err
}

func (s *weightService) SetWeight(ctx context.Context, r *pb.SetWeightRequest) (*pb.SetWeightResponse, error) {
	c, err := s.change(ctx, r)
	if err != nil {
		return nil, toStatus(err)
	}
	applied, err := s.weights.Set(callerOf(ctx), c)
	if err != nil {
		return nil, toStatus(err)
	}
	return appliedToProto(applied[0]), nil
}

func (s *weightService) SetWeights(ctx context.Context, r *pb.SetWeightsRequest) (*pb.SetWeightsResponse, error) {
	changes := make([]weights.Change, len(r.GetWeights()))
	for i, one := range r.GetWeights() {
		var err error
		if changes[i], err = s.change(ctx, one); err != nil {
			var invalid *weights.InvalidError
			if errors.As(err, &invalid) {
				err = &weights.InvalidError{Field: fmt.Sprintf("weights[%d].flow.%s", i, invalid.Field), Value: invalid.Value, Allowed: invalid.Allowed}
			}
			return nil, toStatus(err)
		}
	}
	out := &pb.SetWeightsResponse{}
	if len(changes) == 0 {
		return out, nil
	}
	applied, err := s.weights.Set(callerOf(ctx), changes...)
	if err != nil {
		return nil, toStatus(err)
	}
	for _, a := range applied {
		out.Weights = append(out.Weights, appliedToProto(a))
	}
	return out, nil
}

func appliedToProto(a weights.Applied) *pb.SetWeightResponse {
	return &pb.SetWeightResponse{Previous: a.Previous.Float(), Weight: a.Flow.Weight.Float()}
}

func (s *weightService) DeleteFlow(ctx context.Context, r *pb.DeleteFlowRequest) (*pb.DeleteFlowResponse, error) {
	k, err := s.key(ctx, r.GetFlow(), audit.Entry{What: audit.Delete})
	if err == nil {
		err = s.weights.Delete(callerOf(ctx), k)
	}
	return &pb.DeleteFlowResponse{}, toStatus(err)
}

func (s *weightService) ListWeights(_ context.Context, r *pb.ListWeightsRequest) (*pb.ListWeightsResponse, error) {
	flows, next, err := page(s.weights.Flows(r.GetApplication()), r, func(f weights.Flow) string {
		src, dst := f.Key.Src(), f.Key.Dst()
		return fmt.Sprintf("%x.%04x.%x.%04x", src.Addr().As16(), src.Port(), dst.Addr().As16(), dst.Port())
	})
	if err != nil {
		return nil, err
	}
	out := &pb.ListWeightsResponse{NextPageToken: next}
	for _, f := range flows {
		out.Flows = append(out.Flows, flowToProto(f))
	}
	for _, b := range s.weights.Budgets() {
		if r.GetPageToken() == "" && (r.GetApplication() == "" || r.GetApplication() == b.Application) {
			out.Budgets = append(out.Budgets, budgetToProto(b))
		}
	}
	return out, nil
}

func (s *weightService) SetBudget(ctx context.Context, r *pb.SetBudgetRequest) (*pb.SetBudgetResponse, error) {
	return &pb.SetBudgetResponse{}, toStatus(s.weights.SetBudget(callerOf(ctx), r.GetApplication(), r.GetLimit()))
}

func (s *weightService) ListAudit(_ context.Context, r *pb.ListAuditRequest) (*pb.ListAuditResponse, error) {
	n := int(r.GetLimit())
	if n == 0 {
		n = defaultAudit
	}
	out := &pb.ListAuditResponse{}
	for _, e := range s.audit.List(r.GetApplication(), n) {
		out.Entries = append(out.Entries, entryToProto(e))
	}
	return out, nil
}

func (s *weightService) ExportAudit(_ *pb.ExportAuditRequest, stream grpc.ServerStreamingServer[pb.AuditLine]) error {
	head, err := s.audit.Export(func(text []byte) error {
		return stream.Send(&pb.AuditLine{Text: string(text)})
	})
	var damaged *audit.DamagedError
	switch {
	case errors.Is(err, audit.ErrNoFile):
		return status.Error(codes.FailedPrecondition, err.Error())
	case errors.As(err, &damaged):
		return status.Error(codes.DataLoss, clean(err.Error()))
	case err != nil:
		return toStatus(err)
	}
	return stream.Send(&pb.AuditLine{Head: head})
}

func (s *weightService) WatchWeights(r *pb.WatchWeightsRequest, stream grpc.ServerStreamingServer[pb.WeightUpdate]) error {
	app := r.GetApplication()
	var match func(weights.Flow) bool
	if app != "" {
		match = func(f weights.Flow) bool { return f.Application == app }
	}
	w := s.weights.Watch(match, 0)
	defer w.Close()
	return sendEach(stream, s.running, w.Next, func(b weights.Batch) error {
		var list []*pb.WeightUpdate
		if b.Reset {
			list = append(list, &pb.WeightUpdate{Full: true, Missed: b.Missed})
		}
		for _, u := range b.Updates {
			switch {
			case u.Budget == nil:
				list = append(list, &pb.WeightUpdate{Deleted: u.Deleted, Flow: flowToProto(u.Flow)})
			case app == "" || app == u.Budget.Application:
				list = append(list, &pb.WeightUpdate{Budget: budgetToProto(*u.Budget)})
			}
		}
		if b.Reset {
			list = append(list, &pb.WeightUpdate{Synced: true})
		}
		for _, u := range list {
			if err := stream.Send(u); err != nil {
				return err
			}
		}
		return nil
	})
}

type priorityService struct {
	pb.UnimplementedPriorityServiceServer
	priorities *priority.Registry
	audit      *audit.Log
	running    context.Context
}

func (s *priorityService) AllocatePriority(ctx context.Context, r *pb.AllocatePriorityRequest) (*pb.AllocatePriorityResponse, error) {
	number, err := priorityFromProto(r.GetPriority(), 0)
	if err != nil {
		return nil, err
	}
	p, err := s.priorities.Allocate(outcome.RequestFromContext(ctx), r.GetApplication(), number)
	record(ctx, s.audit, audit.Entry{What: audit.Priority, Application: clean(r.GetApplication()), Value: float64(cmp.Or(p.Number, number)), After: clean(p.Application)}, err)
	if err != nil {
		return nil, toStatus(err)
	}
	plan, _ := s.priorities.Plan()
	return &pb.AllocatePriorityResponse{Channel: channelToProto(p, plan.Base)}, nil
}

func (s *priorityService) ReleasePriority(ctx context.Context, r *pb.ReleasePriorityRequest) (*pb.ReleasePriorityResponse, error) {
	number, err := priorityFromProto(r.GetPriority(), 1)
	if err != nil {
		return nil, err
	}
	err = s.priorities.Release(outcome.RequestFromContext(ctx), r.GetApplication(), number)
	record(ctx, s.audit, audit.Entry{What: audit.Release, Application: clean(r.GetApplication()), Value: float64(number), Before: clean(r.GetApplication())}, err)
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.ReleasePriorityResponse{}, nil
}

// priorityFromProto converts a priority; it refuses numbers that no plan can have.
func priorityFromProto(n uint32, least int) (int, error) {
	if n > channel.MaxPriority || int(n) < least {
		return 0, toStatus(&priority.RangeError{Number: int(n), Priorities: channel.MaxPriority})
	}
	return int(n), nil
}

func (s *priorityService) ListPriorities(context.Context, *pb.ListPrioritiesRequest) (*pb.ListPrioritiesResponse, error) {
	out, _ := s.list()
	return out, nil
}

func (s *priorityService) WatchPriorities(_ *pb.WatchPrioritiesRequest, stream grpc.ServerStreamingServer[pb.ListPrioritiesResponse]) error {
	var changed <-chan struct{} // nil before the first list
	return sendEach(stream, s.running, func(ctx context.Context) (list *pb.ListPrioritiesResponse, err error) {
		if changed != nil {
			select {
			case <-changed:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		list, changed = s.list()
		return list, nil
	}, stream.Send)
}

// list returns the priorities, and a channel that is closed when one changes.
func (s *priorityService) list() (*pb.ListPrioritiesResponse, <-chan struct{}) {
	all, changed := s.priorities.List()
	out := &pb.ListPrioritiesResponse{}
	plan, ok := s.priorities.Plan()
	if !ok {
		return out, changed
	}
	out.Plan = &pb.ChannelPlan{
		Base: durationpb.New(plan.Base.Duration()), Fluctuation: durationpb.New(plan.Fluctuation.Duration()), Noise: durationpb.New(plan.Noise.Duration()),
		Flows: plan.Flows, Priorities: uint32(plan.Priorities),
	}
	for _, p := range all {
		out.Channels = append(out.Channels, channelToProto(p, plan.Base))
	}
	return out, changed
}

func channelToProto(p priority.Priority, base units.Time) *pb.Channel {
	return &pb.Channel{
		Priority: uint32(p.Number), Application: clean(p.Application),
		Target: durationpb.New(p.Channel.Target.Duration()), Limit: durationpb.New(p.Channel.Limit.Duration()), Base: durationpb.New(base.Duration()),
	}
}

// sendChannels sends the new channel of each flow whose channel is out of date. For flows without a channel it
// sends the reason, once per reason.
func (a *attached) sendChannels() error {
	a.changed = a.service.priorities.Changed() // a change from here on leads to the next call
	refused := map[string]string{}
	for _, f := range a.flows {
		if f.GetVirtualPriority() == 0 {
			continue
		}
		answer := &pb.FlowChannel{Flow: f.GetFlow()}
		c, base, err := a.service.priorities.Channel(f.GetApplication(), int(min(f.GetVirtualPriority(), channel.MaxPriority+1)))
		if !a.by.May(f.GetApplication()) {
			err = fmt.Errorf("virtual priorities of application %q are not granted to this host", f.GetApplication())
		}
		if err != nil {
			name := keyText(f.GetFlow())
			answer.Refused = clean(err.Error())
			refused[name] = answer.Refused
			if a.refused[name] == answer.Refused {
				continue
			}
		} else {
			answer.Channel = channelToProto(priority.Priority{Number: int(f.GetVirtualPriority()), Channel: c}, base)
			pb.FillDurations(answer.Channel) // durations are in the form in which the host stores them
			if proto.Equal(answer.Channel, f.GetChannel()) {
				continue
			}
		}
		if err := a.stream.Send(&pb.HostCommand{Channel: answer}); err != nil {
			return err
		}
	}
	a.refused = refused
	return nil
}
