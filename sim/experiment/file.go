// Package experiment turns a readable file into runs of the fabric simulator and their
// results into tables, CSV files and plots.
package experiment

import (
	"embed"
	"fmt"
	"math"
	"os"
	"path"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/hosts/law/registry"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/sim"
)

// File is an experiment: one or more variants of one plan.
type File struct {
	Name  string
	Title string
	Paper string // the paper's statement about it; may be empty
	Hash  string // hash of the text without its comments, claims, notes, headlines and causes
	// HasFull says that OpenFull accepts the file. Full says that the file is at the paper's scale.
	HasFull, Full bool
	// Figure is the reproduced figure, nil for none.
	Figure   *Figure
	Seeds    int // number of seeds that its claims need
	Claims   []Claim
	Plans    []*Plan
	pictures []picture
	places   map[string]place // places of variants in sweeps
}

//go:embed builtin/*.yaml
var builtin embed.FS

// Builtin returns the names of the experiments that come with Headgate.
func Builtin() (names []string) {
	entries, err := builtin.ReadDir("builtin")
	if err != nil {
		return nil // cannot happen: the directory is embedded
	}
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	sort.Strings(names)
	return names
}

// Open reads an experiment that comes with Headgate, or a file if the name ends in .yaml or .yml. Faults of a file
// are a *yamlnode.Error.
func Open(name string) (*File, error) { return open(name, false) }

// OpenFull does what Open does at the paper's scale: the file's section full overrides the rest.
func OpenFull(name string) (*File, error) { return open(name, true) }

func open(name string, full bool) (*File, error) {
	if strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("experiment: %w", err)
		}
		return parse(name, text, full)
	}
	text, err := Text(name)
	if err != nil {
		return nil, err
	}
	return parse(name+".yaml", text, full)
}

// Check reads an experiment as Open does, and if its file has the section full, also as OpenFull does. It runs
// nothing.
func Check(name string) (*File, error) {
	f, err := Open(name)
	if err == nil && f.HasFull {
		_, err = OpenFull(name)
	}
	return f, err
}

//go:embed template.yaml
var templateText []byte

// Text returns the text of an experiment that comes with Headgate. For "" it returns a template: a commented
// experiment that runs as it is.
func Text(name string) ([]byte, error) {
	if name == "" {
		return templateText, nil
	}
	text, err := builtin.ReadFile(path.Join("builtin", name+".yaml"))
	if err != nil {
		return nil, fmt.Errorf("no experiment %q; want a .yaml file or one of %s", name, strings.Join(Builtin(), ", "))
	}
	return text, nil
}

// parse reads an experiment. If full is set, the section full overrides the rest.
func parse(file string, text []byte, full bool) (*File, error) {
	d, err := yamlnode.Parse(file, text)
	if err != nil {
		return nil, err
	}
	f := &File{Name: strings.TrimSuffix(path.Base(file), path.Ext(file)), Full: full, places: map[string]place{}}
	if f.Hash, err = hash(text); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	root := d.Root()
	patch := root.Patch("full")
	f.HasFull = patch != nil
	if full && patch != nil {
		d = d.Overlay(patch)
		root = d.Root()
	} else if full {
		return nil, fmt.Errorf("%s has no section full: it is at the paper's scale, or the paper has none", file)
	}
	f.decode(d, root)
	if err := d.Err(); err != nil {
		return nil, err
	}
	return f, nil
}

// decode reads the keys of an experiment. If the fabric of a variant is wrong, it skips the keys that name parts
// of the variants.
func (f *File) decode(d *yamlnode.Doc, root *yamlnode.Map) {
	root.Computed("name", "title")
	f.Name = root.Text("name", f.Name)
	if f.Name == "" || strings.ContainsAny(f.Name, "/\\ \t\n") || strings.HasPrefix(f.Name, ".") {
		root.Fault("name", "is %q, want a word that can name a directory", f.Name)
	}
	f.Title = root.Text("title", f.Name)
	f.Paper = root.Text("paper", "")
	variants := f.decodeVariants(root)
	if len(variants) == 0 {
		variants = []variant{{}}
	}
	whole := true
	for _, v := range variants {
		doc := d
		for _, set := range v.sets {
			laid := doc.Overlay(set)
			laid.Join(doc)
			doc = laid
		}
		p := decodePlan(doc)
		p.Variant = v.name
		d.Join(doc)
		f.Plans = append(f.Plans, p)
		whole = whole && p.Graph != nil
	}
	if !whole {
		return
	}
	f.checkGaps(root)
	root.Text("notes", "") // only readers of the file need it
	f.decodeClaims(root)
	f.decodePictures(root)
}

// variant is a list of patches. Applied to a file in order, they make one of its plans.
type variant struct {
	name string
	sets []*yaml.Node
	line string
	x    float64 // NaN for none
}

// maxVariants bounds the variants of axes, because each has a plan with its own fabric.
const maxVariants = 1000

