package operator

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/controller/allocation/weights"
)

// newSetCommand is "set" and its subcommands. They change state that the controller keeps in
// addition to the configuration.
func newSetCommand() *cobra.Command {
	var flow, app string
	weight := askWith("weight --flow SRC:SPORT,DST:DPORT [--app APP] VALUE", "Set the weight of a flow, within its application's budget", cobra.ExactArgs(1), func(ctx context.Context, e *env, args []string) error {
		return setWeight(ctx, e, flow, app, args[0])
	})
	flowFlag(weight, &flow)
	weight.Flags().StringVar(&app, "app", "", "`application` whose budget the weight counts against; empty keeps the flow's")
	completeFlag(weight, "app", applicationNames)
	weight.SetFlagErrorFunc(refuseNegative("weight"))
	budget := askWith("budget APP LIMIT", "Set the largest sum of weights of an application; 0 for no limit", cobra.ExactArgs(2), func(ctx context.Context, e *env, args []string) error {
		return setBudget(ctx, e, args[0], args[1])
	})
	arguments(budget, applicationNames)
	budget.SetFlagErrorFunc(refuseNegative("limit"))
	priority := askWith("priority APP [PRIORITY]", "Give an application a virtual priority of PrioPlus, the lowest that is free or the one named", cobra.RangeArgs(1, 2), func(ctx context.Context, e *env, args []string) error {
		number := append(args, "")[1]
		return setPriority(ctx, e, args[0], number)
	})
	link := askWith("link A B up|down", "Use the link between two nodes, or route around it", cobra.ExactArgs(3), func(ctx context.Context, e *env, args []string) error {
		return setLink(ctx, e, args[0], args[1], args[2])
	})
	cmd := &cobra.Command{Use: "set", Short: "Set a flow's weight, an application's budget or priority, or a link's state"}
	command.AddOutputFlag(cmd)
	return command.OneOf(cmd, weight, budget, arguments(priority, applicationNames, priorityNumbers), arguments(link, nodeNames, neighbours, fixed("up", "down")))
}

func newDeleteCommand() *cobra.Command {
	var flow string
	weight := ask("weight --flow SRC:SPORT,DST:DPORT", "Forget a flow and give its weight back to the budget", func(ctx context.Context, e *env) error {
		return deleteWeight(ctx, e, flow)
	})
	flowFlag(weight, &flow)
	priority := askWith("priority APP PRIORITY", "Take a virtual priority from an application", cobra.ExactArgs(2), func(ctx context.Context, e *env, args []string) error {
		return deletePriority(ctx, e, args[0], args[1])
	})
	cmd := &cobra.Command{Use: "delete", Short: "Delete a flow's weight, or take a priority from an application"}
	command.AddOutputFlag(cmd)
	return command.OneOf(cmd, weight, arguments(priority, applicationNames, priorityNumbers))
}

func flowFlag(cmd *cobra.Command, flow *string) {
	cmd.Flags().StringVar(flow, "flow", "", "`flow` as SRC:SPORT,DST:DPORT, such as 10.0.0.1:1001,10.0.0.2:50151")
	command.Require(cmd, "flow")
	completeFlag(cmd, "flow", flowKeys)
}

func setLink(ctx context.Context, e *env, a, b, state string) error {
	if state != "up" && state != "down" {
		return fmt.Errorf("link state: %q is not allowed: want up or down", state)
	}
	return show(ctx, e, e.fabric().SetLink, &pb.SetLinkRequest{A: a, B: b, Up: state == "up"}, func(w io.Writer, r *pb.SetLinkResponse) {
		_, _ = fmt.Fprintf(w, "link %s %s is %s\n", command.Clean(a), command.Clean(b), state)
	})
}

func parseFlow(text string) (*pb.FlowKey, error) {
	k, err := weights.ParseKey(text)
	if err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	return &pb.FlowKey{
		SrcIpv4: k.Src().Addr().String(), SrcPort: uint32(k.Src().Port()), DstIpv4: k.Dst().Addr().String(), DstPort: uint32(k.Dst().Port()),
	}, nil
}

