package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/controller/config/reference"
)

// patience bounds how long a shell waits for the completions of a word.
const patience = 2 * time.Second

// words asks the controller for the values of an argument or a flag. args are those before it.
type words func(ctx context.Context, e *env, args []string) []string

// complete asks the controller for completions. Without an answer there are none.
func (w words) complete(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	e, err := newEnv(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer e.conn.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), patience)
	defer cancel()
	return command.Matching(w(ctx, e, args), typed), cobra.ShellCompDirectiveNoFileComp
}

func arguments(cmd *cobra.Command, list ...words) *cobra.Command {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(list) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return list[len(args)].complete(cmd, args, typed)
	}
	return cmd
}

func completeFlag(cmd *cobra.Command, flag string, w words) {
	if err := cmd.RegisterFlagCompletionFunc(flag, w.complete); err != nil {
		panic(err) // the command has no such flag
	}
}

func fixed(list ...string) words {
	return func(context.Context, *env, []string) []string { return list }
}

// Errors of the calls below leave nothing to complete.

func switchNames(ctx context.Context, e *env, _ []string) (list []string) {
	r, _ := e.fabric().GetFabric(ctx, &pb.GetFabricRequest{})
	for _, s := range r.GetSwitches() {
		list = append(list, s.GetName())
	}
	return list
}

func nodeNames(ctx context.Context, e *env, _ []string) (list []string) {
	r, _ := e.fabric().GetFabric(ctx, &pb.GetFabricRequest{})
	for _, l := range r.GetLinks() {
		list = append(list, l.GetA().GetNode(), l.GetB().GetNode())
	}
	return list
}

// neighbours are the nodes with links to the argument before, which may be an end of a link.
func neighbours(ctx context.Context, e *env, args []string) (list []string) {
	r, _ := e.fabric().GetFabric(ctx, &pb.GetFabricRequest{})
	node, _, _ := strings.Cut(args[len(args)-1], ":")
	for _, l := range r.GetLinks() {
		switch node {
		case l.GetA().GetNode():
			list = append(list, l.GetB().GetNode())
		case l.GetB().GetNode():
			list = append(list, l.GetA().GetNode())
		}
	}
	return list
}

func applicationNames(ctx context.Context, e *env, _ []string) (list []string) {
	r, _ := e.weight().ListWeights(ctx, &pb.ListWeightsRequest{})
	for _, b := range r.GetBudgets() {
		list = append(list, b.GetApplication())
	}
	return list
}

func flowKeys(ctx context.Context, e *env, _ []string) (list []string) {
	r, _ := e.weight().ListWeights(ctx, &pb.ListWeightsRequest{})
	for _, f := range r.GetFlows() {
		list = append(list, flowText(f.GetFlow()))
	}
	return list
}

func featureNames(ctx context.Context, e *env, _ []string) (list []string) {
	r, _ := e.fabric().ListSwitches(ctx, &pb.ListSwitchesRequest{})
	for _, s := range r.GetSwitches() {
		for _, t := range s.GetStatus() {
			list = append(list, t.GetFeature())
		}
	}
	return list
}

func generations(ctx context.Context, e *env, _ []string) (list []string) {
	r, _ := e.fabric().ListHistory(ctx, &pb.ListHistoryRequest{})
	for _, c := range slices.Backward(r.GetConfigs()) {
		list = append(list, fmt.Sprint(c.GetGeneration()))
	}
	return list
}

func priorityNumbers(ctx context.Context, e *env, _ []string) (list []string) {
	r, _ := e.priority().ListPriorities(ctx, &pb.ListPrioritiesRequest{})
	for _, c := range r.GetChannels() {
		list = append(list, fmt.Sprint(c.GetPriority()))
	}
	return list
}

func keyPaths(context.Context, *env, []string) (list []string) {
	keys, _ := reference.Keys()
	for _, k := range keys {
		list = append(list, strings.ReplaceAll(k.Path, "[]", ""))
	}
	return list
}
