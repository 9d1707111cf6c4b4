package operator

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
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

// line writes one message of a stream.
func (e *env) line(m proto.Message) error {
	text, err := pb.JSON(m)
	if err != nil {
		return err
	}
	return e.Line(text)
}

// row writes the cells of one line.
func row(w io.Writer, cells ...any) { command.Row(w, cells...) }

func flowText(k *pb.FlowKey) string {
	if k == nil {
		return ""
	}
	port := func(p uint32) string { return strconv.FormatUint(uint64(p), 10) }
	return net.JoinHostPort(k.GetSrcIpv4(), port(k.GetSrcPort())) + "," + net.JoinHostPort(k.GetDstIpv4(), port(k.GetDstPort()))
}

func nanoseconds(n uint64) units.Time { return units.Time(n) * units.Nanosecond }

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
