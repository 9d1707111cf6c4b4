package experiment

import (
	"fmt"
	"path"
	"strings"

	"github.com/headgate/headgate/hosts/law/registry"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/sim"
)

// Fabric is a fabric that is described elsewhere than in an experiment.
type Fabric struct {
	Variant string
	// Config is the fabric without what hosts do: its Payload, Header, RTO, CNPGap and Noise are
	// the traffic's.
	Config sim.Config
	// Laws are laws with this fabric's parameters, by the name that flows call them by. They stand in
	// place of the kinds of the registry, and behind what the traffic itself defines.
	Laws map[string]Law
}

// Law is a kind of the registry with parameters by name.
type Law struct {
	Kind   string
	Params map[string]string
}

// Over reads traffic, which is an experiment's sections packet, cnp_gap, cnp_delay, noise, laws, flows, events and
// run, and makes an experiment of it over given fabrics, a variant each. What is measured is an
// experiment's sections gauges and measures. Faults are a *yamlnode.Error of the traffic's file, whose
// folder is where traces are. A cycle of stopped ports that holds for a tenth of the run is a deadlock where
// the traffic does not say for how long.
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
		made, err := k.With(l.Params)
		if err != nil {
			return nil, fmt.Errorf("%s: law %s: %w", f.Variant, name, err)
		}
		laws[name] = lawOf{maker: maker{made}}
	}
	return laws, nil
}
