package lab

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/hosts/law/registry"
	"github.com/headgate/headgate/internal/jsonfile"
	"github.com/headgate/headgate/internal/keydoc"
	"github.com/headgate/headgate/sim/experiment"
	"github.com/headgate/headgate/units"
)

func newSimCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "sim",
		Short: "Run experiments in the fabric simulator",
	}
	return command.OneOf(c, newSimListCommand(), newSimNewCommand(), newSimCheckCommand(), newSimExplainCommand(), newSimLawsCommand(), newSimRunCommand(), newSimMergeCommand(), newSimFiguresCommand(), newSimCyclesCommand())
}

func newSimListCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List the experiments that come with Headgate",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			files, err := builtins()
			if err != nil {
				return err
			}
			var rows []listed
			for _, f := range files {
				row, err := listRow(f)
				if err != nil {
					return err
				}
				rows = append(rows, row)
			}
			return command.Print(c, rows, func(w io.Writer) {
				command.Row(w, "EXPERIMENT", "FIGURE", "CPU TIME", "VERDICT", "TITLE")
				for _, r := range rows {
					command.Row(w, r.Name, r.Figure, r.Took, r.Verdict, r.Title)
				}
			})
		},
	}
	command.AddOutputFlag(c)
	return c
}

// builtins returns the experiments that come with Headgate: by paper, figure and name.
func builtins() ([]*experiment.File, error) {
	var files []*experiment.File
	for _, name := range experiment.Builtin() {
		f, err := experiment.Open(name)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	slices.SortStableFunc(files, func(a, b *experiment.File) int {
		return cmp.Or(cmp.Compare(paperOrder(a), paperOrder(b)), cmp.Compare(figureNumber(a), figureNumber(b)))
	})
	return files, nil
}

// figureNumber returns the number at the beginning of an experiment's figure number, 0 for none.
func figureNumber(f *experiment.File) (n int) {
	if f.Figure != nil {
		fmt.Sscan(strings.TrimRight(f.Figure.Number, "abcdefgh"), &n) //nolint:errcheck // a table's name has none
	}
	return n
}

func paperOrder(f *experiment.File) int {
	if f.Figure == nil {
		return len(experiment.Papers)
	}
	return slices.Index(experiment.Papers, f.Figure.Paper)
}

// listed is an experiment's line in the list: what it reproduces, and the duration and the outcome
// of its recorded run.
type listed struct {
	Name    string `json:"name"`
	Figure  string `json:"figure,omitempty"`
	Took    string `json:"cpu_time,omitempty"`
	Verdict string `json:"verdict,omitempty"`
	Title   string `json:"title"`
}

func listRow(f *experiment.File) (listed, error) {
	row := listed{Name: f.Name, Title: f.Title}
	if f.Figure != nil {
		row.Figure, row.Verdict = f.Figure.Paper+" "+f.Figure.Number, "not run"
	}
	rec, stale, err := f.Recorded()
	if err == nil && rec != nil {
		row.Took, row.Verdict = fmt.Sprintf("%.3g s", rec.CPUSeconds), experiment.Sum(rec.Judgements)
		if stale {
			row.Verdict += " (stale: of another text of the file)"
		}
	}
	return row, err
}

// experimentName completes the name of an experiment, or of a file.
func experimentName(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return command.Matching(experiment.Builtin(), typed), cobra.ShellCompDirectiveDefault
}

func newSimLawsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "laws",
		Short: "Describe the laws that experiments can name, and their parameters",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := io.WriteString(c.OutOrStdout(), registry.Help(registry.Kinds))
			return err
		},
	}
}

