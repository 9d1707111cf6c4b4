package northbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/priority"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/state/outcome"
	"github.com/headgate/headgate/hosts/law/prioplus/channel"
	"github.com/headgate/headgate/units"
)

type priorityService struct {
	pb.UnimplementedPriorityServiceServer
	priorities *priority.Registry
	audit      *audit.Log
	running    context.Context
}

func (s *priorityService) AllocatePriority(ctx context.Context, r *pb.AllocatePriorityRequest) (*pb.AllocatePriorityResponse, error) {
	number, err := priorityFromProto(r.GetPriority(), 0)
	if err != nil {
		return nil, err
	}
	p, err := s.priorities.Allocate(outcome.RequestOf(ctx), r.GetApplication(), number)
	record(ctx, s.audit, audit.Entry{What: audit.Priority, Application: clean(r.GetApplication()), Value: float64(cmp.Or(p.Number, number)), After: clean(p.Application)}, err)
	if err != nil {
		return nil, priorityStatus(err)
	}
	plan, _ := s.priorities.Plan()
	return &pb.AllocatePriorityResponse{Channel: channelToProto(p, plan.Base)}, nil
}

func (s *priorityService) ReleasePriority(ctx context.Context, r *pb.ReleasePriorityRequest) (*pb.ReleasePriorityResponse, error) {
	number, err := priorityFromProto(r.GetPriority(), 1)
	if err != nil {
		return nil, err
	}
	err = s.priorities.Release(outcome.RequestOf(ctx), r.GetApplication(), number)
	record(ctx, s.audit, audit.Entry{What: audit.Release, Application: clean(r.GetApplication()), Value: float64(number), Before: clean(r.GetApplication())}, err)
	if err != nil {
		return nil, priorityStatus(err)
	}
	return &pb.ReleasePriorityResponse{}, nil
}

// priorityFromProto refuses numbers that no plan can have.
func priorityFromProto(n uint32, least int) (int, error) {
	if n > channel.MaxPriority || int(n) < least {
		return 0, priorityStatus(&priority.RangeError{Number: int(n), Priorities: channel.MaxPriority})
	}
	return int(n), nil
}

func (s *priorityService) ListPriorities(context.Context, *pb.ListPrioritiesRequest) (*pb.ListPrioritiesResponse, error) {
	out, _ := s.list()
	return out, nil
}

func (s *priorityService) WatchPriorities(_ *pb.WatchPrioritiesRequest, stream grpc.ServerStreamingServer[pb.ListPrioritiesResponse]) error {
	var changed <-chan struct{} // nil before the first list
	return sendEach(stream, s.running, func(ctx context.Context) (list *pb.ListPrioritiesResponse, err error) {
		if changed != nil {
			select {
			case <-changed:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		list, changed = s.list()
		return list, nil
	}, stream.Send)
}

// list returns what there is, and a channel that is closed when there is something new.
func (s *priorityService) list() (*pb.ListPrioritiesResponse, <-chan struct{}) {
	all, changed := s.priorities.List()
	out := &pb.ListPrioritiesResponse{}
	plan, ok := s.priorities.Plan()
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

func channelToProto(p priority.Priority, base units.Time) *pb.Channel {
	return &pb.Channel{
		Priority: uint32(p.Number), Application: clean(p.Application),
		TargetNs: nanos(p.Channel.Target), LimitNs: nanos(p.Channel.Limit), BaseNs: nanos(base),
	}
}

func nanos(t units.Time) uint64 { return uint64(t / units.Nanosecond) }

// priorityStatus gives an error of the registry of channels its status code.
func priorityStatus(err error) error {
	var out *priority.RangeError
	var taken *priority.TakenError
	switch {
	case errors.As(err, &out):
		return violations(err.Error(), violation("priority", strings.TrimPrefix(err.Error(), "priority ")))
	case errors.As(err, &taken):
		return precondition("PRIORITY", pb.ReasonPriorityTaken, taken.Owner, err)
	case errors.Is(err, priority.ErrNoPlan):
		return refused(codes.FailedPrecondition, pb.ReasonNoPriorities, err, nil)
	case errors.Is(err, priority.ErrFull):
		return refused(codes.ResourceExhausted, pb.ReasonPrioritiesUsedUp, err, nil)
	case errors.Is(err, priority.ErrFree):
		return refused(codes.NotFound, pb.ReasonPriorityNotTaken, err, nil)
	}
	return toStatus(err)
}

// sendChannels sends every flow whose channel is out of date its new one. The reason why flows get no
// channel is sent once for each reason.
func (a *attached) sendChannels() error {
	a.changed = a.service.priorities.Changed() // what comes later is for the next time
	refused := map[string]string{}
	for _, f := range a.flows {
		if f.GetVirtualPriority() == 0 {
			continue
		}
		answer := &pb.FlowChannel{Flow: f.GetFlow()}
		c, base, err := a.service.priorities.Channel(f.GetApplication(), int(min(f.GetVirtualPriority(), channel.MaxPriority+1)))
		if !a.by.May(f.GetApplication()) {
			err = fmt.Errorf("virtual priorities of application %q are not granted to this host", f.GetApplication())
		}
		if err != nil {
			name := keyText(f.GetFlow())
			answer.Refused = clean(err.Error())
			refused[name] = answer.Refused
			if a.refused[name] == answer.Refused {
				continue
			}
		} else {
			answer.Channel = channelToProto(priority.Priority{Number: int(f.GetVirtualPriority()), Channel: c}, base)
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
