// Package node has the commands of long-running programs: the controller, a switch and a host agent.
package node

import "github.com/spf13/cobra"

// Commands returns the commands of this package.
func Commands() []*cobra.Command {
	return []*cobra.Command{newControllerCommand(), newSwitchCommand(), newHostCommand()}
}
