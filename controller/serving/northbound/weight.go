package northbound

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/state/outcome"
)

// defaultAudit is how many entries ListAudit returns when the client names no number.
const defaultAudit = 1000

type weightService struct {
	pb.UnimplementedWeightServiceServer
	weights *weights.Registry
	audit   *audit.Log
	running context.Context
}

// callerOf is the caller for the registry and the audit log.
func callerOf(ctx context.Context) weights.Caller {
	c := authz.CallerOf(ctx)
	return weights.Caller{Identity: clean(c.Name), Peer: clean(c.Address), Applications: c.Applications, Request: outcome.RequestOf(ctx)}
}

// record puts what a caller asked for into the audit log, the first time.
func record(ctx context.Context, l *audit.Log, e audit.Entry, err error) {
	by := callerOf(ctx)
	if by.Request.Again(nil) {
		return
	}
	e.Identity, e.Peer = by.Identity, by.Peer
	l.Record(e, err)
}

// change reads one request. A request without a flow is logged here, because the registry never sees
// it.
func (s *weightService) change(ctx context.Context, r *pb.SetWeightRequest) (weights.Change, error) {
	k, err := keyFromProto(r.GetFlow())
	if err != nil {
		by := callerOf(ctx)
		s.weights.Refuse(audit.Entry{
			Identity: by.Identity, Peer: by.Peer, Application: r.GetApplication(), Value: r.GetWeight(), What: audit.Weight,
		}, err)
		return weights.Change{}, err
	}
	return weights.Change{Key: k, Weight: r.GetWeight(), Application: r.GetApplication()}, nil
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
	k, err := keyFromProto(r.GetFlow())
	if err == nil {
		err = s.weights.Delete(callerOf(ctx), k)
	} else {
		by := callerOf(ctx)
		s.weights.Refuse(audit.Entry{Identity: by.Identity, Peer: by.Peer, What: audit.Delete}, err)
	}
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.DeleteFlowResponse{}, nil
}

func (s *weightService) ListWeights(_ context.Context, r *pb.ListWeightsRequest) (*pb.ListWeightsResponse, error) {
	out := &pb.ListWeightsResponse{}
	for _, f := range s.weights.Flows(r.GetApplication()) {
		out.Flows = append(out.Flows, flowToProto(f))
	}
	for _, b := range s.weights.Budgets() {
		if r.GetApplication() == "" || r.GetApplication() == b.Application {
			out.Budgets = append(out.Budgets, budgetToProto(b))
		}
	}
	return out, nil
}

func (s *weightService) SetBudget(ctx context.Context, r *pb.SetBudgetRequest) (*pb.SetBudgetResponse, error) {
	if err := s.weights.SetBudget(callerOf(ctx), r.GetApplication(), r.GetLimit()); err != nil {
		return nil, toStatus(err)
	}
	return &pb.SetBudgetResponse{}, nil
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