// number parses a number. The controller checks its range, so that its audit log shows the attempt.
func number(field, text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is not allowed: want a finite number such as 1.5", field, text)
	}
	return v, nil
}

// setWeight sets the weight of a flow. With an empty application the flow keeps its application.
func setWeight(ctx context.Context, e *env, flow, application, value string) error {
	key, err := parseFlow(flow)
	if err != nil {
		return err
	}
	v, err := number("weight", value)
	if err != nil {
		return err
	}
	return show(ctx, e, e.weight().SetWeight, &pb.SetWeightRequest{Flow: key, Weight: v, Application: application}, func(w io.Writer, r *pb.SetWeightResponse) {
		if r.GetPrevious() == 0 {
			_, _ = fmt.Fprintf(w, "%s: weight %v (new)\n", flowText(key), r.GetWeight())
			return
		}
		_, _ = fmt.Fprintf(w, "%s: weight %v (was %v)\n", flowText(key), r.GetWeight(), r.GetPrevious())
	})
}

func deleteWeight(ctx context.Context, e *env, flow string) error {
	key, err := parseFlow(flow)
	if err != nil {
		return err
	}
	return show(ctx, e, e.weight().DeleteFlow, &pb.DeleteFlowRequest{Flow: key}, func(w io.Writer, r *pb.DeleteFlowResponse) { _, _ = fmt.Fprintf(w, "%s: deleted\n", flowText(key)) })
}

func setBudget(ctx context.Context, e *env, application, value string) error {
	v, err := number("limit", value)
	if err != nil {
		return err
	}
	return show(ctx, e, e.weight().SetBudget, &pb.SetBudgetRequest{Application: application, Limit: v}, func(w io.Writer, r *pb.SetBudgetResponse) {
		_, _ = fmt.Fprintf(w, "application %s: budget %s\n", command.Clean(application), limit(v))
	})
}

var negative = regexp.MustCompile(`in (-[0-9.]\S*)$`)

// refuseNegative explains that a number is negative. Otherwise the error would be about an unknown
// flag.
func refuseNegative(field string) func(*cobra.Command, error) error {
	return func(_ *cobra.Command, err error) error {
		if m := negative.FindStringSubmatch(err.Error()); m != nil {
			return fmt.Errorf("%s: %s is not allowed: want a finite number above zero", field, m[1])
		}
		return err
	}
}

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
		_, _ = fmt.Fprintf(w, "base %v, fluctuation %v%s, noise %v\n\n", duration(p.GetBase()), duration(p.GetFluctuation()), flows, duration(p.GetNoise()))
		row(w, "PRIORITY", "TARGET", "LIMIT", "APPLICATION")
		for _, c := range r.GetChannels() {
			row(w, c.GetPriority(), duration(c.GetTarget()), duration(c.GetLimit()), cmp.Or(c.GetApplication(), "any"))
		}
	})
}

// priority parses a virtual priority. The controller checks whether it exists.
func priority(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("priority: %q is not allowed: want a number from 1 on", text)
	}
	return uint32(n), nil
}

// setPriority assigns a virtual priority to an application: priority number, or the lowest free one if number is "".
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
			command.Clean(c.GetApplication()), c.GetPriority(), duration(c.GetTarget()), duration(c.GetLimit()), duration(c.GetBase()))
	})
}

func deletePriority(ctx context.Context, e *env, application, number string) error {
	n, err := priority(number)
	if err != nil {
		return err
	}
	return show(ctx, e, e.priority().ReleasePriority, &pb.ReleasePriorityRequest{Application: application, Priority: n}, func(w io.Writer, r *pb.ReleasePriorityResponse) { _, _ = fmt.Fprintf(w, "priority %d: released\n", n) })
}
