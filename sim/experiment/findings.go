package experiment

import (
	"fmt"
	"strings"
	"unicode"
)

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
			if pg.record == nil || len(pg.record.Judgements) != len(pg.file.Claims) {
				continue
			}
			for k := range pg.file.Claims {
				f := finding{pg, &pg.file.Claims[k], &pg.record.Judgements[k]}
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
