package lab

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/sim/experiment"
)

func newSimFiguresCommand() *cobra.Command {
	var records, pages, shard string
	var force, full, pictures bool
	c := &cobra.Command{
		Use:   "figures [NAME...]",
		Short: "Run the experiments that make the papers' figures, and write the pages about them",
		Long: `Run the experiments that make the papers' figures, or those named, and write a record of each
and the pages that show them. An experiment is not run again if its record has all of the file's
claims, and the rest of the file has changed only in comments, notes, headlines and causes. So a run
that was stopped goes on where it was. With --shard i/n only every n-th experiment is
run; any run writes the pages from all the records that are there. With --pictures nothing is measured:
the pictures are drawn anew from the records, series over time by a run of one seed.`,
		RunE: func(c *cobra.Command, args []string) error {
			i, n, err := parseShard(shard)
			if err != nil {
				return err
			}
			all, err := builtins()
			if err != nil {
				return err
			}
			todo, err := chosen(all, args)
			if err != nil {
				return err
			}
			for k, f := range todo {
				if k%n != i {
					continue
				}
				if pictures {
					rec, err := experiment.ReadRecord(os.DirFS(records), f.Name)
					if err == nil && rec != nil {
						err = f.Redraw(c.Context(), pages, rec)
					}
					if err != nil {
						return err
					}
				} else if err := makeFigure(c, f, records, pages, full, force); err != nil {
					return err
				}
			}
			return experiment.WritePages(pages, records, all)
		},
	}
	c.Flags().StringVar(&records, "records", "sim/experiment/results", "directory of the records")
	c.Flags().StringVar(&pages, "pages", "docs/results", "directory of the pages and pictures")
	c.Flags().StringVar(&shard, "shard", "0/1", "run only shard i of n, i from 0 to n-1")
	c.Flags().BoolVar(&force, "force", false, "run figures that have a record too")
	c.Flags().BoolVar(&pictures, "pictures", false, "redraw the pictures of recorded figures without running them")
	c.Flags().BoolVar(&full, "full", false, "run at the papers' scale if a file's default scale is smaller")
	return c
}

func chosen(all []*experiment.File, names []string) (files []*experiment.File, err error) {
	want := map[string]bool{}
	for _, name := range names {
		want[name] = true
	}
	for _, f := range all {
		if f.Figure != nil && (len(names) == 0 || want[f.Name]) {
			files = append(files, f)
			delete(want, f.Name)
		}
	}
	for name := range want {
		return nil, fmt.Errorf("%q has no figure; see headgate sim list", name)
	}
	return files, nil
}

func makeFigure(c *cobra.Command, f *experiment.File, records, pages string, full, force bool) error {
	rec, err := experiment.ReadRecord(os.DirFS(records), f.Name)
	if err != nil {
		return err
	}
	if full && f.HasFull {
		if f, err = experiment.OpenFull(f.Name); err != nil {
			return err
		}
	}
	if rec != nil && f.Current(rec) && rec.Full == f.Full && !force {
		fmt.Fprintf(c.OutOrStdout(), "%s: has its record\n", f.Name)
		return nil
	}
	show := command.NewProgress(c.ErrOrStderr())
	rep, err := (&experiment.Batch{File: f, Seed: 1, Seeds: f.Seeds, Shards: 1, Watch: show.Update}).Run(c.Context())
	show.Clear()
	if err != nil {
		return err
	}
	if rep.Interrupted {
		return errInterrupted
	}
	if rec, err = f.Record(rep); err != nil {
		return err
	}
	if err := os.MkdirAll(pages, 0o755); err != nil {
		return err
	}
	if err := f.WritePictures(pages, rep, "svg"); err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "%s: %s, %.3g s of CPU time\n", f.Name, experiment.Sum(rec.Judgements), rec.CPUSeconds)
	return rec.Write(records)
}

// errCycle makes the command fail after it has printed the cycle.
var errCycle = errors.New("the routes have a cyclic buffer dependency")

// cyclesOf is the result for the fabric of a variant. The variants after it with the same result have no entry.
type cyclesOf struct {
	Experiment string `json:"experiment"`
	Variant    string `json:"variant"`
	Text       string `json:"text"`
}

func newSimCyclesCommand() *cobra.Command {
	var failures int
	c := &cobra.Command{
		Use:   "cycles NAME|FILE.yaml",
		Short: "Check whether an experiment's paths can deadlock under PFC, with all links and after link failures",
		Long: `Check whether an experiment's paths can deadlock under PFC, with all links and after link failures.
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
