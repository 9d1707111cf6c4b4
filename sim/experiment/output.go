package experiment

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
)

// WriteDir writes a report below dir/<experiment>: report.json (from which Merge can build everything else),
// table.txt, measures.csv, summary.csv (measures over seeds), groups.csv, a series per run, and plots as PNG and
// SVG. One shard of several writes only its report. If runs have kept flows, both also write these. WriteDir
// returns the files written.
func (r *Report) WriteDir(dir string) ([]string, error) {
	dir = filepath.Join(dir, r.Experiment)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	w := &writer{dir: dir}
	for _, o := range r.Outcomes {
		if o.Flows != nil {
			w.csv("flows-"+runName(o)+".csv", flowRows(o.Flows))
		}
	}
	if r.Shards > 1 {
		w.json(fmt.Sprintf("shard-%d-of-%d.json", r.Shard, r.Shards), r)
		return w.files, w.err
	}
	w.json("report.json", r)
	w.table(r)
	w.csv("measures.csv", r.measureRows())
	w.csv("summary.csv", r.summaryRows())
	w.csv("groups.csv", r.groupRows())
	for _, o := range r.Outcomes {
		w.csv("series-"+runName(o)+".csv", o.seriesRows())
	}
	if w.err == nil {
		w.plots(r)
	}
	return w.files, w.err
}

// runName returns the name of a run for its files.
func runName(o *Outcome) string {
	name := "seed" + strconv.FormatUint(o.Seed, 10)
	if o.Variant != "" {
		name = fileWord(o.Variant) + "-" + name
	}
	return name
}

// fileWord replaces characters that do not belong in a file name.
func fileWord(s string) string {
	out := []rune(s)
	for i, c := range out {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '+') || i == 0 && c == '.' {
			out[i] = '_'
		}
	}
	return string(out)
}

// writer writes files until one fails.
type writer struct {
	dir   string
	files []string
	err   error
}

// write makes a file appear whole or not at all.
func (w *writer) write(name string, fill func(*os.File) error) {
	if w.err != nil {
		return
	}
	f, err := os.CreateTemp(w.dir, ".partial-*")
	if err != nil {
		w.err = fmt.Errorf("output: %w", err)
		return
	}
	path := filepath.Join(w.dir, name)
	err = fill(f)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		w.err = fmt.Errorf("output %s: %w", path, errors.Join(err, os.Remove(f.Name())))
		return
	}
	w.files = append(w.files, path)
}

func (w *writer) json(name string, v any) {
	w.write(name, func(f *os.File) error {
		e := json.NewEncoder(f)
		e.SetIndent("", " ")
		return e.Encode(v)
	})
}

func (w *writer) table(r *Report) {
	w.write("table.txt", func(f *os.File) error { return r.WriteTable(f) })
}

func (w *writer) csv(name string, rows [][]string) {
	w.write(name, func(f *os.File) error {
		c := csv.NewWriter(f)
		if err := c.WriteAll(rows); err != nil {
			return err
		}
		return c.Error()
	})
}

func num(v float64) string { return strconv.FormatFloat(v, 'g', 8, 64) }

func (r *Report) measureRows() [][]string {
	rows := [][]string{{"variant", "seed", "measure", "value", "unit", "reference"}}
	for _, o := range r.Outcomes {
		for _, m := range o.Measures {
			rows = append(rows, []string{o.Variant, strconv.FormatUint(o.Seed, 10), m.Name, num(m.Value), m.Unit, m.Paper})
		}
	}
	return rows
}

func (r *Report) groupRows() [][]string {
	rows := [][]string{{"variant", "seed", "group", "flows", "ended", "bytes", "fct_mean_us", "fct_min_us", "fct_p50_us", "fct_p95_us", "fct_p99_us", "fct_max_us", "slowdown_mean", "slowdown_p50", "slowdown_p99"}}
	for _, o := range r.Outcomes {
		for _, g := range o.Groups {
			rows = append(rows, []string{
				o.Variant, strconv.FormatUint(o.Seed, 10), g.Name, strconv.Itoa(g.Flows), strconv.Itoa(g.Done), strconv.FormatInt(g.Bytes, 10),
				num(g.FCT.Mean), num(g.FCT.Min), num(g.FCT.P50), num(g.FCT.P95), num(g.FCT.P99), num(g.FCT.Max),
				num(g.Slowdown.Mean), num(g.Slowdown.P50), num(g.Slowdown.P99),
			})
		}
	}
	return rows
}

