package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli"
)

func newPriorityCommand() *cobra.Command {
	allocate := &cobra.Command{
		Use: "allocate APP [PRIORITY]", Short: "Give an application a virtual priority of PrioPlus, the lowest that is free or the one named",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			number := ""
			if len(args) == 2 {
				number = args[1]
			}
			return cli.Run(cmd, func(ctx context.Context, e *cli.Env) error { return cli.AllocatePriority(ctx, e, args[0], number) })
		},
	}
	release := &cobra.Command{
		Use: "release APP PRIORITY", Short: "Take a virtual priority from an application",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.Run(cmd, func(ctx context.Context, e *cli.Env) error { return cli.ReleasePriority(ctx, e, args[0], args[1]) })
		},
	}
	cmd := &cobra.Command{Use: "priority", Short: "Hand out PrioPlus' virtual priorities; see also get channels"}
	cli.AddOutputFlag(cmd)
	return cli.OneOf(cmd, allocate, release)
}
