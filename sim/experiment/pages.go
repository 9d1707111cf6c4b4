package experiment

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// titles are the papers' names on the pages.
var titles = map[string]string{
	"dsh": "DSH: shared PFC headroom", "spfc": "SPFC: victim-aware PFC thresholds", "pacc": "PACC: CNPs from switches",
	"soze": "Söze: weighted bandwidth from one telemetry value", "prioplus": "PrioPlus: virtual priorities by delay channels",
	"headgate": "Headgate's own: the systems together",
}

// page is what stands on a paper's page of one experiment.
type page struct {
	file     *File
	record   *Record
	pictures []string // names of files beside the page
}

// WritePages writes README.md, a table of all figures, and a page per paper into a directory,
// from the records in another one. Pictures are those that WritePictures left there. A figure
// without a record stands in the table as not run.
func WritePages(dir, records string, files []*File) error {
	pages := map[string][]page{}
	for _, f := range files {
		if f.Figure == nil {
			continue
		}
		rec, err := ReadRecord(os.DirFS(records), f.Name)
		if err != nil {
			return err
		}
		pg := page{file: f, record: rec}
		for _, p := range f.pictures {
			name := f.Name + "-" + p.name + ".svg"
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				pg.pictures = append(pg.pictures, name)
			}
		}
		pages[f.Figure.Paper] = append(pages[f.Figure.Paper], pg)
	}
	var index strings.Builder
	index.WriteString("# The papers' figures\n\nMade by `make figures`; each figure alone by `headgate sim run NAME`. A verdict holds our mean over the\nseeds against the paper's number and the tolerance that the file states: *agrees*, *direction only* (the number\nis missed, more or less than the other side is right), *disagrees*.\n\n| paper | figure | experiment | seeds | CPU time | verdict |\n|---|---|---|---|---|---|\n")
	w := &writer{dir: dir}
	for _, paper := range Papers {
		if len(pages[paper]) == 0 {
			continue
		}
		var b strings.Builder
		fmt.Fprintf(&b, "# %s\n", titles[paper])
		for _, pg := range pages[paper] {
			pg.write(&b)
			pg.row(&index)
		}
		w.text(paper+".md", b.String())
	}
	writeFindings(&index, pages)
	w.text("README.md", index.String())
	return w.err
}

func (w *writer) text(name, text string) {
	w.write(name, func(f *os.File) error {
		_, err := f.WriteString(text)
		return err
	})
}

// row writes a figure's line of the table.
func (p *page) row(b *strings.Builder) {
	seeds, took, verdict := "–", "–", "not run"
	if r := p.record; r != nil {
		seeds, took, verdict = fmt.Sprint(r.Seeds), fmt.Sprintf("%.3g s", r.CPUSeconds), Sum(r.Judgements)
	}
	fmt.Fprintf(b, "| [%[1]s](%[1]s.md) | %s | [%s](%[1]s.md#%[3]s) | %s | %s | %s |\n", p.file.Figure.Paper, p.file.Figure.Number, p.file.Name, seeds, took, verdict)
}

// write writes a figure's section.
func (p *page) write(b *strings.Builder) {
	f := p.file
	fmt.Fprintf(b, "\n## %s\n\n**%s** (%s)\n", f.Name, f.Title, f.Figure.Number)
	if f.Paper != "" {
		fmt.Fprintf(b, "\nThe paper: %s\n", strings.TrimSpace(f.Paper))
	}
	for _, name := range p.pictures {
		fmt.Fprintf(b, "\n![%s](%s)\n", f.Title, name)
	}
	r := p.record
	if r == nil {
		b.WriteString("\nNot run yet.\n")
		return
	}
	scale := ""
	if r.Full {
		scale = " --full"
	}
	fmt.Fprintf(b, "\n`headgate sim run %s%s --seed %d --seeds %d`: %.3g s of CPU time. Parameters: [%s.yaml](../../sim/experiment/builtin/%[1]s.yaml).\n",
		f.Name, scale, r.Seed, r.Seeds, r.CPUSeconds, f.Name)
	if len(f.Claims) > 0 {
		b.WriteString("\n| claim | of | paper | ours | verdict |\n|---|---|---|---|---|\n")
	}
	for i := range f.Claims {
		if c := &f.Claims[i]; r.Judgement(c) != nil {
			j := r.Judgement(c)
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", c.Name, c.Source, j.Paper, j.OursText(), j.Verdict)
		}
	}
	if f.Notes != "" {
		fmt.Fprintf(b, "\n%s\n", strings.TrimSpace(f.Notes))
	}
}

// finding is a claim of a figure beside what its record says.
type finding struct {
	page  *page
	claim *Claim
	j     *Judgement
}

// writeFindings writes, from the records of the files as they are, in how many claims of each paper the
// direction agrees and how many of its headlines are within their tolerance, each headline, and
// each direction that does not agree, with the measured cause.
func writeFindings(b *strings.Builder, pages map[string][]page) {
	var headlines, wrong []finding
	b.WriteString("\n## Directions and headlines\n\nA claim has a direction when the paper says what is more or less, or gives a number over another one. Headlines\nare the numbers that the papers make much of in the text of their evaluations.\n\n| paper | directions that agree | headlines within the tolerance |\n|---|---|---|\n")
	for _, paper := range Papers {
		directed, right, all, near := 0, 0, 0, 0
		for i := range pages[paper] {
			pg := &pages[paper][i]
			if pg.record == nil {
				continue
			}
			for k := range pg.file.Claims {
				f := finding{pg, &pg.file.Claims[k], pg.record.Judgement(&pg.file.Claims[k])}
				if f.j == nil {
					continue // since the record was made
				}
				if f.claim.directed() {
					if directed++; f.j.Verdict == Agrees || f.j.Verdict == Direction {
						right++
					} else {
						wrong = append(wrong, f)
					}
				}
				if f.claim.Headline {
					if all++; f.j.Verdict == Agrees {
						near++
					}
					headlines = append(headlines, f)
				}
			}
		}
		if directed+all > 0 {
			fmt.Fprintf(b, "| [%[1]s](%[1]s.md) | %d of %d | %d of %d |\n", paper, right, directed, near, all)
		}
	}
	findings(b, "Headlines", headlines)
	findings(b, "Directions that do not agree", wrong)
}

func findings(b *strings.Builder, title string, list []finding) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### %s\n\n| figure | claim | paper | ours | ratio | verdict | cause |\n|---|---|---|---|---|---|---|\n", title)
	for _, f := range list {
		cause := ""
		if f.claim.Cause != "" && f.j.Verdict != Agrees {
			cause = fmt.Sprintf("[%s](disagreements.md#%s)", f.claim.Cause, anchor(f.claim.Cause))
		}
		fmt.Fprintf(b, "| [%s](%s.md#%s) | %s | %s | %s | %s | %s | %s |\n", f.page.file.Name, f.page.file.Figure.Paper, f.page.file.Name,
			f.j.Claim, f.j.Paper, f.j.OursText(), f.j.ratioText(), f.j.Verdict, cause)
	}
}

// anchor is the fragment by which GitHub finds a heading.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}
