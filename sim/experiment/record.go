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

// Judgement returns what the record says of a claim, nil when it has no such claim.
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
