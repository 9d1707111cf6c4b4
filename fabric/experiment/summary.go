package experiment

import (
	"math"
	"slices"
	"strconv"
)

// Summary is what a measure of a variant came to over seeds. All but the counts are NaN when no
// run has a value.
type Summary struct {
	Variant, Measure, Unit, Paper string
	Runs, With                    int // of With there is a value, such as a deadlock's onset
	Mean                          float64
	// Half is half the width of the 95 % confidence interval of the mean (Student's t); NaN
	// below two values.
	Half   float64
	Values []float64 // sorted
}

// Quantile returns the nearest-rank quantile of the values, NaN when there is none.
func (s *Summary) Quantile(q float64) float64 {
	if len(s.Values) == 0 {
		return math.NaN()
	}
	return quantile(s.Values, q)
}

// Summaries sums up each measure of each variant over the seeds, in their order.
func (r *Report) Summaries() []Summary {
	var out []Summary
	names, of := r.byVariant()
	for _, n := range names {
		for i, m := range of[n][0].Measures {
			s := Summary{Variant: n, Measure: m.Name, Unit: m.Unit, Paper: m.Paper, Runs: len(of[n])}
			for _, o := range of[n] {
				if v := o.Measures[i].Value; !math.IsNaN(v) {
					s.Values = append(s.Values, v)
				}
			}
			slices.Sort(s.Values)
			s.With, s.Mean = len(s.Values), stat(s.Values, "mean")
			s.Half = confidence(s.Values, s.Mean)
			out = append(out, s)
		}
	}
	return out
}

// confidence returns half the width of the 95 % confidence interval of a mean.
func confidence(values []float64, mean float64) float64 {
	n := float64(len(values))
	if n < 2 {
		return math.NaN()
	}
	sum := 0.0
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return student(len(values)-1) * math.Sqrt(sum/(n-1)/n)
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
		row := []string{s.Variant, s.Measure, s.Unit, strconv.Itoa(s.Runs), strconv.Itoa(s.With), num(s.Mean), num(s.Half)}
		for _, q := range []float64{0, 0.05, 0.25, 0.5, 0.75, 0.95, 1} {
			row = append(row, num(s.Quantile(q)))
		}
		rows = append(rows, append(row, s.Paper))
	}
	return rows
}
