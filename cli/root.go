// Package cli is the command line. Each subcommand is one file. The packages that it calls do not
// know the command line, and no other package imports cobra.
//
// An operator's commands consist of a verb and a noun (get links, set weight). They are only clients
// of the gRPC API. Long-running programs (run, controller, switch, host) and tools (stf, sim, pacc, soze, spfc, sonic)
// have names of their own.
package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/internal/version"
)

// NewRoot returns the command headgate.
func NewRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "headgate",
		Short: "Lossless, fast data-centre fabrics: P4 switches, their controller and end-host congestion laws",
		Long: `Headgate keeps lossless data-centre fabrics lossless and fast. It is a P4 pipeline for
programmable switches, a daemon that drives them over P4Runtime, the end-host congestion
laws that go with it, and an embedded switch so that all of it runs on a laptop.`,
		Version: version.String(),
	}
	addServerFlags(root)
	root.AddCommand(
		newRunCommand(), newControllerCommand(), newSwitchCommand(), newHostCommand(),
		newStfCommand(), newSimCommand(), newPaccCommand(), newSozeCommand(), newSpfcCommand(), newSonicCommand(), newStateCommand(), newAuditCommand(),
		newExplainCommand(), newDoctorCommand(), newPlanCommand(), newApplyCommand(), newConfirmCommand(), newHistoryCommand(), newRollbackCommand(), newGetCommand(), newWatchCommand(), newSetCommand(), newDeleteCommand(), newReplaceCommand(),
	)
	return root
}

// oneOf adds subcommands to a command that does nothing itself. Without a subcommand it fails.
func oneOf(cmd *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(subcommands...)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		var names []string
		for _, s := range subcommands {
			names = append(names, s.Name())
		}
		want := strings.Join(names, ", ")
		if len(args) > 0 {
			return fmt.Errorf("%s: %q is not allowed: want one of %s", cmd.Name(), args[0], want)
		}
		return fmt.Errorf("%s: nothing to do: want one of %s", cmd.Name(), want)
	}
	return cmd
}
