package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli"
)

func newGetCommand() *cobra.Command {
	get := func(use, short string, fn func(ctx context.Context, e *cli.Env) error) *cobra.Command {
		return &cobra.Command{
			Use: use, Short: short, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return cli.Run(cmd, fn) },
		}
	}
	var config bool
	fabric := get("fabric", "The running configuration's switches and hosts", func(ctx context.Context, e *cli.Env) error {
		return cli.GetFabric(ctx, e, config)
	})
	fabric.Flags().BoolVar(&config, "config", false, "write the configuration as it was applied")

	var app string
	weights := get("weights", "The flows' weights and the applications' budgets", func(ctx context.Context, e *cli.Env) error {
		return cli.GetWeights(ctx, e, app)
	})
	var last uint32
	audit := get("audit", "Who changed which weight or budget, and what was refused", func(ctx context.Context, e *cli.Env) error {
		return cli.GetAudit(ctx, e, app, last)
	})
	for _, c := range []*cobra.Command{weights, audit} {
		c.Flags().StringVar(&app, "app", "", "only this `application`")
	}
	audit.Flags().Uint32VarP(&last, "last", "n", 100, "`number` of entries")

	cmd := &cobra.Command{Use: "get", Short: "Show the fabric, its switches, buffers, links, flows, weights, channels or the audit log"}
	cli.AddOutputFlag(cmd)
	return cli.OneOf(cmd, fabric,
		get("switches", "Each switch's session, ports and what its target cannot do", cli.GetSwitches),
		get("buffers", "Each switch's buffer and PFC: pools, pauses, SPFC's states, alarms", cli.GetBuffers),
		get("links", "The links with rate, delay and state", cli.GetLinks),
		get("flows", "What the attached hosts last reported", cli.GetFlows),
		weights, audit,
		get("channels", "PrioPlus' virtual priorities with their channels, and who has which", cli.GetChannels),
	)
}
