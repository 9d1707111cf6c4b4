package northbound

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// durations is a grpc.UnaryServerInterceptor: it fills in both forms of durations in requests and answers.
func durations(ctx context.Context, in any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	fill(in)
	answer, err := next(ctx, in)
	if err == nil {
		fill(answer)
	}
	return answer, err
}

// durationsOfStream is a grpc.StreamServerInterceptor: it fills in both forms of durations in the messages of both
// sides.
func durationsOfStream(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	return next(srv, filled{s})
}

type filled struct{ grpc.ServerStream }

func (s filled) SendMsg(m any) error {
	fill(m)
	return s.ServerStream.SendMsg(m)
}

func (s filled) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		fill(m)
	}
	return err
}

func fill(m any) {
	if m, ok := m.(proto.Message); ok {
		pb.FillDurations(m)
	}
}
