package network

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/daemon"
)

// ReadyWithin bounds how long the controller may take to bring up the fabric.
const ReadyWithin = 60 * time.Second

// Control is a fabric that runs in real time with its controller.
type Control struct {
	Conn    *grpc.ClientConn // connection to the controller's API
	Admin   pb.FabricServiceClient
	Hosts   pb.HostServiceClient
	Weights pb.WeightServiceClient

	switches []string
}

// Start runs the loop and the controller on group until ctx ends, which is then no error.
// The switches are served already. The caller closes Conn.
func (f *Fabric) Start(ctx context.Context, group *errgroup.Group) (*Control, error) {
	conn, err := grpc.NewClient(f.cfg.Controller.Listen, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	if err != nil {
		return nil, err
	}
	c := &Control{Conn: conn, Admin: pb.NewFabricServiceClient(conn), Hosts: pb.NewHostServiceClient(conn), Weights: pb.NewWeightServiceClient(conn)}
	for _, s := range f.cfg.Switches {
		c.switches = append(c.switches, s.Name)
	}
	group.Go(func() error { return IgnoreCancel(ctx, f.Loop.RunReal(ctx)) })
	group.Go(func() error {
		return IgnoreCancel(ctx, daemon.Run(ctx, daemon.Options{Config: f.cfg, Loopback: authz.Admin, Log: f.opts.Log}))
	})
	return c, nil
}

// IgnoreCancel returns nil if ctx has ended and err is the error of ctx. It returns all other errors unchanged.
func IgnoreCancel(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// WaitReady waits until the controller reports every switch of the fabric as ready, with its program and entries.
// After ReadyWithin it returns an error with the reason.
func (c *Control) WaitReady(ctx context.Context) error {
	waiting, err := c.Poll(ctx, ReadyWithin, func(list []*pb.SwitchStatus) string { return notReady(c.switches, list) })
	if err == nil && waiting != "" {
		err = fmt.Errorf("switches not ready: %s", waiting)
	}
	return err
}

// Poll asks the controller for its switches until waiting returns "". After within it returns the last
// result of waiting. It ends with ctx's error.
func (c *Control) Poll(ctx context.Context, within time.Duration, waiting func([]*pb.SwitchStatus) string) (string, error) {
	limit, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		list, err := c.Admin.ListSwitches(limit, &pb.ListSwitchesRequest{}, grpc.WaitForReady(true))
		what := ""
		if err != nil {
			what = err.Error()
		} else if what = waiting(list.Switches); what == "" {
			return "", nil
		}
		select {
		case <-limit.Done():
			return what, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// notReady says which switch is not ready, or returns "" if all are. A switch that the controller does not list is
// not ready, because the controller serves its API before it has applied its file.
func notReady(names []string, list []*pb.SwitchStatus) string {
	for _, name := range names {
		i := slices.IndexFunc(list, func(s *pb.SwitchStatus) bool { return s.Name == name })
		switch {
		case i < 0:
			return name + " is not known to the controller yet"
		case list[i].State != pb.SwitchStatus_STATE_READY:
			return fmt.Sprintf("%s is %s: %s", name, StateName(list[i].State), list[i].Error)
		case list[i].Entries == 0:
			return name + " holds no entries"
		}
	}
	return ""
}

// StateName is a state in lower case, without its prefix.
func StateName(s pb.SwitchStatus_State) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "STATE_"))
}
