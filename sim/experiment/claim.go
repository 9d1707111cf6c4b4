package experiment

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/yamlnode"
)

// Papers are the sources of the experiments' figures, in the order of `sim list`. "headgate" means our own
// figures, without a paper.
var Papers = []string{"dsh", "spfc", "pacc", "soze", "prioplus", "headgate"}

// Figure names the figure or table of a paper that an experiment reproduces.
type Figure struct {
	Paper  string `json:"paper"`  // one of Papers
	Number string `json:"number"` // as printed in the paper, such as 14 or 10a
}

// Claim is a number or a direction of a paper that an experiment can confirm. Its number is a measure of one
// variant, or the ratio of two measures.
type Claim struct {
	Name string
	// Source is the sentence or the figure of the paper that contains the claim.
	Source string
	// of and over are the numerators and denominators of the claim's ratios: one pair, or along a line of a sweep
	// one for each x. If over is empty the measures in of count as they are.
	of, over []reference
	greatest bool // the greatest number of several pairs counts, else the least
	mean     bool // their mean counts
	// trend uses Kendall's rank correlation of the numbers with x instead. It is 1 if each number is more than all
	// before, and −1 if each is less.
	trend bool
	// paper is the paper's number, NaN if the paper gives only a direction.
	paper  float64
	within float64 // tolerance, as a fraction of the paper's number
	// above and below bound the number if the paper gives only a direction. than is for a paper's number: if ours
	// misses it but is on the same side of than, the direction is right.
	above, below, than float64
	Why                string // the reason for the tolerance

	Headline bool   // the paper stresses this number, for example in its abstract
	Cause    string // heading, on the page of disagreements, of the measured cause of a miss
}

// reference names a measure of a variant.
type reference struct{ variant, measure string }

// Verdict is the outcome of a claim.
type Verdict string

// The verdicts, from best to worst.
const (
	Agrees    Verdict = "agrees"
	Direction Verdict = "direction only" // the number is wrong, its direction is right
	Disagrees Verdict = "disagrees"
	NoValue   Verdict = "no value" // no seed gave a number
)

var verdicts = []Verdict{Agrees, Direction, Disagrees, NoValue}

// Judgement compares a claim with the measurement.
type Judgement struct {
	Claim   string   `json:"claim"`
	Key     string   `json:"key"`                 // Claim.key
	Paper   string   `json:"paper"`               // the paper's number or bound, as text
	Ours    *float64 `json:"ours,omitempty"`      // mean over the seeds that have a number; nil for none
	Half    float64  `json:"ci95_half,omitempty"` // see Sample.Half; 0 below two seeds
	Low     float64  `json:"low,omitempty"`       // least of a seed
	High    float64  `json:"high,omitempty"`      // greatest of a seed
	Seeds   int      `json:"seeds"`               // seeds for which there is a number
	Ratio   *float64 `json:"ratio,omitempty"`     // ours over the paper's number
	Verdict Verdict  `json:"verdict"`
	Why     string   `json:"why,omitempty"`
}

// decodeClaims reads a file's claims. f must have its plans.
func (f *File) decodeClaims(root *yamlnode.Map) {
	root.Sub("figure", func(m *yamlnode.Map) {
		m.Need("paper", "number")
		f.Figure = &Figure{Paper: m.OneOf("paper", "", Papers...), Number: m.Text("number", "")}
	})
	f.Seeds = root.Int("seeds", 1, 1, 1000)
	root.Each("claims", func(m *yamlnode.Map) { f.Claims = append(f.Claims, f.decodeClaim(m)) })
	f.named(root, "headlines", func(c *Claim) { c.Headline = true })
	root.Each("causes", func(m *yamlnode.Map) {
		m.Need("heading")
		heading := m.Text("heading", "")
		if !m.Has("claims") {
			for i := range f.Claims {
				f.Claims[i].Cause = heading
			}
		}
		f.named(m, "claims", func(c *Claim) { c.Cause = heading })
	})
}

// ReadClaims reads the section claims of a text. The claims are about runs outside of the simulator, with the
// given variants and measures.
func ReadClaims(file string, text []byte, variants, measures []string) (*File, error) {
	d, err := yamlnode.Parse(file, text)
	if err != nil {
		return nil, err
	}
	f := &File{Name: file}
	for _, v := range variants {
		p := &Plan{Variant: v}
		for _, m := range measures {
			p.Measures = append(p.Measures, Measure{Name: m})
		}
		f.Plans = append(f.Plans, p)
	}
	d.Read(f.decodeClaims)
	return f, d.Err()
}

