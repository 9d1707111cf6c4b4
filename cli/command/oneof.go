// Package command holds what the commands of an operator, a node and the lab share: the flags that
// name a controller, the reading of files, the line that shows progress.
package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// OneOf adds subcommands to a command that does nothing itself. Without a subcommand it fails.
func OneOf(cmd *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(subcommands...)
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		var names []string
		for _, s := range subcommands {
			names = append(names, s.Name())
		}
		want := strings.Join(names, ", ")
		if len(args) > 0 {
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				want += ": did you mean " + strings.Join(near, " or ") + "?"
			}
			return fmt.Errorf("%s: %q is not allowed: want one of %s", cmd.Name(), args[0], want)
		}
		return fmt.Errorf("%s: nothing to do: want one of %s", cmd.Name(), want)
	}
	return cmd
}
