package experiment

import (
	"fmt"
	"math"
	"regexp"
	"testing"
)

// made is a report with invented numbers for a claim's pairs, without a run.
func (c *Claim) made(number func(i int) float64) *Report {
	runs := map[string]*Outcome{}
	set := func(r reference, v float64) {
		o := runs[r.variant]
		if o == nil {
			o = &Outcome{Variant: r.variant, Seed: 1}
			runs[r.variant] = o
		}
		o.Measures = append(o.Measures, Value{Name: r.measure, Value: v})
	}
	for _, r := range c.over {
		set(r, 1)
	}
	for i, r := range c.of {
		set(r, number(i))
	}
	r := &Report{}
	for _, o := range runs {
		r.Outcomes = append(r.Outcomes, o)
	}
	return r
}

// right returns a number with which a claim that has only bounds agrees.
func (c *Claim) right() float64 {
	switch {
	case math.IsNaN(c.below):
		return c.above + max(math.Abs(c.above), 1)
	case math.IsNaN(c.above):
		return c.below - max(math.Abs(c.below), 1)
	}
	return (c.above + c.below) / 2
}

// onePoint returns a number v out of a claim's bounds. A claim along a line must not agree if one point has v and all others
// are right. guarded is false for a claim that one point within the bounds is enough.
func (c *Claim) onePoint() (v float64, guarded bool) {
	if c.greatest {
		return c.below + max(math.Abs(c.below), 1)/1000, !math.IsNaN(c.below)
	}
	return c.above - max(math.Abs(c.above), 1)/1000, !math.IsNaN(c.above)
}

// oneSuffices finds the words of a claim that one point of a line is enough.
var oneSuffices = regexp.MustCompile(`best of|up to|can be`)

// wrong are numbers with which a claim must not agree.
func (c *Claim) wrong() (list []float64) {
	beyond := func(v, by float64) float64 { return v + by*max(math.Abs(v), 1)/1000 }
	if !math.IsNaN(c.paper) {
		w := max(c.within*math.Abs(c.paper), 0.001)
		list = append(list, beyond(c.paper+w, 1), beyond(c.paper-w, -1))
		if c.over != nil && c.paper != 1 {
			list = append(list, 1) // nothing differs
		}
	}
	if !math.IsNaN(c.above) {
		list = append(list, beyond(c.above, -1), c.above)
	}
	if !math.IsNaN(c.below) {
		list = append(list, beyond(c.below, 1), c.below)
	}
	return list
}

var trendWords = regexp.MustCompile(`\b(rises|falls|grows|rise|fall|grow) (with|as)\b`)

// TestClaimsCanFail gives each claim invented results with which it must not agree: numbers beyond its tolerance or
// bounds, no difference where the paper has one, and the opposite of a trend. A claim with bounds along a line must not
// agree if one point is out of bounds. A claim about a buffer must have a limited buffer, and a trend must have more
// than two points.
func TestClaimsCanFail(t *testing.T) {
	for _, name := range Builtin() {
		f, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		buffers := map[string]bool{}
		for _, p := range f.Plans {
			buffers[p.Variant] = p.Config.NewBuffer != nil
		}
		for i := range f.Claims {
			c := f.Claims[i]
			one := &File{Claims: []Claim{c}}
			wrong := func(what string, number func(i int) float64) {
				if j := one.Judge(c.made(number)); j[0].Verdict == Agrees {
					t.Errorf("%s: %q agrees with %s", name, c.Name, what)
				}
			}
			if c.Source == "" {
				t.Errorf("%s: %q names no sentence or figure", name, c.Name)
			}
			if c.trend {
				sign := 1.0
				if math.IsNaN(c.above) {
					sign = -1
				}
				wrong("the opposite trend", func(i int) float64 { return -sign * float64(i) })
				wrong("no trend", func(int) float64 { return 1 })
				continue
			}
			for _, v := range c.wrong() {
				wrong(number(v), func(int) float64 { return v })
			}
			switch v, guarded := c.onePoint(); {
			case len(c.of) == 1 || !math.IsNaN(c.paper):
			case guarded:
				for at := range c.of {
					wrong(fmt.Sprintf("%s at point %d alone", number(v), at), func(i int) float64 {
						if i == at {
							return v
						}
						return c.right()
					})
				}
			case !oneSuffices.MatchString(c.Name + c.Source + c.Why):
				t.Errorf("%s: %q agrees if one point of its line does, and does not say that this is the paper's claim", name, c.Name)
			}
			if trendWords.MatchString(c.Name) {
				t.Errorf("%s: %q is of two points, want a trend along a line", name, c.Name)
			}
			for _, r := range c.of {
				if lossOrPause(f, r) && !buffers[r.variant] {
					t.Errorf("%s: %q is of a buffer without limit, which neither drops nor pauses", name, c.Name)
				}
			}
		}
	}
}

// lossOrPause reports whether a measure can only be non-zero with a limited buffer.
func lossOrPause(f *File, r reference) bool {
	for _, p := range f.Plans {
		for _, me := range p.Measures {
			if p.Variant == r.variant && me.Name == r.measure {
				for _, what := range []string{"drops", "pauses", "pause_rate", "pause_time"} {
					if me.meter == meters[what] {
						return true
					}
				}
			}
		}
	}
	return false
}

// TestTrend: 1 for values that always rise, −1 for values that always fall, seed by seed.
func TestTrend(t *testing.T) {
	c := Claim{trend: true, paper: math.NaN(), than: math.NaN(), above: 0.5, below: math.NaN()}
	for _, x := range []string{"a", "b", "c", "d"} {
		c.of = append(c.of, reference{x, "m"})
	}
	for _, tt := range []struct {
		of   []float64
		want float64
	}{
		{[]float64{1, 2, 3, 4}, 1}, {[]float64{4, 3, 2, 1}, -1}, {[]float64{1, 1, 1, 1}, 0}, {[]float64{1, 3, 2, 4}, 4.0 / 6}, {[]float64{1, math.NaN(), 3, 4}, math.NaN()},
	} {
		j := (&File{Claims: []Claim{c}}).Judge(c.made(func(i int) float64 { return tt.of[i] }))[0]
		if math.IsNaN(tt.want) != (j.Ours == nil) || j.Ours != nil && math.Abs(*j.Ours-tt.want) > 1e-9 {
			t.Errorf("%v: %s, want %g", tt.of, j.OursText(), tt.want)
		}
	}
}
