package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli"
)

func newApplyCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "apply -f FABRIC.yaml",
		Short: "Make a configuration the desired one and bring every switch in line with it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Run(cmd, func(ctx context.Context, e *cli.Env) error { return cli.Apply(ctx, e, file) })
		},
	}
	fileFlag(cmd, &file)
	return cmd
}

func newLinkCommand() *cobra.Command {
	set := func(use, short string, up bool) *cobra.Command {
		return &cobra.Command{
			Use: use, Short: short, Args: cobra.ExactArgs(2),
			RunE: func(cmd *cobra.Command, args []string) error {
				return cli.Run(cmd, func(ctx context.Context, e *cli.Env) error { return cli.SetLink(ctx, e, args[0], args[1], up) })
			},
		}
	}
	cmd := &cobra.Command{Use: "link", Short: "Take a link out of service, or back into it"}
	cli.AddOutputFlag(cmd)
	return cli.OneOf(cmd,
		set("down A B", "Route around the link between two nodes", false),
		set("up A B", "Use the link between two nodes again", true),
	)
}
