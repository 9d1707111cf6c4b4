package pfcwatchdog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/internal/externs"
)

// state is a switch with a watchdog. It outlives the loops, which end with every session; the feature's mu guards it.
type state struct {
	settings externs.Settings
	graph    *topology.Graph
	seen     time.Time // last reading; zero before the first
	classes  map[class]seen
}

type class struct {
	port  uint32
	class uint8
}

type seen struct {
	externs.Storm
	peer  string
	since time.Time // when the last storm was seen to begin
	told  bool      // the event of its begin is out
}

func (f *feat) status(sw string, out *pb.FeatureStatus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.switches[sw]
	if s == nil {
		return
	}
	w := s.settings
	out.Pfcwatchdog = &pb.PFCWatchdogStatus{Switch: &pb.PFCWatchdogSwitch{
		Detection: pb.Duration(w.Detection.Duration()), Restoration: pb.Duration(w.Restoration.Duration()),
		Action: string(w.Action), Read: pb.Stamp(s.seen),
	}}
	for _, n := range slices.SortedFunc(maps.Values(s.classes), func(a, b seen) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Class, b.Class))
	}) {
		out.Pfcwatchdog.Classes = append(out.Pfcwatchdog.Classes, &pb.PFCWatchdogClass{
			Port: n.Port, Peer: n.peer, Class: uint32(n.Class), Storm: n.On, Since: pb.Stamp(n.since), Storms: n.Count, Dropped: n.Dropped,
		})
		if root := f.root(s.graph, sw, class{n.Port, n.Class}); n.On && root != "" {
			out.Pfcwatchdog.Roots = append(out.Pfcwatchdog.Roots, &pb.PFCStormRoot{Port: n.Port, Class: uint32(n.Class), Root: root, Storm: true})
		}
	}
}

// root traces a storm at a switch to its origin. At each switch on the way it follows the storm of the class that
// began first. The origin is a host, or SWITCH:PORT for a switch that sends PAUSEs and has no storm itself; "" if the
// trace is a circle. f.mu is held.
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
