package topology

import (
	"net/netip"
	"slices"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/ecmp"
)

// Hashing is how a switch chooses among next hops.
type Hashing struct {
	Seed uint32
	By   ecmp.Fields
}

// Path returns the egress ports on a flow's path, the first switch's first. f.By is not read: hashing returns it
// for each switch. Path returns nil if the path is not known: an address belongs to no host or is out of reach, the
// sender has several NICs and chooses among them, or a switch hashes a field that f lacks (the queue pair or the
// flow label).
func (r *Routes) Path(f ecmp.Flow, hashing func(sw string) Hashing) (ports []config.Endpoint) {
	g := r.graph
	from, to := g.hostOf[f.Src], g.hostOf[f.Dst]
	if from == nil || to == nil || len(from.nics) != 1 {
		return nil
	}
	for at := from.nics[0].leaf; at >= 0; {
		hops := r.hops(at, to, f.Dst)
		if len(hops) == 0 || len(ports) == len(g.switches) {
			return nil
		}
		chosen := 0
		if len(hops) > 1 {
			h := hashing(g.switches[at].name)
			if f.By = h.By; f.By == ecmp.QueuePair || f.By == ecmp.FlowLabel && f.Dst.Is6() {
				return nil
			}
			chosen = f.Choose(h.Seed, len(hops))
		}
		all := g.switches[at].ports
		i := slices.IndexFunc(all, func(p Port) bool { return p.Number == hops[chosen].Port })
		ports, at = append(ports, config.Endpoint{Node: g.switches[at].name, Port: all[i].Number}), all[i].peer
	}
	return ports
}

// hops returns the next hops of a switch to an address of a host.
func (r *Routes) hops(at int, to *Host, dst netip.Addr) []NextHop {
	if !slices.ContainsFunc(to.nics, func(n nic) bool { return n.leaf == at }) {
		rack := to.rack
		if moved, ok := r.moved[dst]; ok {
			rack = moved
		}
		return r.rows[at][rack].NextHops
	}
	for _, route := range r.rows[at] {
		i := slices.IndexFunc(route.Prefixes, func(p netip.Prefix) bool { return p.IsSingleIP() && p.Addr() == dst })
		switch {
		case i < 0 || len(route.NextHops) == 0:
		case route.Group == 0: // a next hop for each prefix
			return route.NextHops[i : i+1]
		default:
			return route.NextHops
		}
	}
	return nil
}
