package controller

import (
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/preview/observed"
)

// Counted returns the flow counters of each host's first-hop switch, so a pair of hosts is counted
// once.
func (c *Controller) Counted() []observed.Source {
	cfg := c.Config()
	if cfg == nil {
		return nil
	}
	by := map[string]observed.Traffic{}
	for _, s := range cfg.Switches {
		for _, f := range c.features {
			if f, ok := f.(feature.Counter); ok {
				if t, counts := f.Counted(s.Name); counts {
					by[s.Name] = t
				}
			}
		}
	}
	var list []observed.Source
	for _, l := range cfg.Links {
		sw, host := l.A.Node, l.B.Node
		if cfg.Host(host) == nil {
			sw, host = host, sw
		}
		if t, counts := by[sw]; counts && cfg.Host(host) != nil {
			list = append(list, t.Source(host, cfg.Host(host).Addresses(), sw))
		}
	}
	return list
}