// decodeVariants reads variants, a list, or axes. Every combination of points of the axes is a variant.
func (f *File) decodeVariants(root *yamlnode.Map) []variant {
	variants := f.points(root, "variants")
	if root.Has("axes") {
		if len(variants) > 0 {
			root.Fault("axes", "stands beside variants; want one of them")
		}
		variants = []variant{{x: math.NaN()}}
		root.Each("axes", func(m *yamlnode.Map) {
			m.Text("name", "") // only readers of the file need it
			points := f.points(m, "points")
			if n := len(variants) * len(points); n > maxVariants {
				m.Fault("points", "make %d variants, want at most %d", n, maxVariants)
				return
			}
			variants = cross(variants, points)
		})
	}
	seen := map[string]bool{}
	for _, v := range variants {
		if seen[v.name] {
			root.Fault("variants", "has %q twice", v.name)
		}
		seen[v.name] = true
		if !math.IsNaN(v.x) {
			f.places[v.name] = place{v.line, v.x}
		}
	}
	return variants
}

// points reads a list of variants. A variant with an x is a point of a sweep. Its key line names its line; on an
// axis, the other axes name the line.
func (f *File) points(m *yamlnode.Map, key string) (list []variant) {
	m.Each(key, func(m *yamlnode.Map) {
		m.Need("name", "set")
		v := variant{name: m.Text("name", ""), line: m.Text("line", ""), x: optional(m, "x")}
		if v.line == "" && math.IsNaN(v.x) {
			v.line = v.name
		}
		if set := m.Patch("set"); set != nil {
			v.sets = []*yaml.Node{set}
			list = append(list, v)
		}
	})
	return list
}

// cross combines each variant with each point of the next axis.
func cross(variants, points []variant) (out []variant) {
	for _, a := range variants {
		for _, b := range points {
			v := variant{name: join(a.name, b.name), line: join(a.line, b.line), x: a.x}
			v.sets = append(append(v.sets, a.sets...), b.sets...)
			if !math.IsNaN(b.x) {
				v.x = b.x
			}
			out = append(out, v)
		}
	}
	return out
}

func join(a, b string) string { return strings.TrimSpace(a + " " + b) }

// Fabric is a fabric that is not described in an experiment.
type Fabric struct {
	Variant string
	// Config is the fabric without the hosts' settings: Payload, Header, RTO, CNPGap and Noise come from the
	// traffic.
	Config sim.Config
	// Laws are laws with this fabric's parameters, by the names that flows use. They override the kinds of the
	// registry. Laws that the traffic defines override them.
	Laws map[string]Law
}

// Law is a kind of the registry with parameters by name.
type Law struct {
	Kind   string
	Params map[string]string
}

// Over makes an experiment that plays traffic over given fabrics, with a variant for each. traffic has an
// experiment's sections packet, cnp_gap, cnp_delay, noise, laws, flows, events and run; measures has the sections
// gauges and measures. Faults are a *yamlnode.Error of the traffic's file. Traces are in that file's folder. If
// the traffic does not say when a cycle of stopped ports is a deadlock, it is one after a tenth of the run.
func Over(file string, traffic, measures []byte, fabrics ...Fabric) (*File, error) {
	f := &File{Name: strings.TrimSuffix(path.Base(file), path.Ext(file)), Seeds: 1, places: map[string]place{}}
	for _, of := range fabrics {
		d, err := yamlnode.Parse(file, traffic)
		if err != nil {
			return nil, err
		}
		outputs, err := yamlnode.Parse("measures", measures)
		if err != nil {
			return nil, err
		}
		p := &Plan{Variant: of.Variant, Config: of.Config, Graph: of.Config.Graph, perLink: true}
		laws, err := of.laws()
		if err != nil {
			return nil, err
		}
		d.Read(func(root *yamlnode.Map) {
			root.Need("flows", "run")
			p.decodeHosts(root)
			p.decodeFlows(root, laws)
			root.Sub("run", p.decodeRun)
			if p.deadlock == 0 {
				p.deadlock = p.Until / 10
			}
		})
		if err := d.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", of.Variant, err)
		}
		if err := p.tryBuffers(false); err != nil {
			return nil, fmt.Errorf("%s: %w", of.Variant, err)
		}
		outputs.Read(p.decodeOutputs)
		if err := outputs.Err(); err != nil {
			return nil, err
		}
		f.Plans = append(f.Plans, p)
	}
	return f, nil
}

// laws makes the fabric's own laws.
func (f *Fabric) laws() (map[string]lawOf, error) {
	laws := map[string]lawOf{}
	for name, l := range f.Laws {
		k := registry.Find(l.Kind)
		if k == nil {
			return nil, fmt.Errorf("%s: law %s: no kind %q", f.Variant, name, l.Kind)
		}
		made, err := k.Maker(l.Params)
		if err != nil {
			return nil, fmt.Errorf("%s: law %s: %w", f.Variant, name, err)
		}
		laws[name] = lawOf{maker: maker{made}}
	}
	return laws, nil
}
