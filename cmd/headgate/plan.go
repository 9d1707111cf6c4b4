package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli"
)

func newPlanCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "plan -f FABRIC.yaml",
		Short: "Show what applying a configuration would change: exit code 0 nothing, 2 something, 1 on errors",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Run(cmd, func(ctx context.Context, e *cli.Env) error { return cli.Plan(ctx, e, file) })
		},
	}
	fileFlag(cmd, &file)
	return cmd
}

func fileFlag(cmd *cobra.Command, file *string) {
	cli.AddOutputFlag(cmd)
	cmd.Flags().StringVarP(file, "file", "f", "", "configuration `file`, - for standard input")
	if err := cmd.MarkFlagRequired("file"); err != nil {
		panic(err) // the flag is defined in the line above
	}
}
