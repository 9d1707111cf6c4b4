// Command headgate is the whole of Headgate in one binary: the controller, the embedded
// switch, the host agent, the operator's commands, and a fabric of them all in one process.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli"
)

// version is set when a release is linked.
var version = "dev"

func main() { os.Exit(run()) }

// run is main for tests, too.
func run() int { return cli.Main(newRootCommand(), os.Stderr) }

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "headgate",
		Short: "Lossless, fast data-centre fabrics: P4 switches, their controller and end-host congestion laws",
		Long: `Headgate keeps lossless data-centre fabrics lossless and fast. It is a P4 pipeline for
programmable switches, a daemon that drives them over P4Runtime, the end-host congestion
laws that go with it, and an embedded switch so that all of it runs on a laptop.`,
		Version: version,
	}
	cli.AddServerFlag(root)
	root.AddCommand(commands()...)
	return root
}

// commands are the subcommands; each is a few lines over a package.
func commands() []*cobra.Command {
	return []*cobra.Command{
		newRunCommand(),
		newControllerCommand(),
		newSwitchCommand(),
		newHostCommand(),
		newStfCommand(),
		newSimCommand(),
		newPaccCommand(),
		newPlanCommand(),
		newApplyCommand(),
		newGetCommand(),
		newWatchCommand(),
		newWeightCommand(),
		newPriorityCommand(),
		newLinkCommand(),
	}
}
