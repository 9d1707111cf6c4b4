package experiment

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/headgate/headgate/units"
	"go.yaml.in/yaml/v3"
)

// Record is what a run of a figure came to: what `sim list` shows and the pages of docs/results
// are made of.
type Record struct {
	Experiment string      `json:"experiment"`
	Hash       string      `json:"hash"` // File.Hash of the file that ran
	Full       bool        `json:"full,omitempty"`
	Seed       uint64      `json:"seed"`
	Seeds      int         `json:"seeds"`
	CPUSeconds float64     `json:"cpu_seconds"`
	Judgements []Judgement `json:"judgements"`
	Measures   []Row       `json:"measures"`
}

// Row is a measure of a variant over all seeds.
type Row struct {
	Variant string `json:"variant,omitempty"`
	Measure string `json:"measure"`
	Value   string `json:"value"` // as WriteTable prints it
	Unit    string `json:"unit,omitempty"`
	Paper   string `json:"paper,omitempty"`
}

//go:embed results
var results embed.FS

// hash identifies what a file says but for its claims, notes, headlines and causes, which no run depends
// on: the SHA-256 of its YAML, the first 16 hexadecimal digits.
func hash(text []byte) (string, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return "", err
	}
	for _, n := range doc.Content {
		for i := 0; i+1 < len(n.Content); {
			if slices.Contains([]string{"claims", "notes", "headlines", "causes"}, n.Content[i].Value) {
				n.Content = slices.Delete(n.Content, i, i+2)
			} else {
				i += 2
			}
		}
	}
	text, err := yaml.Marshal(&doc)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), err
}

// Judgement returns the record's judgement of a claim, nil when it has none.
func (r *Record) Judgement(c *Claim) *Judgement {
	for i := range r.Judgements {
		if r.Judgements[i].Key == c.key() {
			return &r.Judgements[i]
		}
	}
	return nil
}

// Current reports whether a record is of the file as it is, with all of its claims.
func (f *File) Current(r *Record) bool {
	return r.Hash == f.Hash && !slices.ContainsFunc(f.Claims, func(c Claim) bool { return r.Judgement(&c) == nil })
}

// Recorded returns the record that came with Headgate, nil when there is none, and whether it
// is of another text of the file, or lacks one of its claims.
func (f *File) Recorded() (r *Record, stale bool, err error) {
	dir, err := fs.Sub(results, "results")
	if err != nil {
		return nil, false, err
	}
	r, err = ReadRecord(dir, f.Name)
	return r, r != nil && !f.Current(r), err
}

// ReadRecord reads the record of an experiment from a directory, nil when there is none.
func ReadRecord(dir fs.FS, name string) (*Record, error) {
	text, err := fs.ReadFile(dir, name+".json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	r := &Record{}
	if err == nil {
		err = json.Unmarshal(text, r)
	}
	if err != nil {
		return nil, fmt.Errorf("record of %s: %w", name, err)
	}
	return r, nil
}

// Record makes the record of a whole report of the file.
func (f *File) Record(rep *Report) (*Record, error) {
	if rep.Interrupted {
		return nil, fmt.Errorf("%s: the report is partial; a record is of all runs", f.Name)
	}
	rec := &Record{
		Experiment: f.Name, Hash: f.Hash, Full: f.Full, Seed: rep.Seed, Seeds: rep.Seeds,
		CPUSeconds: rep.Performance.CPUSeconds, Judgements: rep.Judgements,
	}
	for _, s := range rep.Summaries() {
		rec.Measures = append(rec.Measures, Row{s.Variant, s.Measure, s.Sample.String(), s.Unit, s.Paper})
	}
	return rec, nil
}

// Write writes a record into a directory, as the name that Recorded looks for.
func (r *Record) Write(dir string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("record of %s: %w", r.Experiment, err)
	}
	if err := os.WriteFile(filepath.Join(dir, r.Experiment+".json"), append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

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
	writeCounts(&index, pages)
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

// write writes a figure's section: its pictures, headlines and claims that do not agree beside the measurements, and links to the causes of misses.
func (p *page) write(b *strings.Builder) {
	f, r := p.file, p.record
	fmt.Fprintf(b, "\n## %s\n\n", f.Name)
	if r == nil {
		fmt.Fprintf(b, "%s. Not run yet.\n", f.Title)
		return
	}
	scale := ""
	if r.Full {
		scale = " --full"
	}
	fmt.Fprintf(b, "%s. [File](../../sim/experiment/builtin/%s.yaml), `headgate sim run %[2]s%s --seeds %d`, %.3g s.\n", f.Title, f.Name, scale, r.Seeds, r.CPUSeconds)
	for _, name := range p.pictures {
		fmt.Fprintf(b, "\n![%s](%s)\n", strings.TrimSuffix(name, ".svg"), name)
	}
	var causes []string
	shown, agree := 0, 0
	for i := range f.Claims {
		c := &f.Claims[i]
		j := r.Judgement(c)
		if j == nil {
			continue // since the record was made
		}
		if j.Verdict == Agrees && !c.Headline {
			agree++
			continue
		}
		if shown++; shown == 1 {
			b.WriteString("\n| claim | paper | ours | |\n|---|---|---|---|\n")
		}
		name, ours := c.Name, "–"
		if c.Headline {
			name = "**" + name + "**"
		}
		if j.Ours != nil {
			ours = number(*j.Ours)
			if j.Half > 0 {
				ours += " ± " + fmt.Sprintf("%.2g", j.Half)
			}
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, j.Paper, ours, j.Verdict)
		if cause := fmt.Sprintf("[Cause](disagreements.md#%s)", anchor(c.Cause)); c.Cause != "" && j.Verdict != Agrees && !slices.Contains(causes, cause) {
			causes = append(causes, cause)
		}
	}
	if agree > 0 {
		fmt.Fprintf(b, "\nAgree without being headlines: %s.\n", units.Count(agree, "claim"))
	}
	if len(causes) > 0 {
		fmt.Fprintf(b, "\n%s\n", strings.Join(causes, ", "))
	}
}

// writeCounts writes in how many claims of each paper the direction agrees and how many of its headlines are within their tolerance, from
// the records of the files as they are.
func writeCounts(b *strings.Builder, pages map[string][]page) {
	b.WriteString("\n## Directions and headlines\n\nA claim has a direction when the paper says what is more or less, or gives a number over another one. Headlines, in bold on\nthe pages, are the numbers that the papers stress in the text of their evaluations. The pages list them and every claim that does not\nagree, with its [cause](disagreements.md); `headgate sim run NAME` prints all.\n\n| paper | directions that agree | headlines within the tolerance |\n|---|---|---|\n")
	for _, paper := range Papers {
		directed, right, all, near := 0, 0, 0, 0
		for _, pg := range pages[paper] {
			for i := range pg.file.Claims {
				c := &pg.file.Claims[i]
				if pg.record == nil || pg.record.Judgement(c) == nil {
					continue
				}
				verdict := pg.record.Judgement(c).Verdict
				if c.directed() {
					if directed++; verdict == Agrees || verdict == Direction {
						right++
					}
				}
				if c.Headline {
					if all++; verdict == Agrees {
						near++
					}
				}
			}
		}
		if directed+all > 0 {
			fmt.Fprintf(b, "| [%[1]s](%[1]s.md) | %d of %d | %d of %d |\n", paper, right, directed, near, all)
		}
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
