package experiment

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Sample is a number in the runs of a variant, which differ by their seeds.
type Sample struct {
	Runs   int       // len(Values) of them have a value: without a deadlock there is no onset
	Values []float64 // sorted
}

// SampleOf reads a number of each run of a variant.
func (r *Report) SampleOf(variant string, number func(*Outcome) float64) Sample {
	_, of := r.byVariant()
	return sample(of[variant], number)
}

// sample reads a number of each of some runs. NaN and infinities are no values.
func sample(runs []*Outcome, number func(*Outcome) float64) Sample {
	s := Sample{Runs: len(runs)}
	for _, o := range runs {
		if v := number(o); !math.IsNaN(v) && !math.IsInf(v, 0) {
			s.Values = append(s.Values, v)
		}
	}
	slices.Sort(s.Values)
	return s
}

// Mean returns the mean of the values, NaN when there is none.
func (s Sample) Mean() float64 { return statistic(s.Values, "mean") }

// Half returns half the width of the 95 % confidence interval of the mean (Student's t), NaN
// below two values.
func (s Sample) Half() float64 {
	n := float64(len(s.Values))
	if n < 2 {
		return math.NaN()
	}
	t := distuv.StudentsT{Sigma: 1, Nu: n - 1}
	return t.Quantile(0.975) * stat.StdErr(stat.StdDev(s.Values, nil), n)
}

// Quantile returns the nearest-rank quantile of the values, NaN when there is none.
func (s Sample) Quantile(q float64) float64 {
	if len(s.Values) == 0 {
		return math.NaN()
	}
	return quantile(s.Values, q)
}

// String prints the mean with its confidence interval and the lowest and highest value, and in how
// many runs there was one where that is not all: a deadlock "in 3 of 8".
func (s Sample) String() string {
	text := spreadText(s.Mean(), s.Half(), s.Quantile(0), s.Quantile(1))
	if len(s.Values) < s.Runs && s.Runs > 1 {
		text += fmt.Sprintf(" in %d of %d", len(s.Values), s.Runs)
	}
	return text
}

// spreadText prints a mean, half the width of its confidence interval (NaN or 0 for none) and the range
// that the mean is of.
func spreadText(mean, half, low, high float64) string {
	switch {
	case math.IsNaN(mean):
		return "–"
	case low == high:
		return number(low)
	case half > 0:
		return fmt.Sprintf("%s ± %s (%s…%s)", number(mean), number(half), number(low), number(high))
	}
	return fmt.Sprintf("%s (%s…%s)", number(mean), number(low), number(high))
}

// Summary is what a measure of a variant came to.
type Summary struct {
	Variant, Measure, Unit, Paper string
	Sample
}

// Summaries sums up each measure of each variant over the seeds, in their order.
func (r *Report) Summaries() []Summary {
	var out []Summary
	names, of := r.byVariant()
	for _, n := range names {
		for i, m := range of[n][0].Measures {
			s := sample(of[n], func(o *Outcome) float64 { return o.Measures[i].Value })
			out = append(out, Summary{n, m.Name, m.Unit, m.Paper, s})
		}
	}
	return out
}

func (r *Report) summaryRows() [][]string {
	rows := [][]string{{"variant", "measure", "unit", "runs", "with_value", "mean", "ci95_half", "min", "p5", "p25", "p50", "p75", "p95", "max", "reference"}}
	for _, s := range r.Summaries() {
		row := []string{s.Variant, s.Measure, s.Unit, strconv.Itoa(s.Runs), strconv.Itoa(len(s.Values)), num(s.Mean()), num(s.Half())}
		for _, q := range []float64{0, 0.05, 0.25, 0.5, 0.75, 0.95, 1} {
			row = append(row, num(s.Quantile(q)))
		}
		rows = append(rows, append(row, s.Paper))
	}
	return rows
}
