package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli"
)

const flowUsage = "`flow` as SRC:SPORT,DST:DPORT, such as 10.0.0.1:1001,10.0.0.2:50151"

func newWeightCommand() *cobra.Command {
	var flow, app string
	set := &cobra.Command{
		Use: "set --flow SRC:SPORT,DST:DPORT [--app APP] VALUE", Short: "Set the weight of a flow, within its application's budget",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.Run(cmd, func(ctx context.Context, e *cli.Env) error { return cli.SetWeight(ctx, e, flow, app, args[0]) })
		},
	}
	set.Flags().StringVar(&app, "app", "", "`application` whose budget pays; empty keeps the flow's")
	set.SetFlagErrorFunc(cli.RefuseNegative("weight"))
	del := &cobra.Command{
		Use: "delete --flow SRC:SPORT,DST:DPORT", Short: "Forget a flow and give its weight back to the budget",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Run(cmd, func(ctx context.Context, e *cli.Env) error { return cli.DeleteWeight(ctx, e, flow) })
		},
	}
	for _, c := range []*cobra.Command{set, del} {
		c.Flags().StringVar(&flow, "flow", "", flowUsage)
		if err := c.MarkFlagRequired("flow"); err != nil {
			panic(err) // the flag is defined in the line above
		}
	}
	budget := &cobra.Command{
		Use: "budget APP LIMIT", Short: "Set the largest sum of weights of an application; 0 for no limit",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.Run(cmd, func(ctx context.Context, e *cli.Env) error { return cli.SetBudget(ctx, e, args[0], args[1]) })
		},
	}
	budget.SetFlagErrorFunc(cli.RefuseNegative("limit"))
	cmd := &cobra.Command{Use: "weight", Short: "Change weights and budgets"}
	cli.AddOutputFlag(cmd)
	return cli.OneOf(cmd, set, del, budget)
}
