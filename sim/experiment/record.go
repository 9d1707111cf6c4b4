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
	"text/template"
	"unicode"

	"github.com/headgate/headgate/units"
	"go.yaml.in/yaml/v3"
)

// Record is the result of the runs of a figure. `sim list` shows it, and the pages of docs/results are made from
// it.
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

// hash identifies the content of a file that runs depend on, that is without comments, claims, notes, headlines and
// causes. It is the first 16 hexadecimal digits of the SHA-256 of that YAML.
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
	removeComments(&doc)
	text, err := yaml.Marshal(&doc)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), err
}

func removeComments(n *yaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	for _, c := range n.Content {
		removeComments(c)
	}
}

// Judgement returns the record's judgement of a claim, or nil if there is none.
func (r *Record) Judgement(c *Claim) *Judgement {
	for i := range r.Judgements {
		if r.Judgements[i].Key == c.key() {
			return &r.Judgements[i]
		}
	}
	return nil
}

// Current reports whether a record was made from the present file, by File.Hash, and has all of its claims.
func (f *File) Current(r *Record) bool {
	return r.Hash == f.Hash && !slices.ContainsFunc(f.Claims, func(c Claim) bool { return r.Judgement(&c) == nil })
}

// Recorded returns the record that comes with Headgate, or nil if there is none. stale is set if the record was
// made from another text of the file or lacks one of its claims.
func (f *File) Recorded() (r *Record, stale bool, err error) {
	dir, err := fs.Sub(results, "results")
	if err != nil {
		return nil, false, err
	}
	r, err = ReadRecord(dir, f.Name)
	return r, r != nil && !f.Current(r), err
}

// ReadRecord reads the record of an experiment from a directory. It returns nil if there is none.
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

// Record makes the record of a complete report of the file.
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

// Write writes a record into a directory, under the name that Recorded expects.
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

//go:embed pages.tmpl
var pageText string

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"anchor": anchor, "count": func(n int, what string) string { return units.Count(n, what) }, "number": func(v *float64) string { return number(*v) }, "sum": Sum,
}).Parse(pageText))

// paperPage is the content of a paper's page, and of the paper's row in the table of all.
type paperPage struct {
	Paper, Title string
	Figures      []*figurePage
	// Directed counts the claims with a direction, Right the directed claims that agree. Near counts the Headlines that
	// agree. Claims is Directed plus Headlines.
	Claims, Directed, Right, Headlines, Near int
}

// figurePage is a figure's section: its pictures, its headlines, the claims that do not agree, and the causes of
// the disagreements.
type figurePage struct {
	File     *File
	Record   *Record
	Pictures []string // beside the page, without ending
	Shown    []judgedClaim
	Agree    int // claims that are not shown
	Causes   []string
}

type judgedClaim struct {
	*Claim
	Judged *Judgement
}

// add adds the judgements of a figure, except claims that are newer than its record.
func (p *paperPage) add(f *figurePage) {
	p.Figures = append(p.Figures, f)
	for i := range f.File.Claims {
		c := &f.File.Claims[i]
		if f.Record == nil {
			return
		}
		j := f.Record.Judgement(c)
		if j == nil {
			continue
		}
		agrees := j.Verdict == Agrees
		if c.directed() {
			p.Directed++
			p.Right += int(oneIf(agrees || j.Verdict == Direction))
		}
		if c.Headline {
			p.Headlines++
			p.Near += int(oneIf(agrees))
		}
		p.Claims = p.Directed + p.Headlines
		if agrees && !c.Headline {
			f.Agree++
			continue
		}
		f.Shown = append(f.Shown, judgedClaim{c, j})
		if !agrees && c.Cause != "" && !slices.Contains(f.Causes, c.Cause) {
			f.Causes = append(f.Causes, c.Cause)
		}
	}
}

// WritePages writes README.md, a table of all figures, and a page per paper into a directory. It reads the records
// in another directory, and uses the pictures that WritePictures has drawn. A figure without a record appears in
// the table as not run.
func WritePages(dir, records string, files []*File) error {
	var all []*paperPage
	for _, paper := range Papers {
		p := &paperPage{Paper: paper, Title: titles[paper]}
		for _, f := range files {
			if f.Figure == nil || f.Figure.Paper != paper {
				continue
			}
			rec, err := ReadRecord(os.DirFS(records), f.Name)
			if err != nil {
				return err
			}
			fig := &figurePage{File: f, Record: rec}
			for _, pic := range f.pictures {
				name := f.Name + "-" + pic.name
				if _, err := os.Stat(filepath.Join(dir, name+".svg")); err == nil {
					fig.Pictures = append(fig.Pictures, name)
				}
			}
			p.add(fig)
		}
		if len(p.Figures) > 0 {
			all = append(all, p)
		}
	}
	w := &writer{dir: dir}
	for _, p := range all {
		w.write(p.Paper+".md", func(f *os.File) error { return pages.ExecuteTemplate(f, "paper.md", p) })
	}
	w.write("README.md", func(f *os.File) error { return pages.ExecuteTemplate(f, "README.md", all) })
	return w.err
}

// anchor returns the fragment of a heading's address on GitHub.
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
