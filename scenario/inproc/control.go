package inproc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/daemon"
)

// ReadyWithin bounds how long the controller may take to bring up the fabric.
const ReadyWithin = 60 * time.Second

// Control is a fabric that runs in real time with its controller.
type Control struct {
	Conn      *grpc.ClientConn // to the controller's API
	Admin     pb.FabricServiceClient
	Telemetry *Telemetry
}

// Start runs the loop and the controller on group until ctx ends, which is then no error.
// The switches are served already. The caller closes Conn.
func (f *Fabric) Start(ctx context.Context, group *errgroup.Group) (*Control, error) {
	conn, err := grpc.NewClient(f.cfg.Controller.Listen, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	if err != nil {
		return nil, err
	}
	c := &Control{Conn: conn, Admin: pb.NewFabricServiceClient(conn), Telemetry: newTelemetry()}
	group.Go(func() error { return IgnoreCancel(ctx, f.Loop.RunReal(ctx)) })
	group.Go(func() error {
		return IgnoreCancel(ctx, daemon.Run(ctx, daemon.Options{Config: f.cfg, Log: f.opts.Log}))
	})
	group.Go(func() error { return c.Telemetry.follow(ctx, c.Admin) })
	return c, nil
}

// IgnoreCancel tells an error from the end that was asked for.
func IgnoreCancel(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// WaitReady returns when the controller holds every switch ready, or with the reason when
// ReadyWithin has passed; parent's error when that ends before.
func (c *Control) WaitReady(parent context.Context) error {
	ctx, cancel := context.WithTimeout(parent, ReadyWithin)
	defer cancel()
	for {
		var waiting string
		list, err := c.Admin.ListSwitches(ctx, &pb.ListSwitchesRequest{}, grpc.WaitForReady(true))
		if err != nil {
			waiting = err.Error()
		}
		for _, sw := range list.GetSwitches() {
			if sw.State != pb.SwitchStatus_STATE_READY {
				waiting = fmt.Sprintf("%s is %v: %s", sw.Name, sw.State, sw.Error)
			}
		}
		if err == nil && waiting == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			if err := parent.Err(); err != nil {
				return err
			}
			return fmt.Errorf("switches not ready: %s", waiting)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
