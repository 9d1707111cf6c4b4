package main

import (
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/softswitch/cli"
)

// newSwitchCommand is the embedded switch. Its flags are simple_switch_grpc's, with their
// own second set behind --, so cobra leaves them alone.
func newSwitchCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "switch [flags] [PROGRAM.json] [-- flags of the target]",
		Short: "Run the embedded P4 switch on network interfaces",
		Long: "Run the embedded P4 switch on network interfaces, with the flags of BMv2's simple_switch_grpc.\n\n" +
			"  headgate switch --device-id 1 -i 1@veth1 -i 2@veth2 --no-p4 -- --grpc-server-addr 127.0.0.1:9559 --cpu-port 510\n\n" + cli.Usage(),
		DisableFlagParsing: true,
		SilenceUsage:       true,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return cli.Main(ctx, args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
}
