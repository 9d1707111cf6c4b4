// Package cli is the command line: one command with a subcommand for each thing that Headgate does.
//
//   - operator has the clients of the controller's API, a verb and a noun each (get links, set weight),
//     and the tools for its files;
//   - p4 talks to any P4Runtime switch, without a controller;
//   - node has the long-running programs of a network: controller, switch and host;
//   - lab has what runs without a network: the emulated fabric, the simulator and the analyses.
//
// No other package imports cobra.
package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/cli/lab"
	"github.com/headgate/headgate/cli/node"
	"github.com/headgate/headgate/cli/operator"
	"github.com/headgate/headgate/cli/p4"
	"github.com/headgate/headgate/internal/version"
)

// NewRoot returns the command headgate.
func NewRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "headgate",
		Short: "Lossless, fast data-centre fabrics: P4 switches, their controller and end-host congestion laws",
		Long: `Headgate keeps lossless data-centre fabrics lossless and fast. It is a P4 pipeline for
programmable switches, a daemon that drives them over P4Runtime, the end-host congestion
laws that go with it, and an embedded switch so that all of it runs on a laptop.

The exit code is 0 on success, 1 on an error, 2 for a plan with changes, 3 for a run that is invalid, and 130 after
Ctrl-C.`,
		Version: version.String(),
	}
	command.AddServerFlags(root)
	for _, commands := range [][]*cobra.Command{node.Commands(), lab.Commands(), operator.Commands(), p4.Commands()} {
		root.AddCommand(commands...)
	}
	addExamples(root)
	return root
}

// WriteManual writes the manual pages of headgate and its subcommands, section 1, into a directory.
// Without a date, the same sources give the same pages.
func WriteManual(directory string) error {
	root := NewRoot()
	root.DisableAutoGenTag = true
	return doc.GenManTree(root, &doc.GenManHeader{Source: "Headgate", Manual: "Headgate"}, directory)
}
