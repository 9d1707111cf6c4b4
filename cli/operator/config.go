package operator

import (
	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"
)

// fileFlag adds -f and -o.
func fileFlag(cmd *cobra.Command, file *string) {
	command.AddOutputFlag(cmd)
	cmd.Flags().StringVarP(file, "file", "f", "", "configuration `file`, - for standard input")
	command.Require(cmd, "file")
}
