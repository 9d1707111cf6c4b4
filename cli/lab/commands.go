// Package lab has the commands that need no network: a fabric in one process, the simulator, tests of
// P4 programs, analyses of parameters, and SONiC's files.
package lab

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/stf"
	"github.com/headgate/headgate/softswitch/tm"
)

// Commands returns the commands of this package.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		newRunCommand(), newStfCommand(), newSimCommand(), newPaccCommand(), newSozeCommand(), newSpfcCommand(), newSonicCommand(),
	}
}

// newMarginTool returns the command of a system. Its one subcommand, margin, judges parameters. analyse returns
// the answer as a value for JSON, and a function that writes it in two columns.
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

func newStfCommand() *cobra.Command {
	queues := 1
	cmd := &cobra.Command{
		Use:   "stf PROGRAM.json TEST.stf",
		Short: "Run an STF test of a P4 program on the embedded switch",
		Long: "Run an STF test, as in p4c's testdata/p4_16_samples, against a v1model or PSA program\n" +
			"compiled to BMv2 JSON. The exit code is 0 when every expectation holds. A packet whose\n" +
			"standard_metadata.priority is not below --priority-queues is dropped, as BMv2 does.\n" +
			"Queues delay nothing: packets leave in the order in which they left ingress.",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if queues < 1 || queues > tm.MaxQueues {
				return fmt.Errorf("--priority-queues %d: want 1 to %d", queues, tm.MaxQueues)
			}
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
			if err := stf.Run(prog, test, engine.Options{Queues: queues}); err != nil {
				return fmt.Errorf("%s: %w", args[1], err)
			}
			return command.Print(cmd, map[string]any{"test": args[1], "pass": true}, func(w io.Writer) { _, _ = fmt.Fprintf(w, "%s: pass\n", args[1]) })
		},
	}
	command.AddOutputFlag(cmd)
	cmd.Flags().IntVar(&queues, "priority-queues", queues, fmt.Sprintf("number `N` of queues of a port, 1 to %d", tm.MaxQueues))
	return cmd
}
