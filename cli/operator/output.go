package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/units"
)

// print writes a message in the env's format. table writes it as a table.
func (e *env) print(m proto.Message, table func(w io.Writer)) error {
	if e.Format == command.Table {
		return e.Tabs(table)
	}
	text, err := pb.JSON(m)
	if err != nil {
		return err
	}
	return e.Raw(text)
}

// show asks the controller and writes its answer in the env's format. draw writes it as a table.
func show[Q any, R proto.Message](ctx context.Context, e *env, call func(context.Context, *Q, ...grpc.CallOption) (R, error), q *Q, draw func(w io.Writer, r R)) error {
	r, err := call(ctx, q)
	if err != nil {
		return err
	}
	return e.print(r, func(w io.Writer) { draw(w, r) })
}

func (e *env) line(m proto.Message) error {
	text, err := pb.JSON(m)
	if err != nil {
		return err
	}
	return e.Line(text)
}

func row(w io.Writer, cells ...any) { command.Row(w, cells...) }

func flowText(k *pb.FlowKey) string {
	if k == nil {
		return ""
	}
	port := func(p uint32) string { return strconv.FormatUint(uint64(p), 10) }
	return net.JoinHostPort(k.GetSrcIpv4(), port(k.GetSrcPort())) + "," + net.JoinHostPort(k.GetDstIpv4(), port(k.GetDstPort()))
}

func duration(d *durationpb.Duration) units.Time { return units.FromDuration(d.AsDuration()) }

func endpoint(e *pb.Endpoint) string {
	if e.GetPort() == 0 {
		return e.GetNode()
	}
	return fmt.Sprintf("%s:%d", e.GetNode(), e.GetPort())
}

// at formats the time of a log entry, in the local time zone.
func at(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Local().Format("2006-01-02 15:04:05.000")
}

func clock(t *timestamppb.Timestamp) string {
	if t == nil {
		return "-"
	}
	return t.AsTime().Local().Format("15:04:05.000")
}

// ago formats the time since t, to the second.
func (e *env) ago(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return max(0, e.Now().Sub(t.AsTime())).Truncate(time.Second).String()
}

// ErrChanges ends a plan with changes.
var ErrChanges = errors.New("there are changes")

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
