package lab

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/sim/experiment"
)

// newSimCyclesCommand looks for cyclic buffer dependencies in an experiment's fabric.
func newSimCyclesCommand() *cobra.Command {
	var failures int
	c := &cobra.Command{
		Use:   "cycles NAME|FILE.yaml",
		Short: "Say whether an experiment's paths can deadlock under PFC, as they are and after failures of links",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if failures < 0 || failures > 2 {
				return fmt.Errorf("--any-k-failures: %d is not allowed: want 0 to 2", failures)
			}
			f, err := experiment.Open(args[0])
			if err != nil {
				return err
			}
			var last string
			for _, p := range f.Plans {
				if text := p.Config.Graph.Cycles(c.Context(), failures).Text(failures); text != last {
					fmt.Fprintf(c.OutOrStdout(), "%s %s: %s\n", f.Name, p.Variant, text)
					last = text
				}
			}
			return nil
		},
	}
	c.Flags().IntVar(&failures, "any-k-failures", 0, "also while up to so many links between switches fail: 0 to 2")
	return c
}