func newSimNewCommand() *cobra.Command {
	var from string
	c := &cobra.Command{
		Use:   "new FILE.yaml",
		Short: "Write a runnable experiment file to start from",
		Long: `Write an experiment file to begin with: a commented one, or with --from one of those that come with Headgate.
The file runs as it is. A file that is there already stays.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if e := filepath.Ext(args[0]); e != ".yaml" && e != ".yml" {
				return fmt.Errorf("FILE: %q is not allowed: want a name that ends in .yaml", args[0])
			}
			text, err := experiment.Text(from)
			if err != nil {
				return fmt.Errorf("--from: %w", err)
			}
			f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
			if err != nil {
				return err
			}
			_, err = f.Write(text)
			if err = errors.Join(err, f.Close()); err == nil {
				fmt.Fprintf(c.OutOrStdout(), "wrote %s; next: headgate sim run %[1]s\n", args[0])
			}
			return err
		},
	}
	c.Flags().StringVar(&from, "from", "", "begin with the `experiment` of this name; see sim list")
	command.CompleteFlag(c, "from", experiment.Builtin()...)
	return c
}

func newSimCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "check NAME|FILE.yaml",
		Short:             "Read an experiment file and print all its faults with their lines; nothing runs",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: experimentName,
		RunE: func(c *cobra.Command, args []string) error {
			f, err := experiment.Check(args[0])
			if err == nil {
				fmt.Fprintf(c.OutOrStdout(), "%s is right: %s, %s, %s\n", args[0], units.Count(len(f.Plans), "variant"),
					units.Count(len(f.Plans[0].Measures), "measure"), units.Count(len(f.Claims), "claim"))
			}
			return err
		},
	}
}

func newSimExplainCommand() *cobra.Command {
	var schema bool
	c := &cobra.Command{
		Use:   "explain [KEY]",
		Short: "Explain a key of an experiment file: meaning, allowed values and default",
		Long: `Explains a key such as flows.load, with those below it: what may stand there, what does by default, and with which kinds. For
measures.what it lists what can be measured, with units; for laws.KIND, such as laws.swift, the parameters of a law. Without a key it lists the sections. docs/reference/experiment.md has all of them.
With --schema it prints a JSON schema of the file for editors.`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, typed string) (list []string, _ cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			keys, _ := experiment.Keys() // without keys only the laws are completed
			for _, k := range keys {
				list = append(list, keydoc.Plain(k.Path))
			}
			for _, kind := range registry.Names() {
				list = append(list, "laws."+kind)
			}
			return command.Matching(list, typed), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			path := strings.Join(args, "")
			o, err := command.OutputOf(c)
			if err != nil {
				return err
			}
			keys, err := experiment.Keys()
			if err != nil {
				return err
			}
			switch {
			case schema && path != "":
				return fmt.Errorf("--schema takes no KEY, got %q", path)
			case schema:
				return jsonfile.Encode(o.Out, keydoc.Schema(keys))
			}
			law, isLaw := strings.CutPrefix(keydoc.Plain(path), "laws.")
			params := slices.DeleteFunc(experiment.LawParameters(), func(p experiment.LawParameter) bool { return p.Name != law && !slices.Contains(p.Kinds, law) })
			if kind := registry.Find(law); isLaw && kind != nil {
				return o.Value(params, func(w io.Writer) {
					fmt.Fprintf(w, "%s: %s\n\n", kind.Name, kind.About)
					drawParameters(w, params, "KEY", func(p experiment.LawParameter) string { return p.Name })
				})
			}
			if err := command.Explain(o, keys, path, "the experiment file"); err != nil || o.Format != command.Table {
				return err
			}
			switch {
			case isLaw && len(params) > 0:
				fmt.Fprintln(o.Out)
				return o.Tabs(func(w io.Writer) {
					drawParameters(w, params, "LAW", func(p experiment.LawParameter) string { return strings.Join(p.Kinds, ", ") })
				})
			case keydoc.Plain(path) != "measures.what":
				return nil
			}
			list, err := experiment.AllMeasures()
			if err != nil {
				return err
			}
			fmt.Fprintln(o.Out)
			return o.Tabs(func(w io.Writer) {
				command.Row(w, "WHAT", "UNIT", "MEASURES")
				for _, m := range list {
					command.Row(w, m.What, m.Unit, m.Text)
				}
			})
		},
	}
	command.AddOutputFlag(c)
	c.Flags().BoolVar(&schema, "schema", false, "print a JSON schema of experiment files")
	return c
}

// drawParameters prints parameters of laws, with a first column of the caller's.
func drawParameters(w io.Writer, list []experiment.LawParameter, title string, first func(experiment.LawParameter) string) {
	command.Row(w, title, "DEFAULT", "ALLOWED", "MEANING")
	for _, p := range list {
		command.Row(w, first(p), p.Default, p.Allowed, p.Text)
	}
}

func newSimRunCommand() *cobra.Command {
	var (
		b       experiment.Batch
		results reportFlags
		shard   string
		full    bool
	)
	c := &cobra.Command{
		Use:   "run NAME|FILE.yaml",
		Short: "Run an experiment and print its results beside the paper's",
		Long: `Run an experiment and print its results beside the paper's. The exit code is 1 where a claim of the
file disagrees with them.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: experimentName,
		RunE: func(c *cobra.Command, args []string) error {
			open := experiment.Open
			if full {
				open = experiment.OpenFull
			}
			f, err := open(args[0])
			if err != nil {
				return err
			}
			b.File = f
			if !c.Flags().Changed("seeds") {
				b.Seeds = f.Seeds
			}
			if b.Shard, b.Shards, err = parseShard(shard); err != nil {
				return err
			}
			if b.Jobs > 0 && b.Cores > 0 {
				// No more processors than are asked for: between idle ones Go's scheduler moves a run to and fro.
				runtime.GOMAXPROCS(min(runtime.GOMAXPROCS(0), b.Jobs*b.Cores))
			}
			show := command.NewProgress(c.ErrOrStderr())
			b.Watch = show.Update
			rep, err := b.Run(c.Context())
			show.Clear()
			if err != nil {
				return err
			}
			return results.deliver(c, rep, f)
		},
	}
	c.Flags().Uint64Var(&b.Seed, "seed", 1, "seed of the first run")
	c.Flags().IntVar(&b.Seeds, "seeds", 1, "number of seeds, from --seed on (default: the file's)")
	c.Flags().BoolVar(&full, "full", false, "run at the paper's scale if the file's default scale is smaller")
	c.Flags().IntVar(&b.Jobs, "jobs", 0, "parallel runs (0: as many as the processors allow)")
	c.Flags().IntVar(&b.Cores, "cores", 0, "processors per run (0: an equal part of all); the results do not depend on it")
	results.add(c)
	c.Flags().StringVar(&shard, "shard", "0/1", "run only shard i of n, i from 0 to n-1, for job arrays; see sim merge")
	return c
}

