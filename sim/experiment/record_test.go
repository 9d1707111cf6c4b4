package experiment

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/tests/race"
)

// TestRecordsAreCurrent: the results that `sim list` shows for a figure come from a run of the present file. A
// missed headline, or a direction that disagrees, names the heading on the page of disagreements that has the
// measurements.
func TestRecordsAreCurrent(t *testing.T) {
	race.SkipSequential(t)
	text, err := os.ReadFile("../../docs/results/disagreements.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Builtin() {
		f, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		r, stale, err := f.Recorded()
		if err != nil || stale {
			t.Errorf("%s: the record is of another text of the file (%v); run make figures", name, err)
			continue
		}
		for _, c := range f.Claims {
			if row := fmt.Sprintf("| <a id=%q></a>%s |", anchor(c.Cause), c.Cause); c.Cause != "" && !strings.Contains(string(text), row) {
				t.Errorf("%s: %q is to have its cause in a row of disagreements.md that begins with %s", name, c.Name, row)
			}
			if r == nil || c.Cause != "" {
				continue
			}
			if v := r.Judgement(&c).Verdict; c.Headline && v != Agrees || c.directed() && v != Agrees && v != Direction {
				t.Errorf("%s: %q: %s, without a cause", name, c.Name, v)
			}
		}
	}
}

