// Package experiment turns a readable file into runs of the fabric simulator and their
// results into tables, CSV files and plots.
package experiment

import (
	"embed"
	"fmt"
	"os"
	"path"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/fabric/yamlnode"
)

// File is an experiment: one or more variants of one plan.
type File struct {
	Name  string
	Title string
	Paper string // what the paper says about it, may be empty
	Plans []*Plan
}

//go:embed builtin/*.yaml
var builtin embed.FS

// Builtin returns the names of the experiments that come with Headgate.
func Builtin() []string {
	entries, err := builtin.ReadDir("builtin")
	if err != nil {
		return nil // cannot happen: the directory is embedded
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	sort.Strings(names)
	return names
}

// Open reads an experiment that comes with Headgate, or a file when the name ends in .yaml
// or .yml. Faults of a file are a *yamlnode.Error.
func Open(name string) (*File, error) {
	if strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("experiment: %w", err)
		}
		return Parse(name, text)
	}
	text, err := builtin.ReadFile(path.Join("builtin", name+".yaml"))
	if err != nil {
		return nil, fmt.Errorf("no experiment %q; want a .yaml file or one of %s", name, strings.Join(Builtin(), ", "))
	}
	return Parse(name+".yaml", text)
}

// Parse reads an experiment.
func Parse(file string, text []byte) (*File, error) {
	d, err := yamlnode.Parse(file, text)
	if err != nil {
		return nil, err
	}
	f := &File{Name: strings.TrimSuffix(path.Base(file), path.Ext(file))}
	root := d.Root()
	f.Name = root.Text("name", f.Name)
	if f.Name == "" || strings.ContainsAny(f.Name, "/\\ \t\n") || strings.HasPrefix(f.Name, ".") {
		root.Fault("name", "is %q, want a word that can name a directory", f.Name)
	}
	f.Title = root.Text("title", f.Name)
	f.Paper = root.Text("paper", "")
	type variant struct {
		name string
		set  *yaml.Node
	}
	var variants []variant
	seen := map[string]bool{}
	root.Each("variants", func(m *yamlnode.Map) {
		m.Need("name", "set")
		v := variant{m.Text("name", ""), m.Node("set")}
		if seen[v.name] {
			m.Fault("name", "is %q, which another variant has", v.name)
		}
		seen[v.name] = true
		m.Done()
		if v.set != nil {
			variants = append(variants, v)
		}
	})
	if err := d.Err(); err != nil && len(variants) > 0 {
		return nil, err
	}
	if len(variants) == 0 {
		variants = []variant{{name: ""}}
	}
	for _, v := range variants {
		doc := d
		if v.set != nil {
			doc = d.Overlay(v.set)
		}
		p := decodePlan(doc)
		p.Variant = v.name
		if err := doc.Err(); err != nil {
			return nil, err
		}
		f.Plans = append(f.Plans, p)
	}
	return f, nil
}
