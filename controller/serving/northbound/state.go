package northbound

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/state/outcome"
)

// State is what outlives the controller. It is safe for concurrent use.
type State interface {
	// Backup returns the state file of a controller by itself that holds what is kept.
	Backup() ([]byte, error)
	// Done returns what was done for a request, by its key.
	Done(key string) (outcome.Done, bool)
	// KeepDone keeps what came of a request that changed nothing.
	KeepDone(outcome.Done) error
}

// Members are those of the controller's cluster. It is safe for concurrent use.
type Members interface {
	// Replace lets a member with an empty disk take the place of one that is lost.
	Replace(ctx context.Context, name string) error
}

// partSize is how much of a backup is sent at once, in bytes.
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
	q := outcome.RequestOf(ctx)
	if q.Again(nil) {
		return &pb.ReplaceMemberResponse{}, nil
	}
	err := s.members.Replace(ctx, r.GetName())
	if done := q.With(nil); err == nil && done != nil {
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
