package pfcwatchdog

import (
	"fmt"

	"github.com/headgate/headgate/controller/topology"
)

// root returns where a storm began that a switch is in: a host, or SWITCH:PORT for a switch that sends PAUSEs and
// is in no storm of the class itself. It follows the storms of the class from switch to switch, at each the first one
// that began. It is "" for storms that lead in a circle. f.mu is held.
func (f *feat) root(g *topology.Graph, sw string, at class) string {
	for passed := map[string]bool{}; ; {
		passed[sw] = true
		var to topology.Port
		for _, p := range g.Ports(sw) {
			if p.Number == at.port {
				to = p
			}
		}
		switch {
		case to.Link == "": // the port has no link in the configuration
			return fmt.Sprintf("%s:%d", sw, at.port)
		case to.PeerPort == 0:
			return to.Peer
		case passed[to.Peer]:
			return ""
		}
		next, found := f.first(to.Peer, at.class, to.PeerPort)
		if !found {
			return fmt.Sprintf("%s:%d", to.Peer, to.PeerPort)
		}
		sw, at = to.Peer, next
	}
}

// first returns the storm of a class at a switch that began first, except one port's.
func (f *feat) first(sw string, of uint8, but uint32) (at class, found bool) {
	s := f.switches[sw]
	if s == nil {
		return at, false
	}
	for key, n := range s.classes {
		if key.class != of || key.port == but || !n.On {
			continue
		}
		order := n.since.Compare(s.classes[at].since)
		if !found || order < 0 || order == 0 && key.port < at.port {
			at, found = key, true
		}
	}
	return at, found
}
