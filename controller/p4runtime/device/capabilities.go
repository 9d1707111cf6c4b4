package device

import (
	"context"
	"fmt"
	"slices"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/session"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/p4src/ids"
)

// discover returns the capabilities of a switch. It tries out what can be tried and compares
// what features need with what the program has. The rest follows from the configured kind of
// target, because P4Runtime has no request for it.
func discover(ctx context.Context, c *session.Client, o Options, unreadable []string) []view.Capability {
	tried := []view.Capability{version(ctx, c)}
	if id, err := o.Pipeline.RegisterID(ids.RegisterLastDelayName); err == nil {
		tried = append(tried, try(ctx, c, "register_read", "registers are read by poll packets", p4msg.Of(&p4v1.RegisterEntry{RegisterId: id, Index: &p4v1.Index{Index: 0}})))
	}
	if id, err := o.Pipeline.CounterID(ids.CounterDropsName); err == nil {
		tried = append(tried, try(ctx, c, "counter_read", "drops are not counted by reason", p4msg.Of(&p4v1.CounterEntry{CounterId: id, Index: &p4v1.Index{Index: 0}})))
	}
	for _, f := range o.Features {
		if f, ok := f.(feature.Prober); ok {
			for _, p := range f.Probes(&o.Switch) {
				tried = append(tried, try(ctx, c, p.Name, p.Instead, p.Request))
			}
		}
	}
	for _, what := range unreadable {
		tried = append(tried, view.Capability{Name: "read", Detail: what + " cannot be read back; they are written again at every reconcile"})
	}
	return parts(o, tried)
}

// parts returns all capabilities: what features need, what was tried, and what the target is as far as
// that was not tried.
func parts(o Options, tried []view.Capability) []view.Capability {
	var list []view.Capability
	for _, f := range o.Features {
		for _, p := range f.Parts() {
			list = append(list, capability(p, o))
		}
	}
	list = append(list, tried...)
	return append(list, slices.DeleteFunc(static(o.Switch), func(c view.Capability) bool {
		return slices.ContainsFunc(tried, func(t view.Capability) bool { return t.Name == c.Name })
	})...)
}

func capability(p feature.Part, o Options) view.Capability {
	on := p.On(o.Pipeline, &o.Switch)
	c := view.Capability{Name: p.Name, Supported: on.Means != feature.ByNothing}
	switch on.Means {
	case feature.ByProgram:
		c.By = view.ByProgram
	case feature.ByTarget:
		c.By = view.ByTarget
	case feature.ByTrafficManager:
		c.By, c.Detail = view.ByTrafficManager, "the traffic manager "+p.TrafficManager
	default:
		c.Detail = on.Lacking
		if p.TrafficManager != "" && o.Switch.Target.Chip() != "" {
			c.Detail += ", bf_runtime is not set"
		}
		c.Detail += "; " + p.Instead
	}
	return c
}

func version(ctx context.Context, c *session.Client) view.Capability {
	v, err := c.Version(ctx)
	if err != nil {
		return view.Capability{Name: "p4runtime", Supported: true, By: view.ByTarget, Detail: "version unknown: " + status.Convert(err).Message()}
	}
	return view.Capability{Name: "p4runtime", Supported: true, By: view.ByTarget, Detail: "version " + v}
}

func try(ctx context.Context, c *session.Client, name, instead string, request *p4v1.Entity) view.Capability {
	_, err := c.Read(ctx, request)
	switch st := status.Convert(err); {
	case err == nil:
		return view.Capability{Name: name, Supported: true, By: view.ByTarget, Detail: "tried"}
	case st.Code() == codes.Unimplemented:
		return view.Capability{Name: name, Detail: fmt.Sprintf("%s; %s", st.Message(), instead)}
	default:
		return view.Capability{Name: name, Detail: fmt.Sprintf("failed with %v: %s; %s", st.Code(), st.Message(), instead)}
	}
}

// static returns the capabilities that follow from the kind of target.
func static(s config.Switch) []view.Capability {
	list := []view.Capability{{
		Name: "priority_queues", Supported: s.PriorityQueues > 1, By: view.ByTarget,
		Detail: fmt.Sprintf("%d, as configured; P4Runtime cannot tell", s.PriorityQueues),
	}}
	failover := view.Capability{Name: "fast_failover", Supported: true, By: view.ByTarget, Detail: "next hops whose port is down are left out by the switch itself, by watch ports"}
	if s.Target.Chip() != "" {
		failover = view.Capability{Name: "fast_failover", Detail: "Stratum refuses watch ports; the controller changes groups when probes stay away"}
	}
	if s.Target == config.BMv2 {
		failover = view.Capability{Name: "fast_failover", Detail: "simple_switch_grpc ends with SIGFPE at a packet to a group whose watched ports are all down, or seem so; the controller changes groups when probes stay away"}
	}
	list = append(list, failover)
	switch s.Target {
	case config.BMv2:
		rate := view.Capability{Name: "queue_rate", Detail: "only through the target's Thrift service, and thrift is not set"}
		if s.Thrift != "" {
			rate = view.Capability{Name: "queue_rate", Supported: true, By: view.ByTrafficManager, Detail: fmt.Sprintf("each queue by itself, in packets taken for %v, by Thrift at %s", s.PacketSize, s.Thrift)}
		}
		list = append(list, rate,
			view.Capability{Name: "pfc_first", Detail: "PFC frames leave by queue 0 of their port, since PI takes no class of service of clones: PAUSEs wait behind what is there"},
			view.Capability{Name: "obey_pfc", Detail: "simple_switch ignores the PAUSE frames it receives; hosts obey theirs"},
		)
	case config.Embedded:
		list = append(list,
			view.Capability{Name: "queue_rate", Detail: "set by the flags of headgate switch, not through P4Runtime"},
			view.Capability{Name: "pfc_first", Supported: true, By: view.ByTarget, Detail: fmt.Sprintf("PFC frames leave by queue %d", s.PriorityQueues-1)},
			view.Capability{Name: "obey_pfc", Supported: true, By: view.ByTarget, Detail: "when started with --pfc"},
		)
	default:
		list = append(list,
			view.Capability{Name: "queue_rate", Detail: "set in the switch's own configuration, not through P4Runtime"},
		)
		obey := view.Capability{Name: "obey_pfc", Detail: "bf_runtime is not set; ports obey what the switch's own configuration says"}
		reach := view.Capability{Name: "traffic_manager", Detail: "bf_runtime is not set"}
		if s.BFRuntime != "" {
			obey = view.Capability{Name: "obey_pfc", Supported: true, By: view.ByTrafficManager, Detail: "for lossless classes, under a buffer policy"}
			reach = view.Capability{Name: "traffic_manager", Supported: true, By: view.ByTarget, Detail: "by BF Runtime at " + s.BFRuntime}
		}
		list = append(list, obey, reach)
	}
	return list
}
