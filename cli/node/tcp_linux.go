package node

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/hosts/tcp"
	"github.com/headgate/headgate/internal/service"
)

func tcpCommands() []*cobra.Command {
	opts := tcp.NewOptions()
	var format service.Format
	cmd := &cobra.Command{
		Annotations: map[string]string{command.Daemon: "true"},
		Use:         "tcp",
		Short:       "govern the TCP connections of this machine's applications",
		Long: `Runs Söze inside the kernel's TCP by eBPF, so that connections of applications as they are share a bottleneck
by weight; both ends need it. Those with a --priority are governed by PrioPlus over Swift, at the sender alone. Connections
that begin while it is attached are governed. What is attached stays when this command ends, and is removed by --detach.
It needs root, Linux 6.4 or later, bpffs and cgroup v2.`,
		Example: `  headgate host tcp --name h1 --rate 25Gbps --controller 127.0.0.1:9600
  headgate host tcp --rate 10Gbps --cgroup /sys/fs/cgroup/system.slice/nginx.service,weight=4,app=web --mark 7,weight=0.5
  headgate host tcp --detach`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, err := command.Settings(cmd)
			if err != nil {
				return err
			}
			opts.Dial = command.Credentials(v)
			return tcp.Run(cmd.Context(), opts, cmd.OutOrStdout(), format.Log(cmd.ErrOrStderr(), slog.LevelInfo))
		},
	}
	opts.AddFlags(cmd.Flags())
	cmd.Flags().Var(&format, "log-format", service.FormatUsage)
	return []*cobra.Command{cmd}
}
