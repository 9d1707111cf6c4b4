package device

import (
	"context"
	"fmt"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/session"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/p4src/ids"
)

// discover tries what can be tried and states the rest as what it is: a property of the
// configured kind of target, which P4Runtime gives no way to ask for.
func discover(ctx context.Context, c *session.Client, o Options, unreadable []string) []view.Capability {
	list := []view.Capability{version(ctx, c)}
	list = append(list, try(ctx, c, "register_read", "registers are read by poll packets", &p4v1.Entity{
		Entity: &p4v1.Entity_RegisterEntry{RegisterEntry: &p4v1.RegisterEntry{
			RegisterId: ids.RegisterLastDelay, Index: &p4v1.Index{Index: 0},
		}},
	}))
	if id, err := o.Pipeline.CounterID(ids.CounterDropsName); err == nil {
		list = append(list, try(ctx, c, "counter_read", "drops are not counted by reason", &p4v1.Entity{
			Entity: &p4v1.Entity_CounterEntry{CounterEntry: &p4v1.CounterEntry{CounterId: id, Index: &p4v1.Index{Index: 0}}},
		}))
	}
	for _, what := range unreadable {
		list = append(list, view.Capability{Name: "read", Detail: what + " cannot be read back; they are written again at every reconcile"})
	}
	return append(list, static(o.Switch)...)
}

func version(ctx context.Context, c *session.Client) view.Capability {
	v, err := c.Version(ctx)
	if err != nil {
		return view.Capability{Name: "p4runtime", Supported: true, Detail: "version unknown: " + status.Convert(err).Message()}
	}
	return view.Capability{Name: "p4runtime", Supported: true, Detail: "version " + v}
}

func try(ctx context.Context, c *session.Client, name, instead string, request *p4v1.Entity) view.Capability {
	_, err := c.Read(ctx, request)
	switch st := status.Convert(err); {
	case err == nil:
		return view.Capability{Name: name, Supported: true, Detail: "tried"}
	case st.Code() == codes.Unimplemented:
		return view.Capability{Name: name, Detail: fmt.Sprintf("%s; %s", st.Message(), instead)}
	default:
		return view.Capability{Name: name, Detail: fmt.Sprintf("failed with %v: %s; %s", st.Code(), st.Message(), instead)}
	}
}

// static lists what cannot be asked for.
func static(s config.Switch) []view.Capability {
	queues := view.Capability{
		Name: "priority_queues", Supported: s.PriorityQueues > 1,
		Detail: fmt.Sprintf("%d, as configured; P4Runtime cannot tell", s.PriorityQueues),
	}
	polls := view.Capability{Name: "polls", Supported: true, Detail: "poll packets through the highest queue"}
	if s.PriorityQueues <= ids.HighestQueue {
		polls = view.Capability{Name: "polls", Detail: fmt.Sprintf("poll packets need queue %d, the switch is configured with %d queues", ids.HighestQueue, s.PriorityQueues)}
	}
	list := []view.Capability{queues, polls}
	list = append(list, pfc(s))
	switch s.Target {
	case config.BMv2:
		list = append(list,
			view.Capability{Name: "queue_rate", Detail: "only through the target's Thrift service, which the controller does not use"},
			view.Capability{Name: "obey_pfc", Detail: "simple_switch ignores the PAUSE frames it receives; hosts obey theirs"},
		)
	case config.Embedded:
		list = append(list,
			view.Capability{Name: "queue_rate", Detail: "set by the flags of headgate switch, not through P4Runtime"},
			view.Capability{Name: "obey_pfc", Supported: true, Detail: "when started with --pfc; P4Runtime cannot tell"},
		)
	case config.Tofino:
		list = append(list, view.Capability{Name: "queue_rate", Detail: "set in the switch's own configuration, not through P4Runtime"})
	}
	return list
}

// pfc says whether the switch can have a buffer policy; see config.Buffer.
func pfc(s config.Switch) view.Capability {
	const name = "send_pfc"
	switch {
	case s.Target == config.Tofino:
		return view.Capability{Name: name, Detail: "Headgate's pipeline for tofino generates no PFC frames; buffer.policy must be off"}
	case s.PriorityQueues <= ids.HighestQueue:
		return view.Capability{Name: name, Detail: fmt.Sprintf("PFC frames need queue %d, the switch is configured with %d queues; buffer.policy must be off", ids.HighestQueue, s.PriorityQueues)}
	case s.Target == config.BMv2:
		return view.Capability{Name: name, Supported: true, Detail: "from queue 0 of the port, since PI takes no class of service of clones: PAUSEs wait behind what is there"}
	}
	return view.Capability{Name: name, Supported: true, Detail: fmt.Sprintf("by the pipeline, through queue %d", ids.HighestQueue)}
}
