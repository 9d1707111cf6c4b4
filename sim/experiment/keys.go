package experiment

import (
	"cmp"
	_ "embed"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/hosts/law/registry"
	"github.com/headgate/headgate/internal/keydoc"
	"github.com/headgate/headgate/internal/yamlnode"
)

// keyTexts describes keys and measures. A key is a path without brackets and stars. Section "*" has keys by the last
// part of their paths, and section "what" has measures.
//
//go:embed keys.yaml
var keyTexts []byte

type texts struct {
	Any  map[string]string `yaml:"*"`
	What map[string]string `yaml:"what"`
	Keys map[string]string `yaml:",inline"`
}

func readTexts() (t texts, err error) { return t, yaml.Unmarshal(keyTexts, &t) }

// Keys describes the keys of an experiment.
func Keys() ([]keydoc.Key, error) {
	t, err := readTexts()
	if err != nil {
		return nil, err
	}
	params := LawParameters()
	for _, p := range params {
		t.Keys["laws."+p.Name] = p.Text
	}
	read := yamlnode.AllKeys(func(d *yamlnode.Doc) {
		root := d.Root()
		root.Patch("full")
		(&File{places: map[string]place{}}).decode(d, root)
	})
	keys := keydoc.Describe(read, func(k yamlnode.Key) string {
		path := keydoc.Plain(k.Path)
		if text := t.Keys[path]; text != "" {
			return text
		}
		return t.Any[path[strings.LastIndexByte(path, '.')+1:]]
	})
	for i := range keys {
		k := &keys[i]
		first := true
		for _, p := range params {
			switch {
			case "laws."+p.Name != keydoc.Plain(k.Path):
			case first:
				k.Allowed, k.Default, first = p.Allowed, p.Default, false
			default:
				if !strings.Contains(k.Allowed, p.Allowed) {
					k.Allowed += ", or " + p.Allowed
				}
				if k.Default != p.Default {
					k.Default = byKind
				}
				if !strings.Contains(k.Description, p.Text) {
					k.Description += "; or " + p.Text
				}
			}
		}
	}
	return keys, nil
}

// byKind is the default of a law's parameter that has another one in each kind.
const byKind = "by the kind"

// LawParameter is a parameter that is the same in some kinds of laws.
type LawParameter struct {
	Name    string   `json:"key"` // path below laws.*
	Kinds   []string `json:"kinds"`
	Allowed string   `json:"allowed"`
	Default string   `json:"default"`
	Text    string   `json:"description"`
}

// LawParameters returns the parameters of all kinds of laws. A name occurs several times if kinds differ in the allowed
// values, the default or the meaning.
func LawParameters() (list []LawParameter) {
	for _, k := range registry.Kinds {
		for _, p := range k.Params() {
			allowed := map[string]string{"time": "a time", "bytes": "an amount", "rate": "a rate", "number": "a number", "whole number": "an integer"}[p.Kind]
			n := LawParameter{p.Name, []string{k.Name}, cmp.Or(allowed, p.Kind), p.Default, p.Doc}
			if p.Want != "" {
				n.Allowed += ", " + p.Want
			}
			if n.Default == "" {
				n.Default = keydoc.Told
			}
			at := slices.IndexFunc(list, func(o LawParameter) bool {
				return o.Name == n.Name && o.Allowed == n.Allowed && o.Default == n.Default && o.Text == n.Text
			})
			if at < 0 {
				list = append(list, n)
			} else {
				list[at].Kinds = append(list[at].Kinds, k.Name)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b LawParameter) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Measured is something that an experiment can measure.
type Measured struct {
	What string `json:"what"` // the word after "what"
	Unit string `json:"unit"` // "" for pure numbers, and for gauge, which has its gauge's unit
	Text string `json:"text"`
}

// AllMeasures returns all measures, by name.
func AllMeasures() (list []Measured, err error) {
	t, err := readTexts()
	for _, what := range slices.Sorted(maps.Keys(meters)) {
		list = append(list, Measured{what, meters[what].unit, t.What[what]})
	}
	return list, err
}
