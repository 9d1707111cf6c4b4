package node

import (
	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/softswitch/standalone"
)

// newSwitchCommand is the embedded switch. Its flags are simple_switch_grpc's, which has a second
// set after --, so the command parses them itself, without cobra.
func newSwitchCommand() *cobra.Command {
	return &cobra.Command{
		Annotations: map[string]string{command.Daemon: "true"},
		Use:         "switch [flags] [PROGRAM.json] [-- flags of the target]",
		Short:       "Run the embedded P4 switch on network interfaces",
		Long: "Run the embedded P4 switch on network interfaces, with the flags of BMv2's simple_switch_grpc.\n\n" +
			"  headgate switch --device-id 1 -i 1@veth1 -i 2@veth2 --no-p4 -- --grpc-server-addr 127.0.0.1:9559 --cpu-port 510\n\n" + standalone.Usage(),
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return standalone.Main(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
}
