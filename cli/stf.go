package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/stf"
)

// newStfCommand runs an STF test against a program on the embedded switch.
func newStfCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "stf PROGRAM.json TEST.stf",
		Short: "Run an STF test of a P4 program on the embedded switch",
		Long: "Run an STF test, as in p4c's testdata/p4_16_samples, against a v1model program\n" +
			"compiled to BMv2 JSON. The exit code is 0 when every expectation holds.",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			doc, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			prog, err := engine.Load(doc)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			test, err := os.Open(args[1])
			if err != nil {
				return err
			}
			defer test.Close()
			if err := stf.Run(prog, test); err != nil {
				return fmt.Errorf("%s: %w", args[1], err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: pass\n", args[1])
			return nil
		},
	}
}
