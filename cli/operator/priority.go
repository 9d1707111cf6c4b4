package operator

import (
	"github.com/headgate/headgate/cli/command"

	"context"
	"fmt"
	"io"
	"strconv"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// getPriorities shows the delays of the virtual priorities, and the application that has each.
func getPriorities(ctx context.Context, e *env) error {
	return show(ctx, e, e.priority().ListPriorities, &pb.ListPrioritiesRequest{}, func(w io.Writer, r *pb.ListPrioritiesResponse) {
		p := r.GetPlan()
		if p == nil {
			_, _ = fmt.Fprintln(w, "the configuration has no section prioplus: there are no virtual priorities")
			return
		}
		flows := ""
		if p.GetFlows() > 0 {
			flows = fmt.Sprintf(" of %v flows", p.GetFlows())
		}
		_, _ = fmt.Fprintf(w, "base %v, fluctuation %v%s, noise %v\n\n", nanoseconds(p.GetBaseNs()), nanoseconds(p.GetFluctuationNs()), flows, nanoseconds(p.GetNoiseNs()))
		row(w, "PRIORITY", "TARGET", "LIMIT", "APPLICATION")
		for _, c := range r.GetChannels() {
			row(w, c.GetPriority(), nanoseconds(c.GetTargetNs()), nanoseconds(c.GetLimitNs()), owner(c))
		}
	})
}

func owner(c *pb.Channel) string {
	if c.GetApplication() == "" {
		return "any"
	}
	return c.GetApplication()
}

// priority parses a virtual priority. The controller checks whether it exists.
func priority(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("priority: %q is not allowed: want a number from 1 on", text)
	}
	return uint32(n), nil
}

// setPriority assigns a virtual priority to an application: the one that number names, or else the
// lowest that is free.
func setPriority(ctx context.Context, e *env, application, number string) error {
	request := &pb.AllocatePriorityRequest{Application: application}
	if number != "" {
		n, err := priority(number)
		if err != nil {
			return err
		}
		request.Priority = n
	}
	return show(ctx, e, e.priority().AllocatePriority, request, func(w io.Writer, r *pb.AllocatePriorityResponse) {
		c := r.GetChannel()
		_, _ = fmt.Fprintf(w, "application %s: priority %d, target %v, limit %v over a base of %v\n",
			command.Clean(c.GetApplication()), c.GetPriority(), nanoseconds(c.GetTargetNs()), nanoseconds(c.GetLimitNs()), nanoseconds(c.GetBaseNs()))
	})
}

// deletePriority releases the virtual priority of an application.
func deletePriority(ctx context.Context, e *env, application, number string) error {
	n, err := priority(number)
	if err != nil {
		return err
	}
	return show(ctx, e, e.priority().ReleasePriority, &pb.ReleasePriorityRequest{Application: application, Priority: n}, func(w io.Writer, r *pb.ReleasePriorityResponse) { _, _ = fmt.Fprintf(w, "priority %d: released\n", n) })
}
