package daemon

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
)

// TestRequestsOutliveAController: after a restart, a repeated change with the same id gets its first answer and is not
// made again.
func TestRequestsOutliveAController(t *testing.T) {
	text, _ := lonely(t, freePort(t), 10)
	text = strings.Replace(text, "controller: {", fmt.Sprintf("controller: {state: %q, ", filepath.Join(t.TempDir(), "state.db")), 1)
	cfg, err := config.Parse("lonely.yaml", []byte(text), nil, controller.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	calls := []struct {
		name string
		call func(context.Context, pb.FabricServiceClient) (proto.Message, error)
	}{
		{"apply", func(ctx context.Context, c pb.FabricServiceClient) (proto.Message, error) {
			r, err := c.ApplyConfig(ctx, &pb.ApplyConfigRequest{Config: text, File: "lonely.yaml", Confirm: durationpb.New(time.Hour)})
			if r != nil {
				r.Switches = nil // they report the present state
			}
			return r, err
		}},
		{"confirm", func(ctx context.Context, c pb.FabricServiceClient) (proto.Message, error) {
			return c.ConfirmConfig(ctx, &pb.ConfirmConfigRequest{})
		}},
		{"link", func(ctx context.Context, c pb.FabricServiceClient) (proto.Message, error) {
			return c.SetLink(ctx, &pb.SetLinkRequest{A: "s1", B: "h1"})
		}},
	}
	first := map[string]proto.Message{}
	ask := func(when string, conn *grpc.ClientConn) {
		t.Helper()
		for _, c := range calls {
			answer, err := c.call(metadata.AppendToOutgoingContext(t.Context(), pb.RequestIDKey, c.name), pb.NewFabricServiceClient(conn))
			if err != nil || first[c.name] != nil && !proto.Equal(answer, first[c.name]) {
				t.Errorf("%s, %s: %v, %v; it was %v", when, c.name, answer, err, first[c.name])
			}
			first[c.name] = answer
		}
	}
	lines := func(conn *grpc.ClientConn) int {
		t.Helper()
		l, err := pb.NewWeightServiceClient(conn).ListAudit(t.Context(), &pb.ListAuditRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return len(l.GetEntries())
	}
	conn, stop := serve(t, Options{Config: cfg})
	ask("at first", conn)
	before := lines(conn)
	ask("again", conn)
	if got := lines(conn); got != before {
		t.Errorf("the audit log has %d lines more", got-before)
	}
	if _, err := pb.NewFabricServiceClient(conn).SetLink(t.Context(), &pb.SetLinkRequest{A: "s1", B: "h1", Up: true}); err != nil {
		t.Fatal(err)
	}
	stop()
	conn, _ = serve(t, Options{Config: cfg})
	ask("after a restart", conn)
	f, err := pb.NewFabricServiceClient(conn).GetFabric(t.Context(), &pb.GetFabricRequest{})
	if err != nil || f.GetLinks()[0].GetState() == pb.PortStatus_STATE_DOWN {
		t.Errorf("the link was taken out of service again: %v, %v", f.GetLinks(), err)
	}
	if _, err := pb.NewFabricServiceClient(conn).ConfirmConfig(metadata.AppendToOutgoingContext(t.Context(), pb.RequestIDKey, "link"), &pb.ConfirmConfigRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("another request with that id: %v", err)
	}
}
