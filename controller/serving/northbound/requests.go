package northbound

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/state/outcome"
)

// maxRequestID is the longest id of a request in bytes.
const maxRequestID = 64

// requests lets each change with an id be made once. It is safe for concurrent use.
type requests struct {
	state State // nil: nothing is kept

	mu   sync.Mutex
	open map[string]chan struct{} // the calls that are under way, by the keys of their requests
}

// unary is a grpc.UnaryServerInterceptor, behind the authorizer's.
func (s *requests) unary(ctx context.Context, in any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	id := metadata.ValueFromIncomingContext(ctx, pb.RequestIDKey)
	if len(id) == 0 || !pb.Changes(info.FullMethod) {
		return next(ctx, in)
	}
	if len(id) > 1 || id[0] == "" || len(id[0]) > maxRequestID || strings.ContainsFunc(id[0], func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, invalid(pb.RequestIDKey, "%q is not allowed: want one id of 1 to %d printable ASCII characters", id, maxRequestID)
	}
	digest, err := digestOf(info.FullMethod, in.(proto.Message))
	if err != nil {
		return nil, err
	}
	r := &outcome.Request{Done: outcome.Done{Key: authz.CallerOf(ctx).Name + " " + id[0], Digest: digest}}
	end, err := s.turn(ctx, r.Key)
	if err != nil {
		return nil, status.FromContextError(err).Err()
	}
	defer end()
	if s.state != nil {
		if d, ok := s.state.Done(r.Key); ok && d.Digest != digest {
			return nil, invalid(pb.RequestIDKey, "%q names another request, which was made: want an id that was not used", id[0])
		} else if ok {
			r.Earlier = &d
		}
	}
	return next(outcome.With(ctx, r), in)
}

// digestOf is what tells requests apart.
func digestOf(method string, in proto.Message) (string, error) {
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(in)
	sum := sha256.Sum256(append([]byte(method+"\n"), text...))
	return hex.EncodeToString(sum[:16]), err
}

// turn waits until no other call is under way with a key, and returns what ends this one.
func (s *requests) turn(ctx context.Context, key string) (end func(), err error) {
	for {
		s.mu.Lock()
		other, busy := s.open[key]
		if !busy {
			own := make(chan struct{})
			s.open[key] = own
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				delete(s.open, key)
				close(own)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
