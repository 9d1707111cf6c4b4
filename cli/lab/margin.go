package lab

import (
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"

	"github.com/headgate/headgate/internal/jsonfile"
)

// newMarginTool returns the tool of a system, whose one subcommand, margin, says whether parameters
// are right. analyse returns the answer as JSON has it, and what writes it in two columns.
func newMarginTool(system, short string, margin *cobra.Command, analyse func() (report any, table func(io.Writer), err error)) *cobra.Command {
	asJSON := margin.Flags().Bool("json", false, "print JSON")
	margin.Use, margin.Args = "margin", cobra.NoArgs
	margin.Long = margin.Short + ".\n\n" + margin.Long
	margin.RunE = func(c *cobra.Command, _ []string) error {
		report, table, err := analyse()
		switch {
		case err != nil:
			return err
		case *asJSON:
			return jsonfile.Encode(c.OutOrStdout(), report)
		}
		w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
		table(w)
		return w.Flush()
	}
	return command.OneOf(&cobra.Command{Use: system, Short: short}, margin)
}
