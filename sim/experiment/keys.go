package experiment

import (
	_ "embed"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/hosts/law/registry"
	"github.com/headgate/headgate/internal/keydoc"
	"github.com/headgate/headgate/internal/yamlnode"
)

// keyTexts says what keys and measures are. A key is a path without brackets and stars. Below "*" are keys by the last part of their paths, below
// "what" measures.
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
	for _, k := range registry.Kinds {
		for _, p := range k.Params() {
			t.Keys["laws."+p.Name] = p.Doc
		}
	}
	read := yamlnode.AllKeys(func(d *yamlnode.Doc) {
		root := d.Root()
		root.Patch("full")
		(&File{places: map[string]place{}}).decode(d, root)
	})
	return keydoc.Of(read, func(k yamlnode.Key) string {
		path := keydoc.Plain(k.Path)
		if text := t.Keys[path]; text != "" {
			return text
		}
		return t.Any[path[strings.LastIndexByte(path, '.')+1:]]
	}), nil
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
