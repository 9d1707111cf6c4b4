package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/emulation"
)

func newRunCommand() *cobra.Command {
	var o emulation.Command
	names := emulation.Names()
	c := &cobra.Command{
		Use:   "run",
		Short: "Run a fabric of embedded switches and hosts in this process, with its controller",
		Long: "Starts the fabric's switches, controller and hosts in one process, plays a scenario on them, and\n" +
			"ends with a table of what it measured. While it runs, the controller's API, its metrics and the\n" +
			"switches' P4Runtime servers are open on loopback.\n\n" + about(),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch out, err := command.OutputOf(c); {
			case err != nil:
				return err
			case out.Format == command.YAML:
				return errors.New("--output: yaml is not allowed: want table or json")
			case out.Format == command.JSON && o.JSON == "":
				o.JSON = "-"
			}
			err := o.Run(c.Context(), os.Stdout)
			if errors.Is(err, context.Canceled) {
				return command.Interrupted("no measurement was completed")
			}
			return err
		},
	}
	command.AddOutputFlag(c)
	f := c.Flags()
	f.StringVarP(&o.File, "file", "f", "", "fabric file for soze, of any switches and at least three hosts (default: the built-in leaf-spine fabric, examples/leaf-spine.yaml)")
	f.StringVar(&o.Scenario, "scenario", names[0], "what happens: "+strings.Join(names, ", "))
	f.StringSliceVar(&o.Variants, "variant", nil, "play only these variants of the scenario, for example sih,dsh (default all)")
	f.DurationVar(&o.For, "for", 0, fmt.Sprintf("total time of soze's phases (default %v)", emulation.DefaultFor))
	f.StringVar(&o.JSON, "json", "", "write the result as JSON to this file, - for standard output")
	f.StringVar(&o.Plot, "plot", "", "draw rates and queues over time into this file, .svg, .png or .pdf")
	f.StringArrayVar(&o.Restarts, "restart", nil, "restart a switch empty while traffic runs, as SWITCH@TIME, for example leaf1@12s; repeatable")
	f.BoolVar(&o.Plain, "plain", false, "print lines even on a terminal")
	f.BoolVar(&o.Check, "check", false, "end with an error if a check of the run fails")
	f.StringVar(&o.Burst, "burst", "", "size of each host's flow in the scenario's bursts, such as 64KB (default: the scenario's)")
	f.BoolVar(&o.Predict, "predict", false, "also predict the scenario in the simulator and compare with the measurement")
	f.StringVar(&o.Log, "log", "", "write the logs of controller and switches to this file, - for standard error")
	command.CompleteFlag(c, "scenario", names...)
	var variants []string
	for _, s := range emulation.All() {
		variants = append(variants, s.VariantNames()...)
	}
	slices.Sort(variants)
	command.CompleteFlag(c, "variant", slices.Compact(variants)...)
	return c
}

func about() string {
	var b strings.Builder
	b.WriteString("Scenarios:\n")
	for _, s := range emulation.All() {
		fmt.Fprintf(&b, "  %-11s %s", s.Name, s.Title)
		if len(s.Variants) > 1 {
			fmt.Fprintf(&b, " (%s)", strings.Join(s.VariantNames(), ", "))
		}
		b.WriteString("\n")
	}
	b.WriteString("\nsoze plays on the fabric of -f. The others compare variants, one after the other: incast, permutation and\n" +
		"bursts on the default fabric, the rest on small fabrics of their own. Rates and times are converted to line rate.")
	return b.String()
}
