package northbound

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/channels"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/units"
)

type channelService struct {
	pb.UnimplementedChannelServiceServer
	channels *channels.Registry
	running  context.Context
}

func (s *channelService) AllocatePriority(_ context.Context, r *pb.AllocatePriorityRequest) (*pb.AllocatePriorityResponse, error) {
	number, err := priorityFromProto(r.GetPriority(), 0)
	if err != nil {
		return nil, err
	}
	p, err := s.channels.Allocate(r.GetApplication(), number)
	if err != nil {
		return nil, channelStatus(err)
	}
	plan, _ := s.channels.Plan()
	return &pb.AllocatePriorityResponse{Channel: channelToProto(p, plan.Base)}, nil
}

func (s *channelService) ReleasePriority(_ context.Context, r *pb.ReleasePriorityRequest) (*pb.ReleasePriorityResponse, error) {
	number, err := priorityFromProto(r.GetPriority(), 1)
	if err != nil {
		return nil, err
	}
	if err := s.channels.Release(r.GetApplication(), number); err != nil {
		return nil, channelStatus(err)
	}
	return &pb.ReleasePriorityResponse{}, nil
}

// priorityFromProto refuses numbers that no plan can have.
func priorityFromProto(n uint32, least int) (int, error) {
	if n > channel.MaxPriority || int(n) < least {
		return 0, channelStatus(&channels.RangeError{Number: int(n), Priorities: channel.MaxPriority})
	}
	return int(n), nil
}

func (s *channelService) ListChannels(context.Context, *pb.ListChannelsRequest) (*pb.ListChannelsResponse, error) {
	out, _ := s.list()
	return out, nil
}

func (s *channelService) WatchChannels(_ *pb.WatchChannelsRequest, stream grpc.ServerStreamingServer[pb.ListChannelsResponse]) error {
	ctx, cancel := until(stream.Context(), s.running)
	defer cancel()
	for {
		list, changed := s.list()
		if err := stream.Send(list); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return streamEnd(ctx, ctx.Err())
		}
	}
}

// list returns what there is, and a channel that is closed when there is something new.
func (s *channelService) list() (*pb.ListChannelsResponse, <-chan struct{}) {
	all, changed := s.channels.List()
	out := &pb.ListChannelsResponse{}
	plan, ok := s.channels.Plan()
	if !ok {
		return out, changed
	}
	out.Plan = &pb.ChannelPlan{
		BaseNs: nanos(plan.Base), FluctuationNs: nanos(plan.Fluctuation), NoiseNs: nanos(plan.Noise),
		Flows: plan.Flows, Priorities: uint32(plan.Priorities),
	}
	for _, p := range all {
		out.Channels = append(out.Channels, channelToProto(p, plan.Base))
	}
	return out, changed
}

func channelToProto(p channels.Priority, base units.Time) *pb.Channel {
	return &pb.Channel{
		Priority: uint32(p.Number), Application: clean(p.Application),
		TargetNs: nanos(p.Channel.Target), LimitNs: nanos(p.Channel.Limit), BaseNs: nanos(base),
	}
}

func nanos(t units.Time) uint64 { return uint64(t / units.Nanosecond) }

// channelStatus gives an error of the registry of channels its status code.
func channelStatus(err error) error {
	var out *channels.RangeError
	var taken *channels.TakenError
	switch {
	case errors.As(err, &out):
		return violations(err.Error(), violation("priority", strings.TrimPrefix(err.Error(), "priority ")))
	case errors.As(err, &taken):
		return detailed(codes.FailedPrecondition, err.Error(), &errdetails.PreconditionFailure{
			Violations: []*errdetails.PreconditionFailure_Violation{{Type: "PRIORITY", Subject: "application/" + clean(taken.Owner), Description: clean(err.Error())}},
		})
	case errors.Is(err, channels.ErrNoPlan):
		return status.Error(codes.FailedPrecondition, err.Error())
	case errors.Is(err, channels.ErrFull):
		return status.Error(codes.ResourceExhausted, err.Error())
	case errors.Is(err, channels.ErrFree):
		return status.Error(codes.NotFound, err.Error())
	}
	return toStatus(err)
}

// giveChannels sends the channels of the flows that have not the one that their virtual
// priority has now, and once for each reason why a flow gets none.
func (a *attached) giveChannels() error {
	a.changed = a.service.channels.Changed() // what comes later is for the next time
	refused := map[string]string{}
	for _, f := range a.flows {
		if f.GetVirtualPriority() == 0 {
			continue
		}
		answer := &pb.FlowChannel{Flow: f.GetFlow()}
		c, base, err := a.service.channels.Channel(f.GetApplication(), int(min(f.GetVirtualPriority(), channel.MaxPriority+1)))
		if err != nil {
			name := keyText(f.GetFlow())
			answer.Refused = clean(err.Error())
			refused[name] = answer.Refused
			if a.refused[name] == answer.Refused {
				continue
			}
		} else {
			answer.Channel = channelToProto(channels.Priority{Number: int(f.GetVirtualPriority()), Channel: c}, base)
			if proto.Equal(answer.Channel, f.GetChannel()) {
				continue
			}
		}
		if err := a.stream.Send(&pb.HostCommand{Channel: answer}); err != nil {
			return err
		}
	}
	a.refused = refused
	return nil
}
