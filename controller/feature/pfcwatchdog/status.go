package pfcwatchdog

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/internal/pfcwd"
)

// state is what is known of a switch with a watchdog. It outlives the loops, which end with
// every session; the feature's mu guards it.
type state struct {
	settings pfcwd.Settings
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
}

// set notes what a switch has; its storms stay.
func (f *feat) set(sw string, s pfcwd.Settings) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.switches[sw] == nil {
		f.switches[sw] = &state{}
	}
	f.switches[sw].settings = s
}

func (f *feat) forget(sw string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.switches, sw)
}

// The tables.
var (
	switchTable = &view.Table{Feature: "pfcwatchdog", Name: "switches", Columns: []view.Column{
		{Head: "DETECTION"}, {Head: "RESTORATION"}, {Head: "ACTION"},
		{Head: "READ", Metric: "pfc_storms_last_read_timestamp_seconds", Help: "When the storms of the switch were read last."},
	}}
	classTable = &view.Table{Feature: "pfcwatchdog", Name: "classes", Keys: []string{"port", "peer", "class"}, Columns: []view.Column{
		{Head: "STORM", Metric: "pfc_storm", Help: "1 while the peer of the port pauses the class for longer than the watchdog allows."},
		{Head: "SINCE"},
		{Head: "STORMS", Metric: "pfc_storms", Help: "Times that it did.", Counter: true},
		{Head: "DROPPED", Metric: "pfc_storm_dropped_packets", Help: "Packets of the class that the watchdog dropped in storms.", Counter: true},
	}}
)

// Tables implements feature.Monitor.
func (*feat) Tables() []*view.Table { return []*view.Table{switchTable, classTable} }

// Status implements feature.Monitor.
func (f *feat) Status(sw string) []view.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.switches[sw]
	if s == nil {
		return nil
	}
	list := slices.SortedFunc(maps.Values(s.classes), func(a, b seen) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Class, b.Class))
	})
	var rows []view.Row
	for _, n := range list {
		rows = append(rows, view.Row{
			Keys:   []string{strconv.Itoa(int(n.Port)), n.peer, strconv.Itoa(int(n.Class))},
			Values: []any{n.On, n.since, n.Count, n.Dropped},
		})
	}
	w := s.settings
	return []view.Status{
		{Table: switchTable, Rows: []view.Row{{Values: []any{w.Detection.Duration(), w.Restoration.Duration(), string(w.Action), s.seen}}}},
		{Table: classTable, Rows: rows},
	}
}

var _ feature.Monitor = (*feat)(nil)