// Variants returns the variants whose measures a claim is about.
func (c *Claim) Variants() (names []string) {
	for _, r := range slices.Concat(c.of, c.over) {
		names = append(names, r.variant)
	}
	return names
}

// named does something to each claim in a list of names.
func (f *File) named(m *yamlnode.Map, key string, do func(c *Claim)) {
	for _, name := range m.Texts(key) {
		i := slices.IndexFunc(f.Claims, func(c Claim) bool { return c.Name == name })
		if i < 0 {
			m.Fault(key, "has %q, want the name of a claim", name)
			continue
		}
		do(&f.Claims[i])
	}
}

// directed reports whether a claim has a direction, and not only a number.
func (c *Claim) directed() bool { return math.IsNaN(c.paper) || !math.IsNaN(c.than) }

func (f *File) decodeClaim(m *yamlnode.Map) Claim {
	m.Need("name", "measure")
	m.Computed("source")
	c := Claim{Name: m.Text("name", ""), Why: m.Text("why", ""), of: f.references(m, reference{}, ""), trend: m.Bool("trend", false)}
	if f.Figure != nil {
		c.Source = m.Text("source", "Figure "+f.Figure.Number)
	}
	if c.trend && (len(c.of) < minTrend || !slices.IsSortedFunc(c.of, func(a, b reference) int { return cmp.Compare(f.places[a.variant].x, f.places[b.variant].x) })) {
		m.Fault("trend", "is of %d points, want a line of at least %d with rising x", len(c.of), minTrend)
	}
	take := m.OneOf("take", "least", "least", "greatest", "mean")
	c.greatest, c.mean = take == "greatest", take == "mean"
	m.Sub("over", func(over *yamlnode.Map) { c.over = f.references(over, c.of[0], m.Text("line", "")) })
	if c.over != nil && len(c.over) != len(c.of) {
		m.Fault("over", "has %d points of a line, and what it is under has %d", len(c.over), len(c.of))
		c.over = nil
	}
	c.paper, c.than = optional(m, "paper"), optional(m, "than")
	c.above, c.below = optional(m, "above"), optional(m, "below")
	if c.over != nil && math.IsNaN(c.than) && !math.IsNaN(c.paper) && c.paper != 1 {
		c.than = 1
	}
	number, bound := m.Has("paper"), m.Has("above") || m.Has("below")
	if number == bound {
		m.Fault("", "has %s; want either paper, a number, or above and below, a direction", map[bool]string{true: "both paper and a bound", false: "neither paper nor a bound"}[number])
	}
	if number {
		m.Need("within")
		c.within = m.Float("within", 0, 0, 10)
	}
	return c
}

// minTrend is the number of points that can show a trend. Three random numbers rise in one of six cases.
const minTrend = 3

// key identifies a claim by everything but its name, source and reason.
func (c *Claim) key() string {
	key := fmt.Sprint(c.of, c.over, c.greatest, c.trend, c.paper, c.within, c.above, c.below, c.than)
	if c.mean {
		key += " mean"
	}
	return key
}

// optional reads a number, or returns NaN if it is missing.
func optional(m *yamlnode.Map, key string) float64 {
	return m.Float(key, math.NaN(), -1e15, 1e15)
}

// references reads a measure of a variant, or of all variants along a line of a sweep. Missing names are taken
// from def and line.
func (f *File) references(m *yamlnode.Map, def reference, line string) []reference {
	measure := m.Text("measure", def.measure)
	if m.Has("line") || line != "" && !m.Has("variant") {
		line = m.Text("line", line)
		var out []reference
		for _, p := range f.Plans {
			if at, ok := f.places[p.Variant]; ok && at.line == line {
				out = append(out, f.reference(m, p.Variant, measure))
			}
		}
		if len(out) > 0 {
			return out
		}
		m.Fault("line", "is %q, which no variant with an x is on", line)
	}
	return []reference{f.reference(m, m.Text("variant", def.variant), measure)}
}