func (o *Outcome) seriesRows() [][]string {
	head := []string{"time_us"}
	for _, g := range o.Series.Groups {
		head = append(head, "goodput_gbps "+g)
	}
	for _, q := range o.Series.Queues {
		head = append(head, "queue_kb "+q)
	}
	head = append(head, o.Series.Gauges...)
	rows := [][]string{head}
	for i, t := range o.Series.Time {
		row := []string{num(t)}
		for g := range o.Series.Groups {
			row = append(row, num(o.Series.Goodput[g][i]))
		}
		for q := range o.Series.Queues {
			row = append(row, num(o.Series.Queue[q][i]))
		}
		for g := range o.Series.Gauges {
			row = append(row, num(o.Series.Gauge[g][i]))
		}
		rows = append(rows, row)
	}
	return rows
}

// Merge reads the shard reports of one experiment from a directory and joins them. Shards of different experiments
// are an error. If runs are missing, the report is marked as interrupted.
func Merge(dir string) (*Report, error) {
	names, err := filepath.Glob(filepath.Join(dir, "shard-*-of-*.json"))
	if err != nil {
		return nil, fmt.Errorf("merge %s: %w", dir, err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("merge %s: %w: no shard-*-of-*.json", dir, fs.ErrNotExist)
	}
	var whole *Report
	shards := map[int]*Report{}
	for _, n := range names {
		text, err := os.ReadFile(n)
		if err != nil {
			return nil, fmt.Errorf("merge: %w", err)
		}
		part := &Report{}
		if err := json.Unmarshal(text, part); err != nil {
			return nil, fmt.Errorf("merge %s: %w", n, err)
		}
		if whole == nil {
			head := *part
			whole = &head
			whole.Outcomes, whole.Performance, whole.Interrupted = nil, Performance{}, false
		}
		if part.Experiment != whole.Experiment || part.Seed != whole.Seed || part.Seeds != whole.Seeds || part.Shards != whole.Shards || part.Expected != whole.Expected {
			return nil, fmt.Errorf("merge %s: is of %s, seeds %d+%d, %d shards; the others are of %s, seeds %d+%d, %d shards",
				n, part.Experiment, part.Seed, part.Seeds, part.Shards, whole.Experiment, whole.Seed, whole.Seeds, whole.Shards)
		}
		if shards[part.Shard] != nil {
			return nil, fmt.Errorf("merge %s: shard %d is there twice", n, part.Shard)
		}
		shards[part.Shard] = part
	}
	whole.join(shards)
	whole.fillGaps()
	if f, err := Open(whole.Experiment); err == nil { // only for our own experiments, because another file may be gone
		whole.Judgements = f.Judge(whole)
	}
	return whole, nil
}

// join adds the shards' outcomes in the order in which one process would have had them.
func (r *Report) join(shards map[int]*Report) {
	next := make([]int, r.Shards)
	for i := range r.Expected {
		s := shards[i%r.Shards]
		if s == nil || s.Interrupted && len(s.Outcomes) <= next[i%r.Shards] {
			r.Interrupted = true
			continue
		}
		if next[i%r.Shards] < len(s.Outcomes) {
			r.Outcomes = append(r.Outcomes, s.Outcomes[next[i%r.Shards]])
			next[i%r.Shards]++
		}
	}
	for _, s := range shards {
		p, q := &r.Performance, &s.Performance
		p.PacketHops += q.PacketHops
		p.Events += q.Events
		p.WallSeconds = max(p.WallSeconds, q.WallSeconds)
		p.CPUSeconds += q.CPUSeconds
		p.Allocations += q.Allocations
		p.AllocatedBytes += q.AllocatedBytes
		p.PeakMemory, p.PeakPackets, p.Cores = max(p.PeakMemory, q.PeakMemory), max(p.PeakPackets, q.PeakPackets), max(p.Cores, q.Cores)
		r.Interrupted = r.Interrupted || s.Interrupted
	}
	r.Performance.HopsPerCPUSecond = float64(r.Performance.PacketHops) / max(r.Performance.CPUSeconds, 1e-9)
	r.Shard, r.Shards = 0, 1
}

// byVariant groups a report's outcomes, in the order of the variants.
func (r *Report) byVariant() (names []string, of map[string][]*Outcome) {
	of = map[string][]*Outcome{}
	for _, o := range r.Outcomes {
		if len(of[o.Variant]) == 0 {
			names = append(names, o.Variant)
		}
		of[o.Variant] = append(of[o.Variant], o)
	}
	return names, of
}

// WriteTable prints a report for people: the measures of each variant with the paper's numbers, then the flows of
// each group. Numbers are over the seeds, as Sample.String prints them.
func (r *Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", r.Experiment, r.Title)
	if r.Paper != "" {
		fmt.Fprintf(&b, "Paper: %s\n", r.Paper)
	}
	names, of := r.byVariant()
	b.WriteByte('\n')
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "variant\tmeasure\tvalue\tunit\treference")
	for _, s := range r.Summaries() {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", dash(s.Variant), s.Measure, s.Sample, s.Unit, s.Paper)
	}
	tw.Flush()
	b.WriteByte('\n')
	fmt.Fprintln(tw, "variant\tgroup\tflows\tended\tFCT mean µs\tp50\tp99\tslowdown mean\tp99")
	for _, n := range names {
		for i, g := range of[n][0].Groups {
			col := func(f func(*Group) float64) string {
				return sample(of[n], func(o *Outcome) float64 { return f(&o.Groups[i]) }).String()
			}
			fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", dash(n), g.Name,
				col(func(g *Group) float64 { return float64(g.Flows) }), col(func(g *Group) float64 { return float64(g.Done) }),
				col(func(g *Group) float64 { return g.FCT.Mean }), col(func(g *Group) float64 { return g.FCT.P50 }), col(func(g *Group) float64 { return g.FCT.P99 }),
				col(func(g *Group) float64 { return g.Slowdown.Mean }), col(func(g *Group) float64 { return g.Slowdown.P99 }))
		}
	}
	tw.Flush()
	r.verdicts(&b)
	r.footer(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// verdicts prints the judgements of the file's claims: the paper's number, ours with its
// spread over the seeds, their ratio and the verdict. It prints nothing without claims.
func (r *Report) verdicts(b *strings.Builder) {
	if len(r.Judgements) == 0 {
		return
	}
	tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "\nclaim\tpaper\tours\tratio\tverdict")
	for _, j := range r.Judgements {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", j.Claim, j.Paper, j.OursText(), j.ratioText(), j.Verdict)
	}
	tw.Flush()
	fmt.Fprintf(b, "verdict: %s\n", Sum(r.Judgements))
}

