package compare

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// WriteTable writes the report for people.
func (r *Report) WriteTable(w io.Writer) error {
	fmt.Fprintf(w, "%s\n%s\nrates and times at line rate: measured at %g Mb/s, bytes as they are, times by 1/%d\n\n", r.Title, fold(r.Source, 100), r.Emulated, r.Scale)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	if r.scenario.Victim != "" {
		r.bufferRows(t)
	} else {
		r.queueRows(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	worst := 0.0
	for _, v := range r.Variants {
		worst = max(worst, v.WorstLagMS)
	}
	fmt.Fprintf(w, "\nworst lag behind the wall clock: %.0f ms\n", worst)
	if worst > busyMS {
		fmt.Fprintf(w, "this machine was too busy: what the controller does by its clock (SPFC's states, PACC at the controller) came early for the fabric\n")
	}
	for _, c := range r.Checks {
		mark := "yes"
		if !c.OK {
			mark = "NO "
		}
		fmt.Fprintf(w, "%s  %s: %s\n", mark, c.What, c.Measured)
	}
	return nil
}

// busyMS is from which lag on a report warns: half of SPFC's period, the shortest that a
// controller keeps here but for PACC's.
const busyMS = 300

// bufferRows compares buffer policies.
func (r *Report) bufferRows(w io.Writer) {
	fmt.Fprintf(w, "policy\tPAUSE frames\tpause time µs\t%s before Gb/s\tduring\tlost\tlowest\tpeak shared KB\theadroom KB\tinsurance KB\tqueue KB\tburst done µs\tlossless drops\t\n", r.scenario.Victim)
	for _, v := range r.Variants {
		var p Pools
		for _, sw := range v.Pools {
			p.Shared, p.Headroom, p.Insurance = max(p.Shared, sw.Shared), max(p.Headroom, sw.Headroom), max(p.Insurance, sw.Insurance)
		}
		done := "not all"
		if b := v.Flows[len(v.Flows)-1]; b.Done == b.Flows {
			done = fmt.Sprintf("%.0f", b.Last)
		}
		fmt.Fprintf(w, "%s\t%d\t%.0f\t%.1f\t%.1f\t%+.0f %%\t%.1f\t%.0f\t%.0f\t%.0f\t%.0f\t%s\t%d\t\n", v.Variant, v.Pause.Frames, v.Pause.TimeUS,
			v.Victim.Before, v.Victim.During, -v.Victim.Lost, v.Victim.Lowest, float64(p.Shared)/1e3, float64(p.Headroom)/1e3,
			float64(p.Insurance)/1e3, v.Queue.PeakKB, done, v.LosslessDrops)
	}
}

// queueRows compares who keeps a queue short.
func (r *Report) queueRows(w io.Writer) {
	fmt.Fprint(w, "variant\tqueue peak KB\tsettled KB\t5 … 95 %\tsettled after µs\t")
	for _, f := range r.Variants[0].Flows {
		fmt.Fprintf(w, "%s Gb/s\tCNPs\t", f.Name)
	}
	fmt.Fprint(w, "burst done µs\tlost packets\t\n")
	for _, v := range r.Variants {
		settled := "never"
		if v.Queue.Settled {
			settled = fmt.Sprintf("%.0f", v.Queue.SettledUS)
		}
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.0f … %.0f\t%s\t", v.Variant, v.Queue.PeakKB, v.Queue.SettledKB, v.Queue.LowKB, v.Queue.HighKB, settled)
		for _, f := range v.Flows {
			fmt.Fprintf(w, "%.2f\t%d\t", f.During, f.CNPs)
		}
		last := v.Flows[len(v.Flows)-1]
		fmt.Fprintf(w, "%.0f\t%d\t\n", last.Last, v.lostPackets())
	}
}

// lostPackets adds up the packets of a variant that anything dropped.
func (v *Result) lostPackets() uint64 {
	return v.Losses.Queues + v.Losses.Pipelines + v.Losses.Links + v.Losses.Switches + v.LosslessDrops
}

// noLoss checks that no variant lost a packet, but for those that may.
func noLoss(r *Report, may ...string) Check {
	var n uint64
	for _, v := range r.Variants {
		if !slices.Contains(may, v.Variant) {
			n += v.lostPackets()
		}
	}
	what := "no lossless packet is dropped"
	if len(may) > 0 {
		what += fmt.Sprintf(" (but by %s, which may)", may[0])
	}
	return check(n == 0, what, "%d", n)
}

// fold breaks text into lines of at most width bytes at spaces.
func fold(text string, width int) string {
	out, line := "", 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case line+1+len(word) > width:
			out += "\n"
			line = 0
		default:
			out += " "
			line++
		}
		out += word
		line += len(word)
	}
	return out
}
