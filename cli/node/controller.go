package node

import (
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/daemon"
	"github.com/headgate/headgate/internal/service"
)

func newControllerCommand() *cobra.Command {
	var restore, file, member, socket, loopback, profile string
	var format service.Format
	var verbose, replace, acceptLoss bool
	c := &cobra.Command{
		Annotations: map[string]string{command.Daemon: "true"},
		Use:         "controller",
		Short:       "Run the controller for existing switches",
		Long: "Keeps every switch as the fabric file says, over P4Runtime, and serves the gRPC API and Prometheus\n" +
			"metrics, until it is interrupted. Switches keep their entries after that. `headgate get switches`\n" +
			"shows unreachable switches, which the controller tries again for ever.\n\n" +
			"The API is served on a Unix socket, where the kernel identifies the caller, and with controller.tls\n" +
			"also at controller.listen; the metrics are at controller.metrics. controller.policy has the callers'\n" +
			"rights. Root, and the user that the controller runs as, may do everything over the socket.\n\n" +
			"SIGHUP reads the fabric file again. With a state file a restart keeps weights, links out of service,\n" +
			"virtual priorities and the last applied configuration. A configuration that came by `headgate apply`\n" +
			"stays; --replace applies the fabric file instead.",
		Args: cobra.NoArgs,
	}
	f := c.Flags()
	f.StringVarP(&file, "file", "f", "", "fabric file (default: fabric.yaml here or in /etc/headgate)")
	f.StringVar(&member, "member", "", "this controller's `name` in controller.cluster.members")
	f.StringVar(&restore, "restore", "", "start a new cluster from this `file`, a backup or a controller's state file; give it to every member")
	f.StringVar(&socket, "socket", "", "serve the API on this Unix socket (default "+command.RootSocket+" for root, else headgate/headgate.sock in XDG_RUNTIME_DIR)")
	f.StringVar(&loopback, "insecure-loopback", "", "without controller.tls, let everyone on this machine call at controller.listen and see controller.metrics, with this `role`")
	f.Lookup("insecure-loopback").NoOptDefVal = string(authz.Admin)
	f.BoolVar(&replace, "replace", false, "apply the fabric file even if another configuration was applied through the API since")
	f.BoolVar(&acceptLoss, "accept-loss", false, "start with a state file or audit log that is damaged or older than the other one, and continue with its content")
	f.BoolVarP(&verbose, "verbose", "v", false, "log every call of the API")
	f.Var(&format, "log-format", service.FormatUsage)
	f.StringVar(&profile, "pprof", "", service.ProfileUsage)
	f.String("listen", "", "host:port of the gRPC API; overrides controller.listen")
	f.String("metrics", "", "host:port of the Prometheus endpoint, off for none; overrides controller.metrics")
	f.String("state", "", "state file, in a cluster the folder of etcd; overrides controller.state")
	f.String("election-id", "", "P4Runtime election id; overrides controller.election_id")
	flags := map[string]*pflag.Flag{
		"controller.listen": f.Lookup("listen"), "controller.metrics": f.Lookup("metrics"),
		"controller.state": f.Lookup("state"), "controller.election_id": f.Lookup("election-id"),
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		load := func() (*config.Config, error) {
			return config.Load(config.Options{File: file, Flags: flags, Sections: controller.Sections()})
		}
		if loopback != "" && !slices.Contains(authz.Roles, authz.Role(loopback)) {
			return fmt.Errorf("--insecure-loopback: %q is not allowed: want one of %v", loopback, authz.Roles)
		}
		given := c.Flags().Changed("socket")
		if !given {
			socket = command.OwnSocket()
		}
		cfg, err := load()
		if err != nil {
			return err
		}
		level := slog.LevelInfo
		if verbose {
			level = slog.LevelDebug
		}
		log := format.Log(os.Stderr, level)
		if err := service.Profile(c.Context(), profile, log); err != nil {
			return err
		}
		reload := make(chan os.Signal, 1)
		signal.Notify(reload, syscall.SIGHUP)
		defer signal.Stop(reload)
		return daemon.Run(c.Context(), daemon.Options{
			Config: cfg, Member: member, Restore: restore, AcceptLoss: acceptLoss, Replace: replace, Reload: reload, Load: load, Flags: flags,
			Socket: socket, MayLackSocket: !given, Loopback: authz.Role(loopback), Log: log,
		})
	}
	return c
}