// TestHash: a comment, a claim or a note does not make a record stale; a value does.
func TestHash(t *testing.T) {
	const text = "a: {b: 1}\nc: [2, 3]\n"
	want, err := hash([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, same := range []string{
		"# above\n" + text, "a: {b: 1} # beside\nc: [2, 3]\n", "a: {b: 1}\n\n# between\n\nc: [2, 3]\n# below\n",
		"a: {b: 1}\nc: [2, # within\n  3]\n", "notes: n\n" + text + "claims: [d]\n",
	} {
		if got, err := hash([]byte(same)); err != nil || got != want {
			t.Errorf("%q has the hash %s (%v), want %s", same, got, err, want)
		}
	}
	for _, other := range []string{strings.Replace(text, "1", "2", 1), strings.Replace(text, "2, 3", "3, 2", 1), text + "d: 4\n"} {
		if got, err := hash([]byte(other)); err != nil || got == want {
			t.Errorf("%q has the hash of %q (%v)", other, text, err)
		}
	}
}

// TestPages: the pages show a record, its pictures, and figures without a run.
func TestPages(t *testing.T) {
	dir := t.TempDir()
	ran, err := Parse("ran.yaml", []byte(claimed+`  - {name: nothing is lost, variant: near, measure: lost, paper: 0, within: 0}
  - {name: less than nothing, variant: near, measure: lost, below: -1}
headlines: [nothing is lost]
causes: [{heading: "Why, here (ran)"}]
notes: Most agrees.
plots:
  - {name: times, kind: time, of: [flows]}
  - {name: bars, kind: bars, measures: [FCT]}
  - {name: dist, kind: cdf, x: "time (µs)"}
`))
	if err != nil {
		t.Fatal(err)
	}
	rep, err := (&Batch{File: ran, Seed: 1, Seeds: 2, Shards: 1}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rec, err := ran.Record(rep)
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := ran.WritePictures(dir, rep, "svg"); err != nil {
		t.Fatal(err)
	}
	other, err := Parse("other.yaml", []byte(claimed+"  - {name: a, variant: near, measure: FCT, above: 1}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := WritePages(dir, dir, []*File{ran, other}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"README.md":   {"| [ran](headgate.md#ran) | 2 |", "| 1 agrees, 1 disagrees |", "| [other](headgate.md#other) | – | – | not run |", "| 0 of 1 | 1 of 1 |"},
		"headgate.md": {"](ran-times.svg)", "](ran-bars.svg)", "| **nothing is lost** | 0 ± 0 % | 0 | agrees |", "| less than nothing | below -1 | 0 | disagrees |", "[Cause](disagreements.md#why-here-ran)", "Not run yet."},
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(text), w) {
				t.Errorf("%s lacks %q:\n%s", name, w, text)
			}
		}
	}
	rep.Interrupted = true
	if _, err := ran.Record(rep); err == nil {
		t.Error("a partial report makes a record")
	}
}

func TestPictureFaults(t *testing.T) {
	for text, want := range map[string]string{
		"{name: a, kind: pie}":                                      "kind",
		"{name: a/b, kind: bars, measures: [FCT]}":                  "name",
		"{name: a, kind: time}":                                     "of",
		"{name: a, kind: time, what: queue, of: [spine]}":           `has "spine"`,
		"{name: a, kind: bars, measures: [FTC]}":                    `has "FTC", want some of FCT, lost, cycle`,
		"{name: a, kind: bars, measures: [FCT], variants: [mid]}":   `has "mid", want some of near, far`,
		"{name: a, kind: sweep, measures: [FCT], variants: [near]}": "neither line nor x",
	} {
		_, err := Parse("claimed.yaml", []byte(claimed[:strings.Index(claimed, "claims")]+"plots: ["+text+"]\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestSweep: a sweep has a line for each name and a point for each variant.
func TestSweep(t *testing.T) {
	text := strings.Replace(claimed[:strings.Index(claimed, "claims")], "variants: [{name: near,", "variants: [{name: near, line: star, x: 1,", 1)
	text = strings.Replace(text, "{name: far,", "{name: far, line: star, x: 10,", 1)
	f, err := Parse("sweep.yaml", []byte(text+"plots: [{name: a, kind: sweep, measures: [FCT], x: delay (µs)}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	rep, err := (&Batch{File: f, Seed: 1, Seeds: 1, Shards: 1}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := f.panels(f.pictures[0], nil, rep.lookup())
	if len(p) != 1 || len(p[0].Lines) != 1 || p[0].Lines[0].Name != "star" || len(p[0].Lines[0].X) != 2 || p[0].Lines[0].X[1] != 10 || p[0].Y != "FCT (µs)" || p[0].X != "delay (µs)" {
		t.Errorf("panels %+v", p)
	}
}

// TestPicturesFromRecords: bars and sweeps can be drawn from the records, and each number is in the picture.
func TestPicturesFromRecords(t *testing.T) {
	drawn, papers := 0, 0
	for _, name := range Builtin() {
		f, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		r, _, err := f.Recorded()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range f.pictures {
			if r == nil || p.kind != "bars" && p.kind != "sweep" {
				continue
			}
			want, got := 0, 0
			for _, row := range r.Measures {
				if slices.Contains(p.measures, row.Measure) && slices.Contains(p.variants, row.Variant) && row.Value != "–" {
					want++
				}
			}
			for _, panel := range f.panels(p, nil, r.lookup()) {
				for _, l := range panel.Lines {
					for i, y := range l.Y {
						if !math.IsNaN(y) {
							got++
						}
						if !math.IsNaN(l.Paper[i]) {
							papers++
						}
					}
				}
			}
			if drawn += got; got != want {
				t.Errorf("%s %s has %d numbers, want %d", f.Name, p.name, got, want)
			}
		}
	}
	if drawn < 100 || papers < 10 {
		t.Errorf("%d numbers and %d of papers on all pictures", drawn, papers)
	}
}

func TestDisplayName(t *testing.T) {
	for name, want := range map[string]string{
		"none dsh 0.2": "no law DSH 0.2", "none": "none", "soze 1": "Söze 1", "prioplus, by bytes": "PrioPlus, by bytes", "priority 3": "priority 3", "dsh+spfc": "DSH+SPFC", "pacc-paper": "PACC-paper",
	} {
		if got := DisplayName(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// TestAxes: every combination of the axes' points is a variant with the patches of both.
func TestAxes(t *testing.T) {
	head := claimed[:strings.Index(claimed, "variants")]
	f, err := Parse("axes.yaml", []byte(head+`
axes:
  - {name: size, points: [{name: small, set: {flows: {"*": {size: 1KB}}}}, {name: large, set: {flows: {"*": {size: 9KB}}}}]}
  - {name: delay, points: [{name: 1us, x: 1, set: {topology: {host: {delay: 1us}}}}, {name: 5us, x: 5, set: {topology: {host: {delay: 5us}}}}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range f.Plans {
		at := f.places[p.Variant]
		got = append(got, fmt.Sprintf("%s: %s at %g, %v", p.Variant, at.line, at.x, p.Graph.Links[0].Delay))
	}
	want := "small 1us: small at 1, 1us; small 5us: small at 5, 5us; large 1us: large at 1, 1us; large 5us: large at 5, 5us"
	if text := strings.ReplaceAll(strings.Join(got, "; "), "µ", "u"); text != want {
		t.Errorf("axes make %s; want %s", text, want)
	}
	if _, err := Parse("axes.yaml", []byte(head+"variants: [{name: a, set: {}}]\naxes: [{name: b, points: [{name: c, set: {}}]}]\n")); err == nil {
		t.Error("variants beside axes are taken")
	}
}
