package experiment

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/registry"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/units"
)

// maker is a law of the registry in the form that the fabric needs.
type maker struct{ *registry.Maker }

// Needs returns the fields that packets must carry for the law.
func (m maker) Needs() sim.Needs {
	n := m.Maker.Needs()
	return sim.Needs{INT: n.INT, MaxQD: n.MaxQD, Delay: n.Delay}
}

// lawOf is a law with a name that flows use.
type lawOf struct {
	maker
	at *yamlnode.Map // nil for a kind without parameters
}

// decodeLaws reads "laws: {name: {kind: …, …}}". A name that is not defined there means a law of own, or else the
// kind of that name without parameters.
func decodeLaws(root *yamlnode.Map, own map[string]lawOf) map[string]lawOf {
	laws := map[string]lawOf{}
	for _, name := range registry.Names() {
		if m, err := registry.Find(name).Maker(nil); err == nil {
			laws[name] = lawOf{maker: maker{m}}
		}
	}
	maps.Copy(laws, own)
	root.Entries("laws", func(name string, m *yamlnode.Map) {
		m.Need("kind")
		k := registry.Find(m.OneOf("kind", "", registry.Names()...))
		if k == nil {
			m.AllowUnknown()
			return
		}
		made, err := k.Maker(readParams(m, k))
		if err != nil {
			lawFault(m, err, "")
			return
		}
		laws[name] = lawOf{maker{made}, m}
	})
	return laws
}

// readParams reads the parameters of a kind that a file gives. Parameters with a dot in their name are in a
// mapping of their own.
func readParams(m *yamlnode.Map, k *registry.Kind) map[string]string {
	given, nested := map[string]string{}, map[string][]string{}
	for _, p := range k.Params() {
		if group, key, ok := strings.Cut(p.Name, "."); ok {
			nested[group] = append(nested[group], key)
		} else if v := m.Text(p.Name, ""); m.Has(p.Name) {
			given[p.Name] = v
		}
	}
	for group, keys := range nested {
		m.Sub(group, func(m *yamlnode.Map) {
			for _, key := range keys {
				if v := m.Text(key, ""); m.Has(key) {
					given[group+"."+key] = v
				}
			}
		})
	}
	return given
}

// lawFault reports an error of a law at the parameter that the error names.
func lawFault(m *yamlnode.Map, err error, where string) {
	var wrong *param.Error
	if errors.As(err, &wrong) {
		m.Fault(wrong.Name, "is %s, %s%s", wrong.Value, wrong.Text, where)
	} else {
		m.Fault("", "%v%s", err, where)
	}
}

// use is a law on the paths between hosts.
type use struct {
	at       *yamlnode.Map // the flows
	law      lawOf
	from, to []int
}

// tryLaws makes each law once for each kind of path that its flows may take. So errors that would occur when the
// first flow starts are reported now.
func (d *flowDecoder) tryLaws() {
	c := d.plan.Config
	c.NewBuffer, c.PACC, c.Groups = nil, nil, len(d.plan.Groups)
	sim, err := sim.New(c)
	if err != nil {
		return // reported where the fault is
	}
	used := map[*registry.Maker]bool{}
	for _, u := range d.uses {
		used[u.law.Maker] = true
	}
	for _, l := range d.laws { // a law that no flow uses is tried on the longest path
		if l.at != nil && !used[l.Maker] {
			d.uses = append(d.uses, use{l.at, l, []int{0}, []int{d.plan.Graph.Hosts - 1}})
		}
	}
	class := edgeClasses(d.plan)
	for _, u := range d.uses {
	pairs:
		for _, src := range oneOfEach(u.from, class) {
			for _, dst := range oneOfEach(u.to, class) {
				if src == dst {
					dst = other(u.to, src, class)
				}
				if src != dst && !u.try(sim, c.Graph.Names, src, dst) {
					break pairs
				}
			}
		}
	}
}

// try reports whether a law can be made for a flow between two hosts. If not, it reports the fault.
func (u *use) try(sim *sim.Sim, names []string, src, dst int) bool {
	f, err := sim.FlowInfo(src, dst)
	if err != nil {
		return true // there is no path; the run reports that
	}
	f.Size, f.Deadline = units.MB, units.Second
	_, err = u.law.NewLaw(f)
	if err != nil {
		at := u.at
		if u.law.at != nil {
			at = u.law.at
		}
		lawFault(at, err, fmt.Sprintf(" (from %s to %s, %v with a base round trip of %v)", names[src], names[dst], f.Rate, f.BaseRTT))
	}
	return err == nil
}

// edgeClasses returns a class for each host, made from its link and switch. Hosts of one class have similar paths.
func edgeClasses(p *Plan) []string {
	class := make([]string, p.Graph.Hosts)
	for _, l := range p.Graph.Links {
		for _, end := range [][2]int{{l.A, l.B}, {l.B, l.A}} {
			if p.Graph.IsHost(end[0]) {
				class[end[0]] = fmt.Sprint(end[1], l.Rate, l.Delay)
			}
		}
	}
	return class
}

// oneOfEach returns the first host of each class, at most 64 of them.
func oneOfEach(hosts []int, class []string) (first []int) {
	seen := map[string]bool{}
	for _, h := range hosts {
		if !seen[class[h]] && len(first) < 64 {
			seen[class[h]] = true
			first = append(first, h)
		}
	}
	return first
}

// other returns another host of src's class, or src if there is none.
func other(hosts []int, src int, class []string) int {
	for _, h := range hosts {
		if h != src && class[h] == class[src] {
			return h
		}
	}
	return src
}
