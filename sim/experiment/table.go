package experiment

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

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

// WriteTable prints what a person wants to know of a report: the measures of each variant
// beside the paper's numbers, then the flows of each group. Numbers are over the seeds, as
// Sample.String prints them.
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