// OursText prints the mean of a judgement with its spread.
func (j *Judgement) OursText() string {
	if j.Ours == nil {
		return "–"
	}
	return spreadText(*j.Ours, j.Half, j.Low, j.High)
}

// ratioText prints the ratio of a judgement.
func (j *Judgement) ratioText() string {
	if j.Ratio == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f", *j.Ratio)
}

func (r *Report) footer(b *strings.Builder) {
	var drops, answers, lost uint64
	for _, o := range r.Outcomes {
		drops += o.Stats.Dropped
		answers += o.Stats.AnswersDropped
		lost += o.Stats.LostOnLinks
		if len(o.Deadlock) > 0 {
			fmt.Fprintf(b, "\ndeadlock in %s seed %d: %s", label(o.Variant), o.Seed, strings.Join(o.Deadlock, ", "))
		}
	}
	p := &r.Performance
	fmt.Fprintf(b, "\n%d of %d runs, packets conserved in each; %d dropped by buffers, %d lost on links\n", len(r.Outcomes), r.Expected, drops, lost)
	if answers > 0 {
		fmt.Fprintf(b, "WARNING: %d of the packets dropped by buffers were ACKs, NAKs or CNPs: their class is lossy, and lossless classes can take all of the shared pool; buffer.lossy_private, 0B by default, reserves memory for it\n", answers)
	}
	if p.CPUSeconds > 0 {
		fmt.Fprintf(b, "%.3g million packet-hops in %.3g CPU seconds: %.3g million per CPU second; %d allocations, %.3g MB peak memory\n",
			float64(p.PacketHops)/1e6, p.CPUSeconds, p.HopsPerCPUSecond/1e6, p.Allocations, float64(p.PeakMemory)/1e6)
		switch {
		case p.Cores > 1:
			fmt.Fprintf(b, "%d processors for each run, which could be %.3g times as fast as one; %d windows, %d of them in order\n", p.Cores, p.Parallelism, p.Windows, p.Serial)
		case p.Why != "":
			fmt.Fprintf(b, "one processor for each run: %s\n", p.Why)
		}
	}
	if r.Interrupted {
		b.WriteString("INTERRUPTED: some runs are missing or stopped early\n")
	}
}

// number prints five significant digits at most, and integers in full.
func number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e12 {
		return fmt.Sprintf("%.0f", v)
	}
	if math.Abs(v) >= 1e5 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.5g", v)
}

func dash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}
