//lint:file-ignore SA1019 clients older than P4Runtime 1.4 number their roles

package p4rt

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/headgate/headgate/softswitch/p4rt/arbitration"
	"github.com/headgate/headgate/softswitch/p4rt/entity"
	"github.com/headgate/headgate/softswitch/p4rt/wire"
)

// errorSpace is the space of p4.Error, <target>-<arch>-<vendor> as the specification requires.
const errorSpace = "softswitch-v1model-headgate"

// Write applies a batch of updates in order. If some fail, the status is UNKNOWN with one p4.Error
// per update; with ROLLBACK_ON_ERROR the whole batch is undone. DATAPLANE_ATOMIC is supported only
// for batches of one update, which are always atomic.
func (s *Server) Write(ctx context.Context, req *p4v1.WriteRequest) (*p4v1.WriteResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc, err := s.mayWrite(req.DeviceId, arbitration.Key(req.Role, req.RoleId), req.ElectionId)
	if err != nil {
		return nil, err
	}
	l := s.target
	if l == nil {
		return nil, errNoPipeline
	}
	s.finishReads()
	var failed []error
	switch req.Atomicity {
	case p4v1.WriteRequest_DATAPLANE_ATOMIC:
		if len(req.Updates) > 1 {
			return nil, status.Errorf(codes.Unimplemented, "atomicity DATAPLANE_ATOMIC is supported for batches of one update, this has %d", len(req.Updates))
		}
		fallthrough
	case p4v1.WriteRequest_CONTINUE_ON_ERROR:
		for i, u := range req.Updates {
			if err := l.apply(u, sc); err != nil {
				failed = recordError(failed, len(req.Updates), i, err)
			}
		}
	case p4v1.WriteRequest_ROLLBACK_ON_ERROR:
		failed = l.applyAll(req.Updates, sc)
	default:
		return nil, status.Errorf(codes.InvalidArgument, "atomicity is %v, allowed are CONTINUE_ON_ERROR, ROLLBACK_ON_ERROR and DATAPLANE_ATOMIC", req.Atomicity)
	}
	if failed != nil {
		s.log.Debug("write failed", "errors", failed)
		return nil, batchError("some updates failed", failed, statusLimit(ctx))
	}
	return &p4v1.WriteResponse{}, nil
}

// handleWrite is gRPC's handler of Write. It reuses the request's memory, so an interceptor must
// copy what it keeps of the request.
func (s *Server) handleWrite(_ any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
	req := wire.NewRequest()
	defer req.Release()
	if err := decode(req); err != nil {
		return nil, err
	}
	if interceptor == nil {
		return s.Write(ctx, &req.WriteRequest)
	}
	info := &grpc.UnaryServerInfo{Server: s, FullMethod: "/" + p4v1.P4Runtime_ServiceDesc.ServiceName + "/Write"}
	return interceptor(ctx, &req.WriteRequest, info, func(ctx context.Context, req any) (any, error) {
		return s.Write(ctx, req.(*p4v1.WriteRequest))
	})
}

func recordError(failed []error, n, i int, err error) []error {
	if failed == nil {
		failed = make([]error, n)
	}
	failed[i] = err
	return failed
}

func (l *live) apply(u *p4v1.Update, sc *scope) error {
	if sc != nil && !sc.allows(l.schema, entity.ObjectOf(u.GetEntity())) {
		return status.Errorf(codes.PermissionDenied, "the role's configuration does not allow to write %q", l.schema.NameOf(entity.ObjectOf(u.GetEntity())))
	}
	return l.state.Apply(u)
}

func (l *live) applyAll(updates []*p4v1.Update, sc *scope) []error {
	var undo [][]*p4v1.Update
	for i, u := range updates {
		back := l.state.Inverse(u)
		err := l.apply(u, sc)
		if err == nil {
			undo = append(undo, back)
			continue
		}
		failed := make([]error, len(updates))
		for k := range failed {
			failed[k] = status.Errorf(codes.Aborted, "rolled back as update %d failed", i)
		}
		failed[i] = err
		for k := len(undo) - 1; k >= 0; k-- {
			for _, b := range undo[k] {
				if err := l.state.Apply(b); err != nil {
					failed[k] = status.Errorf(codes.Internal, "this update could not be taken back: %v", err)
				}
			}
		}
		return failed
	}
	return nil
}

// Limits of a status in bytes. gRPC's C core, which C++ and Python use, refuses headers of more
// than 8 KiB by default, base64 included. Java has the same limit; Go's is 16 MiB.
const (
	smallStatus = 6 << 10
	largeStatus = 4 << 20
)

// statusLimit returns the bytes of status that the client of a call accepts.
func statusLimit(ctx context.Context) int {
	agent := strings.Join(metadata.ValueFromIncomingContext(ctx, "user-agent"), " ")
	if agent == "" || strings.Contains(agent, "grpc-go/") {
		return largeStatus
	}
	return smallStatus
}

// batchError returns UNKNOWN with one p4.Error per element of the batch, in order. If these exceed
// the limit, they have codes without texts. If the codes exceed it too, the status has no
// p4.Errors, and its message describes the first failures.
func batchError(msg string, errs []error, limit int) error {
	st := status.New(codes.Unknown, msg).Proto()
	for _, texts := range []bool{true, false} {
		st.Details = nil
		for _, err := range errs {
			e := &p4v1.Error{}
			if err != nil {
				e.CanonicalCode = int32(status.Code(err))
				if texts {
					e.Message, e.Space = status.Convert(err).Message(), errorSpace
				}
			}
			detail, failed := anypb.New(e)
			if failed != nil { // the message is not UTF-8, so send only the code
				detail, _ = anypb.New(&p4v1.Error{CanonicalCode: e.CanonicalCode, Space: errorSpace})
			}
			st.Details = append(st.Details, detail)
		}
		if proto.Size(st) <= limit {
			return status.ErrorProto(st)
		}
		st.Message = msg + firstErrors(errs)
	}
	st.Details = nil
	st.Message += fmt.Sprintf("; one error for each of %d updates is more than this client takes in a status: send fewer at a time", len(errs))
	return status.ErrorProto(st)
}

func firstErrors(errs []error) string {
	var b strings.Builder
	shown := 0
	for i, err := range errs {
		if err == nil {
			continue
		}
		if shown++; shown > 3 {
			b.WriteString("; …")
			break
		}
		text := status.Convert(err).Message()
		if len(text) > 200 || !utf8.ValidString(text) {
			text = strings.ToValidUTF8(text[:min(len(text), 200)], "?")
		}
		fmt.Fprintf(&b, "; update %d: %v: %s", i, status.Code(err), text)
	}
	return b.String()
}
