// Package operator has an operator's commands. Most consist of a verb and a noun, and are only clients
// of the gRPC API.
package operator

import "github.com/spf13/cobra"

// Commands returns the commands of this package.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		newStateCommand(), newAuditCommand(), newExplainCommand(), newDoctorCommand(), newPlanCommand(), newApplyCommand(),
		newConfirmCommand(), newHistoryCommand(), newRollbackCommand(), newGetCommand(), newWatchCommand(), newSetCommand(),
		newDeleteCommand(), newReplaceCommand(), newVersionCommand(),
	}
}
