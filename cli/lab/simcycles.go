package lab

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/sim/experiment"
)

// errCycle makes the command fail after it has said what the cycle is.
var errCycle = errors.New("there is a cycle of buffers that depend on each other")

// cyclesOf is what is found in the fabric of a variant, and of those behind it that have the same.
type cyclesOf struct {
	Experiment string `json:"experiment"`
	Variant    string `json:"variant"`
	Text       string `json:"text"`
}

func newSimCyclesCommand() *cobra.Command {
	var failures int
	c := &cobra.Command{
		Use:   "cycles NAME|FILE.yaml",
		Short: "Say whether an experiment's paths can deadlock under PFC, as they are and after failures of links",
		Long: `Say whether an experiment's paths can deadlock under PFC, as they are and after failures of links.
The exit code is 1 where they can.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: experimentName,
		RunE: func(c *cobra.Command, args []string) error {
			if failures < 0 || failures > 2 {
				return fmt.Errorf("--any-k-failures: %d is not allowed: want 0 to 2", failures)
			}
			f, err := experiment.Open(args[0])
			if err != nil {
				return err
			}
			var list []cyclesOf
			found := false
			for _, p := range f.Plans {
				cycles := p.Config.Graph.Cycles(c.Context(), failures)
				found = found || cycles.Now != "" || cycles.With > 0
				if text := cycles.Text(failures); len(list) == 0 || text != list[len(list)-1].Text {
					list = append(list, cyclesOf{f.Name, fmt.Sprint(p.Variant), text})
				}
			}
			err = command.Print(c, list, func(w io.Writer) {
				for _, l := range list {
					_, _ = fmt.Fprintf(w, "%s %s: %s\n", l.Experiment, l.Variant, l.Text)
				}
			})
			if err == nil && found {
				err = errCycle
			}
			return err
		},
	}
	command.AddOutputFlag(c)
	c.Flags().IntVar(&failures, "any-k-failures", 0, "also with up to this many failed links between switches: 0 to 2")
	return c
}
