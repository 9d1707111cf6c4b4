package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/controller/store"
)

func newStateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "state",
		Short: "Check, back up or restore a controller's state file (controller.state)",
	}
	return oneOf(c,
		&cobra.Command{
			Use: "check FILE", Short: "Read every line of a state file, which a controller may have open", Args: cobra.ExactArgs(1),
			RunE: func(c *cobra.Command, args []string) error {
				sum, err := store.Check(args[0])
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "%s is sound: %v\n", args[0], sum)
				return err
			},
		},
		&cobra.Command{
			Use: "backup FILE COPY", Short: "Check a state file, which a controller may have open, and copy it to a new file", Args: cobra.ExactArgs(2),
			RunE: func(c *cobra.Command, args []string) error {
				sum, err := store.Backup(args[0], args[1])
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "%s is a copy of %s: %v\n", args[1], args[0], sum)
				return err
			},
		},
		&cobra.Command{
			Use: "restore COPY FILE", Short: "Check a backup and put a copy of it in a state file's place, which no controller may have open", Args: cobra.ExactArgs(2),
			RunE: func(c *cobra.Command, args []string) error {
				sum, old, err := store.Restore(args[0], args[1])
				if err != nil {
					return err
				}
				if old != "" {
					old = "; what stood there is " + old
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "%s is a copy of %s: %v%s\n", args[1], args[0], sum, old)
				return err
			},
		},
	)
}
