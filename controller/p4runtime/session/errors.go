package session

import (
	"fmt"
	"strings"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// UpdateError is one update that a switch refused.
type UpdateError struct {
	Update  *p4v1.Update
	Code    codes.Code
	Message string
}

// WriteError is a write of which some updates were refused; all others were done.
type WriteError struct {
	Failed []UpdateError
	Total  int
}

// Error prints the count and the first few refusals.
func (e *WriteError) Error() string {
	const most = 3
	var b strings.Builder
	fmt.Fprintf(&b, "the switch refused %d of %d updates: ", len(e.Failed), e.Total)
	for i, f := range e.Failed {
		if i == most {
			fmt.Fprintf(&b, "; and %d more", len(e.Failed)-most)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%v %v: %v", f.Update.GetType(), f.Code, f.Message)
	}
	return b.String()
}

// plainError shows a gRPC error as what people want to read of it: the message, without
// the frames that gRPC and its transport put around it.
type plainError struct{ err error }

// plain returns err in that form; other errors as they are.
func plain(err error) error {
	if _, ok := status.FromError(err); err == nil || !ok {
		return err
	}
	return plainError{err}
}

// Error implements error.
func (e plainError) Error() string {
	text := status.Convert(e.err).Message()
	if inner, ok := strings.CutPrefix(text, `connection error: desc = "`); ok {
		text = strings.TrimPrefix(strings.TrimSuffix(inner, `"`), "transport: ")
	}
	return text
}

// Unwrap returns the gRPC error.
func (e plainError) Unwrap() error { return e.err }

// Unimplemented reports whether a switch said that it does not know a call.
func Unimplemented(err error) bool { return isCode(err, codes.Unimplemented) }

// readError returns a failed Read's own status. The specification has it in a detail, one
// for each request, behind the code UNKNOWN; where several requests failed it is the first
// one's.
func readError(err error) error {
	st, ok := status.FromError(err)
	if !ok || st.Code() != codes.Unknown {
		return err
	}
	for _, d := range st.Details() {
		if e, ok := d.(*p4v1.Error); ok && codes.Code(uint32(e.GetCanonicalCode())) != codes.OK {
			return status.Error(codes.Code(uint32(e.GetCanonicalCode())), e.GetMessage())
		}
	}
	return err
}

// updateErrors reads the details of a failed Write: one p4.v1.Error for each update, in
// order, those with code OK succeeded (specification, "Write RPC error reporting"). It
// reports false when the whole write failed instead.
func updateErrors(err error, batch []*p4v1.Update) ([]UpdateError, bool) {
	st, ok := status.FromError(err)
	if !ok || len(st.Details()) != len(batch) {
		return nil, false
	}
	var list []UpdateError
	for i, d := range st.Details() {
		e, ok := d.(*p4v1.Error)
		if !ok {
			return nil, false
		}
		if code := codes.Code(uint32(e.GetCanonicalCode())); code != codes.OK {
			list = append(list, UpdateError{Update: batch[i], Code: code, Message: e.GetMessage()})
		}
	}
	return list, len(list) > 0
}
