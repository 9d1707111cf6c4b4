package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/fabric/experiment"
	"github.com/headgate/headgate/fabric/topo"
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
				if text := cyclesText(p.Config.Graph.Cycles(c.Context(), failures), failures); text != last {
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

func cyclesText(c topo.Cycles, failures int) string {
	if c.Now != "" {
		return "buffers depend on each other in a cycle, which PFC can stop for good: " + c.Now
	}
	if failures == 0 {
		return "no cycle of buffers that depend on each other"
	}
	text := fmt.Sprintf("no cycle of buffers that depend on each other; with up to %d failed links, %d combinations looked at, %d not: %d have one",
		failures, c.Examined, c.Left, c.With)
	if c.With > 0 {
		text += fmt.Sprintf("; without %s: %s", strings.Join(c.Failed, " and "), c.Then)
	}
	return text
}
