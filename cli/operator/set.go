package operator

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// newSetCommand is "set" and its subcommands. They change state that the controller keeps in
// addition to the configuration.
func newSetCommand() *cobra.Command {
	var flow, app string
	weight := askWith("weight --flow SRC:SPORT,DST:DPORT [--app APP] VALUE", "Set the weight of a flow, within its application's budget", cobra.ExactArgs(1), func(ctx context.Context, e *env, args []string) error {
		return setWeight(ctx, e, flow, app, args[0])
	})
	flowFlag(weight, &flow)
	weight.Flags().StringVar(&app, "app", "", "`application` whose budget pays; empty keeps the flow's")
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

// newDeleteCommand is "delete" and its subcommands, which undo those of "set".
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

// setLink takes the links between two nodes out of service, or back into it.
func setLink(ctx context.Context, e *env, a, b, state string) error {
	if state != "up" && state != "down" {
		return fmt.Errorf("link state: %q is not allowed: want up or down", state)
	}
	return show(ctx, e, e.fabric().SetLink, &pb.SetLinkRequest{A: a, B: b, Up: state == "up"}, func(w io.Writer, r *pb.SetLinkResponse) {
		_, _ = fmt.Fprintf(w, "link %s %s is %s\n", command.Clean(a), command.Clean(b), state)
	})
}
