// Package node has the commands of long-running programs: the controller, a switch and a host agent.
package node

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/hosts/law/registry"
	"github.com/headgate/headgate/hosts/standalone"
	"github.com/headgate/headgate/internal/service"
	softswitch "github.com/headgate/headgate/softswitch/standalone"
)

// Commands returns the commands of this package.
func Commands() []*cobra.Command {
	return []*cobra.Command{newControllerCommand(), newSwitchCommand(), newHostCommand()}
}

// newSwitchCommand is the embedded switch. Its flags are simple_switch_grpc's, which has a second
// set after --, so the command parses them itself, without cobra.
func newSwitchCommand() *cobra.Command {
	return &cobra.Command{
		Annotations: map[string]string{command.Daemon: "true"},
		Use:         "switch [flags] [PROGRAM.json] [-- flags of the target]",
		Short:       "Run the embedded P4 switch on network interfaces",
		Long: "Run the embedded P4 switch on network interfaces, with the flags of BMv2's simple_switch_grpc.\n\n" +
			"  headgate switch --device-id 1 -i 1@veth1 -i 2@veth2 --no-p4 -- --grpc-server-addr 127.0.0.1:9559 --cpu-port 510\n\n" + softswitch.Usage(),
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return softswitch.Main(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
}

func newHostCommand() *cobra.Command {
	opts := standalone.NewOptions()
	var format service.Format
	var profile string
	cmd := &cobra.Command{
		Annotations: map[string]string{command.Daemon: "true"},
		Use:         "host",
		Short:       "run a host agent on a real interface",
		Long: `Sends flows of RoCEv2 data with a maxQD shim from a network interface, answers those of
other hosts, runs the congestion law, obeys PFC frames, and takes weights and PrioPlus'
channels from the controller. It needs CAP_NET_RAW.

` + standalone.LawsHelp(),
		Example: `  headgate host --interface h1-eth0 --rate 20Mbps --flow dst=10.0.4.1,weight=2 --controller 127.0.0.1:9600
  headgate host --interface h1-eth0 --law dcqcn --param increase_timer=110ms --flow dst=10.0.4.1
  headgate host --interface h1-eth0 --law prioplus --priority 3 --base-rtt 9ms --flow dst=10.0.4.1
  headgate host --interface h4-eth0 --rate 20Mbps --cnp-gap 100ms --listen-only`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := format.Log(cmd.ErrOrStderr(), slog.LevelInfo)
			if err := service.Profile(cmd.Context(), profile, log); err != nil {
				return err
			}
			v, err := command.Settings(cmd)
			if err != nil {
				return err
			}
			opts.Dial = command.Credentials(v)
			return standalone.Run(cmd.Context(), opts, cmd.OutOrStdout(), log)
		},
	}
	opts.AddFlags(cmd.Flags())
	cmd.AddCommand(tcpCommands()...)
	command.CompleteFlag(cmd, "law", registry.Names()...)
	cmd.Flags().Var(&format, "log-format", service.FormatUsage)
	cmd.Flags().StringVar(&profile, "pprof", "", service.ProfileUsage)
	return cmd
}
