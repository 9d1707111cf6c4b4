package experiment

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Sample is a number in the runs of a variant, which differ by their seeds.
type Sample struct {
	Runs   int       // len(Values) of them have a value: without a deadlock there is no onset
	Values []float64 // sorted
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
func (s Sample) Mean() float64 { return stat(s.Values, "mean") }

// Half returns half the width of the 95 % confidence interval of the mean (Student's t), NaN
// below two values.
func (s Sample) Half() float64 {
	n := float64(len(s.Values))
	if n < 2 {
		return math.NaN()
	}
	sum, mean := 0.0, s.Mean()
	for _, v := range s.Values {
		sum += (v - mean) * (v - mean)
	}
	return student(len(s.Values)-1) * math.Sqrt(sum/(n-1)/n)
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

// student returns the 97.5 % quantile of Student's t distribution.
func student(freedom int) float64 {
	exact := []float64{
		12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
		2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
	}
	if freedom <= len(exact) {
		return exact[freedom-1]
	}
	// Abramowitz and Stegun, 26.7.5, which is off by less than 0.0005 from 20 on.
	const z = 1.959964
	n := float64(freedom)
	return z + (z*z*z+z)/(4*n) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*n*n)
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
