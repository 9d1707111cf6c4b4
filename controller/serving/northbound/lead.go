package northbound

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/state/outcome"
)

// lead lets nothing out that a controller says when it may not lead any more: another one may have changed what
// this one answers from.
type lead struct {
	leads   func() error     // as Options.Leads
	pending *outcome.Pending // nil: none
}

// over is UNAVAILABLE where the lead may have ended.
func (l lead) over() error {
	if err := l.leads(); err != nil {
		return status.Error(codes.Unavailable, clean(err.Error()))
	}
	return nil
}

// ofProcess reports whether each member answers a method for its own process.
func ofProcess(method string) bool { return strings.HasPrefix(method, "/grpc.health.v1.Health/") }

// tap is a tap.ServerInHandle: what next refuses, it refuses as a leader.
func (l lead) tap(next tap.ServerInHandle) tap.ServerInHandle {
	return func(ctx context.Context, info *tap.Info) (context.Context, error) {
		if err := l.over(); err != nil && !ofProcess(info.FullMethodName) {
			return nil, err
		}
		return next(ctx, info)
	}
}

// unary is a grpc.UnaryServerInterceptor. It checks the lease when the answer is ready, because what
// was read by then was true by then. An acknowledged change is in the store, whichever member leads,
// and an unknown outcome stays unknown.
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

// ledStream sends as long as its controller leads.
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
