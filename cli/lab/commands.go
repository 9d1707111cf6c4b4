// Package lab has the commands that need no network: a fabric in one process, the simulator, tests of
// P4 programs, analyses of parameters, and SONiC's files.
package lab

import "github.com/spf13/cobra"

// Commands returns the commands of this package.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		newRunCommand(), newStfCommand(), newSimCommand(), newPaccCommand(), newSozeCommand(), newSpfcCommand(), newSonicCommand(),
	}
}
