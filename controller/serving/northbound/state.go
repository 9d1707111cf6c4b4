package northbound

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/state/outcome"
)

// State is the durable state of a controller. It is safe for concurrent use.
type State interface {
	// Backup returns the state in the form of a single controller's state file.
	Backup() ([]byte, error)
	// Done returns the outcome of a request, by its key.
	Done(key string) (outcome.Done, bool)
	// KeepDone keeps the outcome of a request that changed nothing.
	KeepDone(outcome.Done) error
}

// Members manages the members of the controller's cluster. It is safe for concurrent use.
type Members interface {
	// Replace lets a member with an empty disk take the place of the lost member of that name.
	Replace(ctx context.Context, name string) error
}

// partSize is the size of a message of a backup, in bytes.
const partSize = 1 << 20

type stateService struct {
	pb.UnimplementedStateServiceServer
	state   State
	members Members
	audit   *audit.Log
}

func (s *stateService) BackupState(_ *pb.BackupStateRequest, stream grpc.ServerStreamingServer[pb.StatePart]) error {
	if s.state == nil {
		return status.Error(codes.FailedPrecondition, "the controller keeps no state")
	}
	text, err := s.state.Backup()
	record(stream.Context(), s.audit, audit.Entry{What: audit.Backup}, err)
	if err != nil {
		return toStatus(err)
	}
	for part := range slices.Chunk(text, partSize) {
		if err := stream.Send(&pb.StatePart{Text: part}); err != nil {
			return err
		}
	}
	return nil
}

func (s *stateService) ReplaceMember(ctx context.Context, r *pb.ReplaceMemberRequest) (*pb.ReplaceMemberResponse, error) {
	if s.members == nil {
		return nil, status.Error(codes.FailedPrecondition, "no member can be replaced: the controller is alone, or others run the cluster's etcd")
	}
	q := outcome.RequestFromContext(ctx)
	if q.Again(nil) {
		return &pb.ReplaceMemberResponse{}, nil
	}
	err := s.members.Replace(ctx, r.GetName())
	if done := q.DoneWith(nil); err == nil && done != nil {
		if err = s.state.KeepDone(*done); err != nil {
			err = outcome.Unknown(fmt.Errorf("member %s was replaced, but storing the request id failed: %w", r.GetName(), err))
		}
	}
	record(ctx, s.audit, audit.Entry{What: audit.Replace, Subject: clean(r.GetName())}, err)
	if outcome.Tells(err) {
		return nil, toStatus(err)
	}
	if err != nil {
		return nil, status.Error(codes.FailedPrecondition, clean(err.Error()))
	}
	return &pb.ReplaceMemberResponse{}, nil
}

// maxRequestID is the longest id of a request in bytes.
const maxRequestID = 64

// requests makes sure that a change with a request id is made once. It is safe for concurrent use.
type requests struct {
	state State    // nil: nothing is kept
	open  sync.Map // by request key, a chan struct{} that is closed when the running call ends
}

// unary is a grpc.UnaryServerInterceptor. It runs after the authorizer's.
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
	r := &outcome.Request{Done: outcome.Done{Key: authz.CallerFromContext(ctx).Name + " " + id[0], Digest: digest}}
	end, err := s.turn(ctx, r.Key)
	if err != nil {
		return nil, status.FromContextError(err).Err()
	}
	defer end()
	if ctx.Err() != nil { // the client may have repeated its request at another member
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if s.state == nil {
		return next(ctx, in)
	}
	d, known := s.state.Done(r.Key)
	switch {
	case known && d.Digest != digest:
		return nil, invalid(pb.RequestIDKey, "%q names another request: want an id that was not used", id[0])
	case known && len(d.Refusal) > 0:
		var refusal spb.Status
		if err := proto.Unmarshal(d.Refusal, &refusal); err != nil {
			return nil, err
		}
		return nil, status.ErrorProto(&refusal)
	case known:
		r.Earlier = &d
	}
	answer, err := next(outcome.WithRequest(ctx, r), in)
	if !known && refuses(err) {
		if kept := s.refuse(r.Done, err); kept != nil {
			return nil, toStatus(outcome.FromStore(kept))
		}
	}
	return answer, err
}

// refuses reports whether an error is a final refusal of the request.
func refuses(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.NotFound, codes.PermissionDenied, codes.FailedPrecondition, codes.ResourceExhausted:
		return !tells(err)
	}
	return false
}

// refuse records that a request was refused.
func (s *requests) refuse(d outcome.Done, err error) error {
	var text error
	if d.Refusal, text = proto.Marshal(status.Convert(err).Proto()); text != nil {
		return text
	}
	return s.state.KeepDone(d)
}

// digestOf returns a digest that differs between requests.
func digestOf(method string, in proto.Message) (string, error) {
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(in)
	sum := sha256.Sum256(append([]byte(method+"\n"), text...))
	return hex.EncodeToString(sum[:16]), err
}

// turn waits until no other call with the key is running. It returns a function to call at the end of this one.
func (s *requests) turn(ctx context.Context, key string) (end func(), err error) {
	own := make(chan struct{})
	for {
		other, busy := s.open.LoadOrStore(key, own)
		if !busy {
			return func() {
				s.open.Delete(key)
				close(own)
			}, nil
		}
		select {
		case <-other.(chan struct{}):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
