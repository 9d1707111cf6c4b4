package northbound

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/priority"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/serving/events"
	"github.com/headgate/headgate/controller/state/history"
	"github.com/headgate/headgate/controller/state/outcome"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/internal/yamlnode"
)

// tells reports whether an error states the outcome of a change: unknown, or not made.
func tells(err error) bool {
	reason, _ := pb.Reason(err)
	return reason == pb.ReasonOutcomeUnknown || reason == pb.ReasonNotMade
}

// sentinels are errors of the core that need no details.
var sentinels = []struct {
	err    error
	code   codes.Code
	reason string
}{
	{outcome.ErrUnknown, codes.Unavailable, pb.ReasonOutcomeUnknown},
	{weights.ErrUnknownFlow, codes.NotFound, pb.ReasonFlowNotFound},
	{weights.ErrFull, codes.ResourceExhausted, pb.ReasonTooManyFlows},
	{topology.ErrNoLink, codes.NotFound, pb.ReasonLinkNotFound},
	{history.ErrConfirmed, codes.FailedPrecondition, pb.ReasonNothingToConfirm},
	{priority.ErrNoPlan, codes.FailedPrecondition, pb.ReasonNoPriorities},
	{priority.ErrFull, codes.ResourceExhausted, pb.ReasonPrioritiesUsedUp},
	{priority.ErrFree, codes.NotFound, pb.ReasonPriorityNotTaken},
}

// toStatus gives an error of the core its status code. An error that already has a status code keeps it.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	var invalid *weights.InvalidError
	var budget *weights.BudgetError
	var unknown *weights.UnknownApplicationError
	var kept *outcome.NotMadeError
	var foreign *weights.ForeignError
	var generation *history.GenerationError
	var number *priority.RangeError
	var taken *priority.TakenError
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return refused(s.code, s.reason, err, nil)
		}
	}
	switch {
	case errors.As(err, &kept):
		code := codes.Internal
		switch {
		case errors.Is(err, outcome.ErrNotLeader):
			code = codes.Unavailable
		case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
			code = codes.ResourceExhausted
		}
		return refused(code, pb.ReasonNotMade, err, nil)
	case errors.As(err, &invalid):
		field := invalid.Field
		switch field {
		case "src_ipv4", "dst_ipv4", "src_port", "dst_port":
			field = "flow." + field
		}
		return violations(err.Error(), violation(field, fmt.Sprintf("%s is not allowed: want %s", invalid.Value, invalid.Allowed)))
	case errors.As(err, &budget):
		return precondition("BUDGET", pb.ReasonBudgetExceeded, budget.Application, err)
	case errors.As(err, &unknown):
		return precondition("BUDGET", pb.ReasonApplicationUnknown, unknown.Application, err)
	case errors.As(err, &number):
		return violations(err.Error(), violation("priority", strings.TrimPrefix(err.Error(), "priority ")))
	case errors.As(err, &taken):
		return precondition("PRIORITY", pb.ReasonPriorityTaken, taken.Owner, err)
	case errors.As(err, &foreign):
		return refused(codes.PermissionDenied, pb.ReasonFlowForeign, err, map[string]string{"application": clean(foreign.Owner)})
	case errors.As(err, &generation):
		return refused(codes.FailedPrecondition, pb.ReasonGenerationChanged, err, map[string]string{"generation": strconv.FormatUint(generation.Is, 10)})
	case errors.Is(err, events.ErrClosed):
		return errStopping
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	}
	if s, ok := status.FromError(err); ok {
		return s.Err()
	}
	return status.Error(codes.Internal, clean(err.Error()))
}

// configStatus is toStatus for an error of Plan or Apply: faults become field violations.
func configStatus(file string, err error) error {
	var faulty *yamlnode.Error
	if !errors.As(err, &faulty) {
		return toStatus(err)
	}
	bad, where := &errdetails.BadRequest{}, &pb.ConfigFaults{}
	var first string
	for i, f := range faulty.Faults {
		field, text := clean(f.Field), clean(f.Text)
		place := clean(file)
		if f.Line > 0 {
			place = fmt.Sprintf("%s:%d", place, f.Line)
		}
		if i == 0 {
			first = join(place, field, text)
		}
		bad.FieldViolations = append(bad.FieldViolations, violation(field, join(place, text)))
		where.Faults = append(where.Faults, &pb.ConfigFault{File: clean(file), Line: uint32(max(f.Line, 0)), Field: field, Text: text})
	}
	message := first
	switch n := len(where.Faults); n {
	case 0:
		message = clean(err.Error())
	case 1:
	default:
		message = fmt.Sprintf("%s (and %d more)", first, n-1)
	}
	return refused(codes.InvalidArgument, pb.ReasonInvalidField, errors.New(message), nil, bad, where)
}

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ": ")
}

func violation(field, description string) *errdetails.BadRequest_FieldViolation {
	return &errdetails.BadRequest_FieldViolation{Field: clean(field), Description: clean(description)}
}

// invalid refuses the value of a field.
func invalid(field, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	return violations(field+": "+text, violation(field, text))
}

func violations(message string, v ...*errdetails.BadRequest_FieldViolation) error {
	return refused(codes.InvalidArgument, pb.ReasonInvalidField, errors.New(message), nil, &errdetails.BadRequest{FieldViolations: v})
}

// precondition returns a FAILED_PRECONDITION status about an application.
func precondition(kind, reason, application string, err error) error {
	return refused(codes.FailedPrecondition, reason, err, map[string]string{"application": clean(application)}, &errdetails.PreconditionFailure{
		Violations: []*errdetails.PreconditionFailure_Violation{{
			Type: kind, Subject: "application/" + clean(application), Description: clean(err.Error()),
		}},
	})
}

// refused returns a status with details and a google.rpc.ErrorInfo.
func refused(c codes.Code, reason string, err error, metadata map[string]string, details ...protoadapt.MessageV1) error {
	s := status.New(c, clean(err.Error()))
	with, failed := s.WithDetails(append(details, &errdetails.ErrorInfo{Domain: pb.ReasonDomain, Reason: reason, Metadata: metadata})...)
	if failed != nil { // only for code OK, or for a detail that cannot be encoded
		return s.Err()
	}
	return with.Err()
}

// reasons are the default reasons of status codes, for errors that have no reason of their own.
var reasons = map[codes.Code]string{
	codes.Unavailable: pb.ReasonTryAgain, codes.Aborted: pb.ReasonSuperseded, codes.ResourceExhausted: pb.ReasonLimitReached,
	codes.FailedPrecondition: pb.ReasonNotPossible,
	codes.Internal:           pb.ReasonInternal, codes.Unknown: pb.ReasonInternal, codes.DataLoss: pb.ReasonInternal,
}

// explained adds the default reason of its code to an error without a reason.
func explained(err error) error {
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	reason := reasons[s.Code()]
	if had, _ := pb.Reason(err); err == nil || reason == "" || had != "" {
		return err
	}
	with, failed := s.WithDetails(&errdetails.ErrorInfo{Domain: pb.ReasonDomain, Reason: reason})
	if failed != nil {
		return err
	}
	return with.Err()
}

// explainedCall is a grpc.UnaryServerInterceptor.
func explainedCall(ctx context.Context, r any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	answer, err := handler(ctx, r)
	return answer, explained(err)
}

// explainedStream is a grpc.StreamServerInterceptor.
func explainedStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return explained(handler(srv, stream))
}

// clean replaces invalid UTF-8, because a protobuf string must be UTF-8.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
