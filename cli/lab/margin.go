package lab

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"
)

// newMarginTool returns the tool of a system, whose one subcommand, margin, says whether parameters
// are right. analyse returns the answer as JSON has it, and what writes it in two columns.
func newMarginTool(system, short string, margin *cobra.Command, analyse func() (report any, table func(io.Writer), err error)) *cobra.Command {
	asJSON := margin.Flags().Bool("json", false, "print JSON, as -o json does")
	command.AddOutputFlag(margin)
	margin.Use, margin.Args = "margin", cobra.NoArgs
	margin.Long = margin.Short + ".\n\n" + margin.Long
	margin.RunE = func(c *cobra.Command, _ []string) error {
		report, table, err := analyse()
		if err != nil {
			return err
		}
		o, err := command.OutputOf(c)
		if *asJSON {
			o.Format = command.JSON
		}
		if err != nil {
			return err
		}
		return o.Value(report, table)
	}
	return command.OneOf(&cobra.Command{Use: system, Short: short}, margin)
}
