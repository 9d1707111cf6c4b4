package operator

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// ErrChanges ends a plan with changes.
var ErrChanges = errors.New("there are changes")

// callError is an error of a call with the server that was called.
type callError struct {
	server string
	err    error
}

func (e *callError) Error() string { return strings.Join(explain(e.server, e.err), "\n") }
func (e *callError) Unwrap() error { return e.err }

// explain turns an error into lines, one for each fault.
func explain(server string, err error) []string {
	s, ok := status.FromError(err)
	if !ok {
		return []string{err.Error()}
	}
	var lines []string
	for _, d := range s.Details() {
		if f, ok := d.(*pb.ConfigFaults); ok { // more detailed than the BadRequest next to it
			lines = nil
			for _, f := range f.GetFaults() {
				lines = append(lines, place(f))
			}
			break
		}
		if b, ok := d.(*errdetails.BadRequest); ok {
			for _, v := range b.GetFieldViolations() {
				lines = append(lines, v.GetField()+": "+v.GetDescription())
			}
		}
	}
	if len(lines) > 0 {
		return lines
	}
	switch s.Code() {
	case codes.Unavailable:
		if strings.HasPrefix(s.Message(), "outcome unknown") {
			return []string{s.Message() + " (--request-id)"}
		}
		if why, ok := unreachable(s.Message()); ok {
			return []string{fmt.Sprintf("no controller answers at %s (%s): start one with `headgate run` or `headgate controller`, or name it with --server or HEADGATE_SERVER",
				server, why)}
		}
	case codes.Unimplemented:
		return []string{fmt.Sprintf("the server at %s is not a controller of this version: %s", server, s.Message())}
	case codes.DeadlineExceeded:
		return []string{fmt.Sprintf("the controller at %s did not answer in time", server)}
	}
	return []string{s.Message()}
}

// unreachable reports whether a message is gRPC's own about a failure to connect, and not an answer
// of the server. It returns the message without the address.
func unreachable(message string) (why string, ok bool) {
	if _, why, found := strings.Cut(message, "dial tcp"); found {
		_, why, _ = strings.Cut(why, ": ")
		return strings.Trim(why, `"`), true
	}
	return message, strings.HasPrefix(message, "name resolver error") || strings.HasPrefix(message, "connection error")
}

// place writes a fault as file:line: field: text.
func place(f *pb.ConfigFault) string {
	out := f.GetFile()
	if f.GetLine() > 0 {
		out = fmt.Sprintf("%s:%d", out, f.GetLine())
	}
	for _, s := range []string{f.GetField(), f.GetText()} {
		if s != "" {
			out += ": " + s
		}
	}
	return out
}
