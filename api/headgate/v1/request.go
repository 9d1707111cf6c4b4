package headgatev1

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
)

// RequestIDKey is the key of the metadata in which a client names a change: 1 to 64 printable ASCII characters,
// which it uses for no other change. If the client repeats a request with its id, it gets the outcome of the
// first one, and nothing is done twice. A different request with a used id fails with INVALID_ARGUMENT.
const RequestIDKey = "headgate-request-id"

// changes are the methods that take a request id.
var changes = map[string]bool{
	FabricService_ApplyConfig_FullMethodName:        true,
	FabricService_ConfirmConfig_FullMethodName:      true,
	FabricService_SetLink_FullMethodName:            true,
	WeightService_SetWeight_FullMethodName:          true,
	WeightService_SetWeights_FullMethodName:         true,
	WeightService_DeleteFlow_FullMethodName:         true,
	WeightService_SetBudget_FullMethodName:          true,
	PriorityService_AllocatePriority_FullMethodName: true,
	PriorityService_ReleasePriority_FullMethodName:  true,
	StateService_ReplaceMember_FullMethodName:       true,
}

// Changes reports whether a method takes a request id.
func Changes(method string) bool { return changes[method] }

// How long AskAgain goes on, and the pauses between.
const (
	askAgainFor  = 10 * time.Second
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// AskAgain is a grpc.UnaryClientInterceptor for clients of this API. It adds a request id to each call of a method
// that makes a change, unless the context's metadata has one. When the call fails with UNAVAILABLE, so that its outcome
// is unknown, AskAgain repeats it with the same id until the outcome is known, the context ends, or 10 s have passed.
// A call that reached no controller fails at once.
func AskAgain(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if !strings.HasPrefix(method, "/headgate.v1.") {
		return invoke(ctx, method, in, out, conn, opts...)
	}
	id := ""
	if Changes(method) {
		md, _ := metadata.FromOutgoingContext(ctx)
		if given := md.Get(RequestIDKey); len(given) > 0 {
			id = given[0]
		} else {
			id = rand.Text()
			ctx = metadata.AppendToOutgoingContext(ctx, RequestIDKey, id)
		}
	}
	pause, sent := firstPause, false
	for end := time.Now().Add(askAgainFor); ; pause = min(2*pause, longestPause) {
		err := invoke(ctx, method, in, out, conn, opts...)
		if status.Code(err) != codes.Unavailable {
			return err
		}
		if sent = sent || !unreachable(err); !sent {
			return err
		}
		if time.Until(end) < pause {
			return named(id, err)
		}
		select {
		case <-ctx.Done():
			return named(id, err)
		case <-time.After(pause):
		}
	}
}

// unreachable reports whether a call was not sent because there was no connection.
func unreachable(err error) bool {
	message := status.Convert(err).Message()
	return strings.HasPrefix(message, "connection error") || strings.HasPrefix(message, "name resolver error")
}

// named is the error of a change with an id that may have been made; id is empty for a read.
func named(id string, err error) error {
	if id == "" {
		return err
	}
	s := status.Convert(err)
	again := status.New(codes.Unavailable, fmt.Sprintf("outcome unknown: ask again with the same request id, which is %s: %s", id, s.Message()))
	var details []protoadapt.MessageV1
	for _, d := range s.Details() {
		if m, ok := d.(protoadapt.MessageV1); ok {
			details = append(details, m)
		}
	}
	if with, err := again.WithDetails(details...); err == nil {
		again = with
	}
	return again.Err()
}
