package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli"
)

func newWatchCommand() *cobra.Command {
	watch := func(use, short string, fn func(ctx context.Context, e *cli.Env) error) *cobra.Command {
		return &cobra.Command{
			Use: use, Short: short, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return cli.Run(cmd, fn) },
		}
	}
	var recent uint32
	events := watch("events", "What happens: sessions, ports, reconciles, configurations", func(ctx context.Context, e *cli.Env) error {
		return cli.WatchEvents(ctx, e, recent)
	})
	events.Flags().Uint32VarP(&recent, "last", "n", 10, "`number` of past events to begin with")
	var app string
	weights := watch("weights", "The flows' weights, then every change", func(ctx context.Context, e *cli.Env) error {
		return cli.WatchWeights(ctx, e, app)
	})
	weights.Flags().StringVar(&app, "app", "", "only this `application`")
	var switches []string
	telemetry := watch("telemetry", "Queues, delays and rates of the ports", func(ctx context.Context, e *cli.Env) error {
		return cli.WatchTelemetry(ctx, e, switches)
	})
	telemetry.Flags().StringSliceVar(&switches, "switch", nil, "only these `switches`")

	cmd := &cobra.Command{Use: "watch", Short: "Follow events, telemetry, weights or flows: a live table on a terminal, else lines"}
	cli.AddOutputFlag(cmd)
	return cli.OneOf(cmd, events, telemetry, weights,
		watch("flows", "Rates, weights and delays of the flows as hosts report them", cli.WatchFlows))
}
