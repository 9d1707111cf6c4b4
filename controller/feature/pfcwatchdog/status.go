package pfcwatchdog

import (
	"cmp"
	"maps"
	"slices"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/internal/pfcwd"
)

// state is the state of a switch with a watchdog. It outlives the loops, which end with every session;
// the feature's mu guards it.
type state struct {
	settings pfcwd.Settings
	graph    *topology.Graph
	seen     time.Time // last reading; zero before the first
	classes  map[class]seen
}

// class is a class at a port.
type class struct {
	port  uint32
	class uint8
}

// seen is a storm as it was read last.
type seen struct {
	pfcwd.Storm
	peer  string
	since time.Time // when the last storm was seen to begin
	told  bool      // the event of its begin is out
}

// set notes what a switch has; its storms stay.
func (f *feat) set(sw string, s pfcwd.Settings, g *topology.Graph) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.switches[sw] == nil {
		f.switches[sw] = &state{}
	}
	f.switches[sw].settings, f.switches[sw].graph = s, g
}

func (f *feat) forget(sw string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.switches, sw)
}

// Status implements feature.Monitor.
func (f *feat) Status(sw string, out *pb.FeatureStatus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.switches[sw]
	if s == nil {
		return
	}
	w := s.settings
	out.Pfcwatchdog = &pb.PFCWatchdogStatus{Switch: &pb.PFCWatchdogSwitch{
		DetectionNs: view.Nanoseconds(w.Detection.Duration()), RestorationNs: view.Nanoseconds(w.Restoration.Duration()),
		Action: string(w.Action), Read: view.Stamp(s.seen),
	}}
	for _, n := range slices.SortedFunc(maps.Values(s.classes), func(a, b seen) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Class, b.Class))
	}) {
		out.Pfcwatchdog.Classes = append(out.Pfcwatchdog.Classes, &pb.PFCWatchdogClass{
			Port: n.Port, Peer: n.peer, Class: uint32(n.Class), Storm: n.On, Since: view.Stamp(n.since), Storms: n.Count, Dropped: n.Dropped,
		})
		if root := f.root(s.graph, sw, class{n.Port, n.Class}); n.On && root != "" {
			out.Pfcwatchdog.Roots = append(out.Pfcwatchdog.Roots, &pb.PFCStormRoot{Port: n.Port, Class: uint32(n.Class), Root: root, Storm: true})
		}
	}
}

var _ feature.Monitor = (*feat)(nil)
