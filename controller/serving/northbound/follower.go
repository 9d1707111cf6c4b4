package northbound

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/priority"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/state/history"
	"github.com/headgate/headgate/controller/state/outcome"
)

// AnsweredBy is the key of the header in which a follower that answers a call itself says its name.
const AnsweredBy = "headgate-member"

// FollowerState is the replicated state of a cluster as a follower knows it.
type FollowerState struct {
	Authorizer *authz.Authorizer // applies the policy of the configuration in force
	History    *history.Store
	Fabric     func() *pb.GetFabricResponse // links have the states that operators set
	Weights    func() *weights.Registry
	Audit      func() *audit.Log
	Priorities func() (*priority.Registry, error)
	Leader     func(context.Context) (string, error) // name of the member that leads, empty for nobody
}

// followerCalls holds the methods that a follower answers itself, each with a function that makes the service from
// the state. All are unary.
var followerCalls = map[string]func(*FollowerState) (any, error){
	pb.FabricService_GetFabric_FullMethodName:   (*FollowerState).fabricService,
	pb.FabricService_ListHistory_FullMethodName: (*FollowerState).fabricService,
	pb.WeightService_ListWeights_FullMethodName: func(s *FollowerState) (any, error) { return &weightService{weights: s.Weights()}, nil },
	pb.WeightService_ListAudit_FullMethodName:   func(s *FollowerState) (any, error) { return &weightService{audit: s.Audit()}, nil },
	pb.PriorityService_ListPriorities_FullMethodName: func(s *FollowerState) (any, error) {
		r, err := s.Priorities()
		return &priorityService{priorities: r}, err
	},
}

func (s *FollowerState) fabricService() (any, error) {
	return &fabricService{Options: Options{History: s.History}, fabric: s.Fabric, leader: s.Leader}, nil
}

// handlers are the generated handlers of followerCalls, by method.
var handlers = func() map[string]grpc.MethodHandler {
	by := map[string]grpc.MethodHandler{}
	for _, s := range []grpc.ServiceDesc{pb.FabricService_ServiceDesc, pb.WeightService_ServiceDesc, pb.PriorityService_ServiceDesc} {
		for _, m := range s.Methods {
			by["/"+s.ServiceName+"/"+m.MethodName] = m.Handler
		}
	}
	return by
}()

// call answers a request from the state. admitted is false if the authorizer refuses it, or if the state lacks the
// requested object.
func (s *FollowerState) call(ctx context.Context, method string, request raw) (answer any, admitted bool, err error) {
	md, _ := metadata.FromIncomingContext(ctx)
	if ctx, err = s.Authorizer.Tap(ctx, &tap.Info{FullMethodName: method, Header: md}); err != nil {
		return nil, false, err
	}
	service, err := followerCalls[method](s)
	if err != nil {
		return nil, false, err
	}
	decode := func(m any) error {
		return encoding.GetCodecV2("proto").Unmarshal(mem.BufferSlice{mem.SliceBuffer(request)}, m)
	}
	answer, err = handlers[method](service, ctx, decode, func(ctx context.Context, in any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		return s.Authorizer.Unary(ctx, in, info, func(ctx context.Context, in any) (any, error) {
			admitted = true
			return durations(ctx, in, info, next)
		})
	})
	return answer, admitted, err
}

// lead withholds answers of a controller that may no longer lead, because a new leader may have changed the state
// since.
type lead struct {
	leads   func() error     // see Options.Leads
	pending *outcome.Pending // nil: none
}

// over returns UNAVAILABLE if the lead may have ended.
func (l lead) over() error {
	if err := l.leads(); err != nil {
		return status.Error(codes.Unavailable, clean(err.Error()))
	}
	return nil
}

// ofProcess reports whether each member answers a method for its own process.
func ofProcess(method string) bool { return strings.HasPrefix(method, "/grpc.health.v1.Health/") }

// tap is a tap.ServerInHandle. It asks next only while this controller leads, because next's policy could be out of
// date.
func (l lead) tap(next tap.ServerInHandle) tap.ServerInHandle {
	return func(ctx context.Context, info *tap.Info) (context.Context, error) {
		if err := l.over(); err != nil && !ofProcess(info.FullMethodName) {
			return nil, err
		}
		return next(ctx, info)
	}
}

// unary is a grpc.UnaryServerInterceptor. It checks the lease after the answer is ready: if the lease still holds,
// everything that the answer says was true. Two answers need no check: an acknowledged change is in the store
// whichever member leads, and an unknown outcome stays unknown.
func (l lead) unary(ctx context.Context, in any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if ofProcess(info.FullMethod) {
		return next(ctx, in)
	}
	changes := authz.MethodOf(info.FullMethod).Changes()
	if !changes {
		if err := l.pending.Wait(ctx); err != nil {
			return nil, status.FromContextError(err).Err()
		}
	}
	answer, err := next(ctx, in)
	if changes && (err == nil || status.Code(err) == codes.Unavailable) {
		return answer, err
	}
	if over := l.over(); over != nil {
		return nil, over
	}
	return answer, err
}

// stream is a grpc.StreamServerInterceptor.
func (l lead) stream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if ofProcess(info.FullMethod) {
		return next(srv, s)
	}
	if err := l.pending.Wait(s.Context()); err != nil {
		return status.FromContextError(err).Err()
	}
	err := next(srv, ledStream{s, l})
	if over := l.over(); over != nil {
		return over
	}
	return err
}

// ledStream is a stream that sends only while its controller leads.
type ledStream struct {
	grpc.ServerStream
	lead lead
}

// SendMsg implements grpc.ServerStream.
func (s ledStream) SendMsg(m any) error {
	if err := s.lead.over(); err != nil {
		return err
	}
	return s.ServerStream.SendMsg(m)
}
