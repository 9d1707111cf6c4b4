package experiment

import (
	"math"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/internal/yamlnode"
)

// variant is what is put over a file, patch by patch, to make one of its plans.
type variant struct {
	name string
	sets []*yaml.Node
	line string
	x    float64 // NaN for none
}

// maxVariants bounds what axes make: a plan each, with its fabric.
const maxVariants = 1000

// decodeVariants reads variants, a list, or axes, whose every combination is a variant.
func (f *File) decodeVariants(root *yamlnode.Map) []variant {
	variants := f.points(root, "variants")
	if root.Has("axes") {
		if len(variants) > 0 {
			root.Fault("axes", "stands beside variants; want one of them")
		}
		variants = []variant{{x: math.NaN()}}
		root.Each("axes", func(m *yamlnode.Map) {
			m.Text("name", "") // for the reader
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

// points reads a list of variants. One with an x is a point of a sweep; its line is what it
// says, on an axis that of the other axes.
func (f *File) points(m *yamlnode.Map, key string) (list []variant) {
	m.Each(key, func(m *yamlnode.Map) {
		m.Need("name", "set")
		v := variant{name: m.Text("name", ""), line: m.Text("line", ""), x: optional(m, "x")}
		if v.line == "" && math.IsNaN(v.x) {
			v.line = v.name
		}
		if set := m.Node("set"); set != nil {
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