// reference reports a fault unless a variant has a measure.
func (f *File) reference(m *yamlnode.Map, variant, measure string) reference {
	r := reference{variant, measure}
	i := slices.IndexFunc(f.Plans, func(p *Plan) bool { return p.Variant == variant })
	if i < 0 {
		var names []string
		for _, p := range f.Plans {
			names = append(names, p.Variant)
		}
		m.Fault("variant", "is %q, want one of %s", variant, strings.Join(names, ", "))
		return r
	}
	var names []string
	for _, me := range f.Plans[i].Measures {
		names = append(names, me.Name)
	}
	if !slices.Contains(names, measure) {
		m.Fault("measure", "is %q, want one of %s", measure, strings.Join(names, ", "))
	}
	return r
}

// text returns the paper's number or bounds.
func (c *Claim) text() string {
	switch {
	case !math.IsNaN(c.paper):
		return fmt.Sprintf("%s ± %.0f %%", number(c.paper), 100*c.within)
	case math.IsNaN(c.below):
		return "above " + number(c.above)
	case math.IsNaN(c.above):
		return "below " + number(c.below)
	}
	return number(c.above) + " to " + number(c.below)
}

// judge compares one number with the claim.
func (c *Claim) judge(v float64) Verdict {
	switch {
	case math.IsNaN(v):
		return NoValue
	case math.IsNaN(c.paper):
		if v <= c.above || v >= c.below { // comparisons with a NaN bound are false
			return Disagrees
		}
		return Agrees
	case math.Abs(v-c.paper) <= c.within*math.Abs(c.paper):
		return Agrees
	case v > c.than && c.paper > c.than, v < c.than && c.paper < c.than:
		return Direction
	}
	return Disagrees
}

// Judge compares a report with the claims of its file. It computes ratios seed by seed.
func (f *File) Judge(r *Report) (out []Judgement) {
	_, of := r.byVariant()
	for _, c := range f.Claims {
		j := Judgement{Claim: c.Name, Key: c.key(), Paper: c.text(), Why: c.Why}
		best := math.NaN()
		for _, s := range c.numbers(of) {
			if mean := s.Mean(); !math.IsNaN(mean) && (math.IsNaN(best) || c.greatest && mean > best || !c.greatest && mean < best) {
				best, j.Low, j.High, j.Seeds = mean, s.Quantile(0), s.Quantile(1), len(s.Values)
				j.Half = 0 // JSON has no NaN
				if j.Seeds > 1 {
					j.Half = s.Half()
				}
			}
		}
		if !math.IsNaN(best) {
			j.Ours = &best
			if ratio := best / c.paper; !math.IsNaN(ratio) && !math.IsInf(ratio, 0) {
				j.Ratio = &ratio
			}
		}
		j.Verdict = c.judge(best)
		out = append(out, j)
	}
	return out
}

// numbers returns the claim's numbers: one for each pair, or the mean or the trend of all.
func (c *Claim) numbers(of map[string][]*Outcome) (out []Sample) {
	if c.trend {
		return []Sample{sample(of[c.of[0].variant], func(o *Outcome) float64 {
			rank, pairs := 0.0, 0.0
			for i := range c.of {
				for k := range i {
					d := c.number(of, i, o.Seed) - c.number(of, k, o.Seed)
					if pairs++; d != 0 {
						rank += d / math.Abs(d) // NaN where a point has no value
					}
				}
			}
			return rank / pairs
		})}
	}
	if c.mean {
		return []Sample{sample(of[c.of[0].variant], func(o *Outcome) float64 {
			sum := 0.0
			for i := range c.of {
				sum += c.number(of, i, o.Seed)
			}
			return sum / float64(len(c.of))
		})}
	}
	for i := range c.of {
		out = append(out, sample(of[c.of[i].variant], func(o *Outcome) float64 { return c.number(of, i, o.Seed) }))
	}
	return out
}

// number returns the claim's number of pair i in the run of a seed.
func (c *Claim) number(of map[string][]*Outcome, i int, seed uint64) float64 {
	value := func(r reference) float64 {
		for _, o := range of[r.variant] {
			if o.Seed == seed {
				return o.value(r.measure)
			}
		}
		return math.NaN()
	}
	v := value(c.of[i])
	if c.over != nil {
		v /= value(c.over[i])
	}
	return v
}

// Sum summarises a figure's judgements in a few words.
func Sum(js []Judgement) string {
	var parts []string
	for _, v := range verdicts {
		n := 0
		for _, j := range js {
			if j.Verdict == v {
				n++
			}
		}
		switch {
		case n == len(js) && n > 0:
			return string(v)
		case n > 0:
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	return strings.Join(parts, ", ")
}
