package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/scenario"
)

func newRunCommand() *cobra.Command {
	var o scenario.Command
	scripts := make([]string, 0, 4)
	for _, s := range scenario.Scripts() {
		scripts = append(scripts, s.Name)
	}
	c := &cobra.Command{
		Use:   "run",
		Short: "Run a fabric of embedded switches and hosts in this process, with its controller",
		Long: "Starts the fabric's switches, controller and hosts in one process, plays a scenario on them, and\n" +
			"ends with a table of measured rates beside each flow's weighted max-min share. While it runs, the\n" +
			"controller's API, its metrics and the switches' P4Runtime servers are open on loopback.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			err := o.Run(c.Context(), os.Stdout)
			if errors.Is(err, context.Canceled) {
				return fmt.Errorf("interrupted: nothing was measured to the end")
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVarP(&o.File, "file", "f", "", "fabric file (default: the built-in leaf-spine fabric, examples/leaf-spine.yaml)")
	f.StringVar(&o.Scenario, "scenario", scripts[0], "what happens: "+strings.Join(scripts, ", "))
	f.DurationVar(&o.For, "for", 40*time.Second, "how long all phases take together")
	f.StringVar(&o.JSON, "json", "", "write the result as JSON to this file, - for standard output")
	f.StringVar(&o.Plot, "plot", "", "draw the rates over time into this file, .svg, .png or .pdf")
	f.StringArrayVar(&o.Restarts, "restart", nil, "restart a switch empty while traffic runs, as SWITCH@TIME, for example leaf1@12s; repeatable")
	f.BoolVar(&o.Plain, "plain", false, "print lines even on a terminal")
	f.BoolVar(&o.Check, "check", false, "end with an error when a flow misses its share or a packet is lost")
	f.StringVar(&o.Log, "log", "", "write the logs of controller and switches to this file, - for standard error")
	return c
}