func newSimMergeCommand() *cobra.Command {
	var results reportFlags
	c := &cobra.Command{
		Use:   "merge DIR",
		Short: "Join the reports that shards of one experiment wrote to a directory",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			rep, err := experiment.Merge(args[0])
			if err != nil {
				return err
			}
			return results.deliver(c, rep, nil)
		},
	}
	results.add(c)
	return c
}

func parseShard(s string) (i, n int, err error) {
	a, b, ok := strings.Cut(s, "/")
	i, errA := strconv.Atoi(a)
	n, errB := strconv.Atoi(b)
	if !ok || errA != nil || errB != nil || n < 1 || i < 0 || i >= n {
		return 0, 0, fmt.Errorf("--shard %q: want i/n with i from 0 to n-1", s)
	}
	return i, n, nil
}

// errInterrupted makes the command fail after it has written its partial results.
const errInterrupted = command.Interrupted("the results are partial")

// reportFlags say where a report goes.
type reportFlags struct {
	out string
	raw bool
}

func (r *reportFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&r.out, "out", "", "write tables, CSV series and plots below this directory")
	c.Flags().BoolVar(&r.raw, "json", false, "print the report as JSON, as -o json does")
	command.AddOutputFlag(c)
}

// deliver prints and writes a report, and draws the pictures of its file if the file is known. It returns an
// error if the results disagree with the claims of the experiment.
func (r *reportFlags) deliver(c *cobra.Command, rep *experiment.Report, of *experiment.File) error {
	o, err := command.OutputOf(c)
	if r.raw {
		o.Format = command.JSON
	}
	if err == nil && o.Format == command.Table {
		err = rep.WriteTable(o.Out)
	} else if err == nil {
		err = o.Value(rep, nil)
	}
	if err != nil {
		return err
	}
	if r.out != "" {
		files, err := rep.WriteDir(r.out)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.ErrOrStderr(), "wrote %s, the last %s\n", units.Count(len(files), "file"), files[len(files)-1])
	}
	if rep.Interrupted {
		return errInterrupted
	}
	if of != nil && r.out != "" && rep.Shards == 1 {
		if err := of.WritePictures(filepath.Join(r.out, of.Name), rep, "svg", "png"); err != nil {
			return err
		}
	}
	for _, j := range rep.Judgements {
		if j.Verdict == experiment.Disagrees || j.Verdict == experiment.NoValue {
			return fmt.Errorf("the claims of %s: %s", rep.Experiment, experiment.Sum(rep.Judgements))
		}
	}
	return nil
}
