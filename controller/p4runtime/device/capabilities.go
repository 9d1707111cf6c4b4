package device

import (
	"context"
	"fmt"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/p4runtime/session"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
)

// discover returns the capabilities of a switch. It tries out what can be tried and compares
// what features need with what the program has. The rest follows from the configured kind of
// target, because P4Runtime has no request for it.
func discover(ctx context.Context, c *session.Client, o Options, unreadable []string) []*pb.Capability {
	tried := []*pb.Capability{version(ctx, c)}
	if id, err := o.Pipeline.RegisterID(ids.RegisterLastDelayName); err == nil {
		tried = append(tried, try(ctx, c, "register_read", "registers are read by poll packets", p4rtmsg.Entity(&p4v1.RegisterEntry{RegisterId: id, Index: &p4v1.Index{Index: 0}})))
	}
	if id, err := o.Pipeline.CounterID(ids.CounterDropsName); err == nil {
		tried = append(tried, try(ctx, c, "counter_read", "drops are not counted by reason", p4rtmsg.Entity(&p4v1.CounterEntry{CounterId: id, Index: &p4v1.Index{Index: 0}})))
	}
	for _, f := range o.Features {
		if f.Probes != nil {
			for _, p := range f.Probes(&o.Switch) {
				tried = append(tried, try(ctx, c, p.Name, p.Instead, p.Request))
			}
		}
	}
	for _, what := range unreadable {
		tried = append(tried, lacks("read", what+" cannot be read back; they are written again at every reconcile"))
	}
	return parts(o, tried)
}

// parts returns all capabilities: those that features use, those that were tried out, and those that follow from the
// kind of target.
func parts(o Options, tried []*pb.Capability) []*pb.Capability {
	var list []*pb.Capability
	for _, f := range o.Features {
		for _, p := range f.Capabilities {
			list = append(list, p.Status(o.Pipeline, &o.Switch))
		}
	}
	list = append(list, tried...)
	return append(list, slices.DeleteFunc(static(o.Switch), func(c *pb.Capability) bool {
		return slices.ContainsFunc(tried, func(t *pb.Capability) bool { return t.Name == c.Name })
	})...)
}

// has returns a capability that a switch has by some means.
func has(name, by, detail string) *pb.Capability {
	return &pb.Capability{Name: name, Supported: true, By: by, Detail: detail}
}

// lacks returns a capability that a switch does not have.
func lacks(name, detail string) *pb.Capability { return &pb.Capability{Name: name, Detail: detail} }

func version(ctx context.Context, c *session.Client) *pb.Capability {
	v, err := c.Version(ctx)
	if err != nil {
		return has("p4runtime", pb.ByTarget, "version unknown: "+status.Convert(err).Message())
	}
	return has("p4runtime", pb.ByTarget, "version "+v)
}

func try(ctx context.Context, c *session.Client, name, instead string, request *p4v1.Entity) *pb.Capability {
	_, err := c.Read(ctx, request)
	switch st := status.Convert(err); {
	case err == nil:
		return has(name, pb.ByTarget, "tried")
	case st.Code() == codes.Unimplemented:
		return lacks(name, fmt.Sprintf("%s; %s", st.Message(), instead))
	default:
		return lacks(name, fmt.Sprintf("failed with %v: %s; %s", st.Code(), st.Message(), instead))
	}
}

// static returns the capabilities that follow from the kind of target.
func static(s config.Switch) []*pb.Capability {
	queues := has("priority_queues", pb.ByTarget, fmt.Sprintf("%d, as configured; P4Runtime cannot tell", s.PriorityQueues))
	queues.Supported = s.PriorityQueues > 1
	switch s.Target {
	case config.BMv2:
		rate := lacks("queue_rate", "only through the target's Thrift service, and thrift is not set")
		if s.Thrift != "" {
			rate = has("queue_rate", pb.ByTrafficManager, fmt.Sprintf("each queue by itself, in packets taken for %v, by Thrift at %s", s.PacketSize, s.Thrift))
		}
		return []*pb.Capability{
			queues,
			lacks("fast_failover", "simple_switch_grpc ends with SIGFPE at a packet to a group whose watched ports are all down, or seem so; the controller changes groups when probes stay away"),
			rate,
			lacks("pfc_first", "PFC frames leave by queue 0 of their port, since PI takes no class of service of clones: PAUSEs wait behind what is there"),
			lacks("obey_pfc", "simple_switch ignores the PAUSE frames it receives; hosts obey theirs"),
		}
	case config.Embedded:
		return []*pb.Capability{
			queues,
			has("fast_failover", pb.ByTarget, "next hops whose port is down are left out by the switch itself, by watch ports"),
			lacks("queue_rate", "set by the flags of headgate switch, not through P4Runtime"),
			has("pfc_first", pb.ByTarget, fmt.Sprintf("PFC frames leave by queue %d", s.PriorityQueues-1)),
			has("obey_pfc", pb.ByTarget, "when started with --pfc"),
		}
	}
	obey := lacks("obey_pfc", "bf_runtime is not set; ports obey the classes of the switch's own configuration")
	reach := lacks("traffic_manager", "bf_runtime is not set")
	if s.BFRuntime != "" {
		obey = has("obey_pfc", pb.ByTrafficManager, "for lossless classes, under a buffer policy")
		reach = has("traffic_manager", pb.ByTarget, "by BF Runtime at "+s.BFRuntime)
	}
	return []*pb.Capability{
		queues,
		lacks("fast_failover", "Stratum refuses watch ports; the controller changes groups when probes stay away"),
		lacks("queue_rate", "set in the switch's own configuration, not through P4Runtime"),
		obey, reach,
	}
}
