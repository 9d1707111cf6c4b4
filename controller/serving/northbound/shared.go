package northbound

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/priority"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/state/history"
	"github.com/headgate/headgate/controller/view"
)

// AnsweredBy is the key of the header in which a member that stands by and answers a call itself says its
// name.
const AnsweredBy = "headgate-member"

// Shared is the state that the members of a cluster share, as a member knows it that stands by. A call
// makes of it what it asks for.
type Shared struct {
	Guard      *authz.Guard // by the policy that the configuration in force names
	History    *history.Book
	Fabric     func() view.Fabric // the links' states are those that operators gave them
	Weights    func() *weights.Registry
	Audit      func() *audit.Log
	Priorities func() (*priority.Registry, error)
	Leader     func(context.Context) (string, error) // name of the member that leads, empty for nobody
}

// calls are those that a member which stands by answers itself. Each is of one request and one answer.
var calls = map[string]call{
	pb.FabricService_GetFabric_FullMethodName: handler(func(s *Shared) (unary[*pb.GetFabricRequest, *pb.GetFabricResponse], error) {
		return func(ctx context.Context, _ *pb.GetFabricRequest) (*pb.GetFabricResponse, error) {
			leader, err := s.Leader(ctx)
			if err != nil {
				return nil, status.Errorf(codes.Unavailable, "etcd does not say who leads: %v", err)
			}
			return fabricToProto(s.Fabric(), leader), nil
		}, nil
	}),
	pb.FabricService_ListHistory_FullMethodName: handler(func(s *Shared) (unary[*pb.ListHistoryRequest, *pb.ListHistoryResponse], error) {
		return (&fabricService{Options: Options{History: s.History}}).ListHistory, nil
	}),
	pb.WeightService_ListWeights_FullMethodName: handler(func(s *Shared) (unary[*pb.ListWeightsRequest, *pb.ListWeightsResponse], error) {
		return (&weightService{weights: s.Weights()}).ListWeights, nil
	}),
	pb.WeightService_ListAudit_FullMethodName: handler(func(s *Shared) (unary[*pb.ListAuditRequest, *pb.ListAuditResponse], error) {
		return (&weightService{audit: s.Audit()}).ListAudit, nil
	}),
	pb.PriorityService_ListPriorities_FullMethodName: handler(func(s *Shared) (unary[*pb.ListPrioritiesRequest, *pb.ListPrioritiesResponse], error) {
		r, err := s.Priorities()
		return (&priorityService{priorities: r}).ListPriorities, err
	}),
}

// leaderFirst are those of calls that the leader can say more about: they are answered here where nobody
// leads, or the leader does not answer soon.
var leaderFirst = map[string]bool{pb.FabricService_GetFabric_FullMethodName: true}

const (
	changes  = "changes are made by the leader"
	switches = "what switches do is known to the leader"
	hosts    = "what hosts do is known to the leader"
	follows  = "what follows changes asks the leader"
)

// leaders are the calls that the leader alone answers, with why.
var leaders = map[string]string{
	pb.FabricService_ListSwitches_FullMethodName:    switches,
	pb.FabricService_PlanConfig_FullMethodName:      switches,
	pb.FabricService_ApplyConfig_FullMethodName:     changes,
	pb.FabricService_ConfirmConfig_FullMethodName:   changes,
	pb.FabricService_GetPredictions_FullMethodName:  switches,
	pb.FabricService_SetLink_FullMethodName:         changes,
	pb.FabricService_WatchEvents_FullMethodName:     follows,
	pb.FabricService_StreamTelemetry_FullMethodName: switches,

	pb.StateService_BackupState_FullMethodName:   "a backup is a line of the audit log, and " + changes,
	pb.StateService_ReplaceMember_FullMethodName: changes,

	pb.WeightService_SetWeight_FullMethodName:    changes,
	pb.WeightService_SetWeights_FullMethodName:   changes,
	pb.WeightService_DeleteFlow_FullMethodName:   changes,
	pb.WeightService_SetBudget_FullMethodName:    changes,
	pb.WeightService_WatchWeights_FullMethodName: follows,
	pb.WeightService_ExportAudit_FullMethodName:  "the audit log's file is the leader's",

	pb.PriorityService_AllocatePriority_FullMethodName: changes,
	pb.PriorityService_ReleasePriority_FullMethodName:  changes,
	pb.PriorityService_WatchPriorities_FullMethodName:  follows,

	pb.HostService_Attach_FullMethodName:     changes,
	pb.HostService_ListFlows_FullMethodName:  hosts,
	pb.HostService_GetTraffic_FullMethodName: hosts,
	pb.HostService_WatchFlows_FullMethodName: hosts,

	"/gnmi.gNMI/Capabilities": switches,
	"/gnmi.gNMI/Get":          switches,
	"/gnmi.gNMI/Subscribe":    switches,
	"/gnmi.gNMI/Set":          changes,

	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      "what there is to call the leader knows",
	"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": "what there is to call the leader knows",
}

// unary is a method of a service.
type unary[Q, A any] func(context.Context, Q) (A, error)

// call answers a request from the shared state. It is not admitted where the guard refuses it, or where
// the state lacks what is asked for.
type call func(ctx context.Context, s *Shared, method string, request raw) (answer any, admitted bool, err error)

// handler returns the call that a method answers, which is made from the state.
func handler[Q any, P interface {
	*Q
	proto.Message
}, A any](of func(*Shared) (unary[P, A], error)) call {
	return func(ctx context.Context, s *Shared, method string, request raw) (answer any, admitted bool, err error) {
		md, _ := metadata.FromIncomingContext(ctx)
		if ctx, err = s.Guard.Tap(ctx, &tap.Info{FullMethodName: method, Header: md}); err != nil {
			return nil, false, err
		}
		in := P(new(Q))
		if err := encoding.GetCodecV2("proto").Unmarshal(mem.BufferSlice{mem.SliceBuffer(request)}, in); err != nil {
			return nil, false, err
		}
		next, err := of(s)
		if err != nil {
			return nil, false, err
		}
		answer, err = s.Guard.Unary(ctx, in, &grpc.UnaryServerInfo{FullMethod: method}, func(ctx context.Context, in any) (any, error) {
			admitted = true
			return next(ctx, in.(P))
		})
		return answer, admitted, err
	}
}
