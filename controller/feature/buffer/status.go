package buffer

import (
	"strconv"
	"strings"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

// The tables.
var (
	switchTable = &view.Table{Feature: "buffer", Name: "switches", Columns: []view.Column{
		{Head: "POLICY"},
		{Head: "THRESHOLD", Metric: "buffer_threshold_bytes", Help: "T(t), the threshold at which queues pause, at the last poll."},
		{Head: "POLLED", Metric: "buffer_last_poll_timestamp_seconds", Help: "When the last poll of any port came back."},
	}}
	poolTable = &view.Table{Feature: "buffer", Name: "pools", Keys: []string{"policy", "pool"}, Columns: []view.Column{
		{Head: "SIZE", Metric: "buffer_size_bytes", Help: "Bytes that the buffer policy gives to the pool."},
		{Head: "USED", Metric: "buffer_used_bytes", Help: "Bytes in use of the pool at the last poll."},
		{Head: "PEAK", Metric: "buffer_peak_bytes", Help: "Most bytes of the pool that were ever in use since the switch started."},
	}}
	portTable = &view.Table{Feature: "buffer", Name: "ports", Keys: []string{"port", "peer"}, Columns: []view.Column{
		{Head: "PAUSED"},
		{Head: "PAUSE", Metric: "pfc_pause_frames", Help: "PFC frames with a PAUSE that the port sent, without refreshes.", Counter: true},
		{Head: "RESUME", Metric: "pfc_resume_frames", Help: "PFC frames with a RESUME that the port sent.", Counter: true},
		{Head: "REFRESH", Metric: "pfc_refresh_frames", Help: "PFC frames that repeated a PAUSE.", Counter: true},
		{Head: "LATE", Metric: "pfc_refresh_lateness_seconds", Help: "How long after half of a PAUSE's time the controller repeated it last."},
		{Head: "MOST LATE", Metric: "pfc_refresh_lateness_max_seconds", Help: "The most that any repetition of a PAUSE was late."},
		{Head: "DEPARTED", Metric: "pfc_departed_bytes", Help: "Bytes of lossless classes that came in by the port and left the switch.", Counter: true},
		{Head: "VICTIM", Metric: "pfc_victim", Help: "1 while SPFC lets the port have the whole shared pool."},
		{Head: "TURNS", Metric: "pfc_victim_turns", Help: "Times that SPFC's state of the port changed.", Counter: true},
	}}
	classTable = &view.Table{Feature: "buffer", Name: "classes", Keys: []string{"port", "peer", "class"}, Columns: []view.Column{
		{Head: "PAUSED", Metric: "pfc_paused", Help: "1 while the peer of the port is told not to send the class."},
		{Head: "FOR IN ALL", Metric: "pfc_paused_seconds", Help: "Time that the class was paused, as seen by polls, since the controller follows it.", Counter: true},
		{Head: "LOSSLESS DROPS", Metric: "pfc_lossless_dropped_packets", Help: "Packets of the lossless class that were dropped, which is an error.", Counter: true},
		{Head: "PRIVATE", Metric: "pfc_ingress_private_bytes", Help: "Bytes of the class that came in by the port and are in its private pool."},
		{Head: "SHARED", Metric: "pfc_ingress_shared_bytes", Help: "Bytes of the class that came in by the port and are in the shared pool."},
		{Head: "HEADROOM", Metric: "pfc_ingress_headroom_bytes", Help: "Bytes of the class that came in by the port and are in headroom."},
	}}
	watchdogTable = &view.Table{Feature: "buffer", Name: "watchdog", Keys: []string{"kind"}, Columns: []view.Column{
		{Head: "ON", Metric: "buffer_alarms", Help: "Alarms of the kind that are on."},
	}}
	alarmTable = &view.Table{Feature: "buffer", Name: "alarms", Keys: []string{"alarm", "port", "class"}, Columns: []view.Column{
		{Head: "SINCE"}, {Head: "DETAIL"},
	}}
)

// Tables implements feature.Monitor.
func (*feat) Tables() []*view.Table {
	return []*view.Table{switchTable, poolTable, portTable, classTable, watchdogTable, alarmTable}
}

// State returns what is known of a switch's buffer, nil for nothing.
func (f *feat) State(sw string) *State {
	s, _ := f.latest.Get(sw)
	return s
}

// Status implements feature.Monitor. Without a policy there is nothing but that.
func (f *feat) Status(sw string) []view.Status {
	s := f.State(sw)
	switch {
	case s == nil:
		return nil
	case len(s.Ports) == 0:
		return []view.Status{{Table: switchTable, Rows: []view.Row{{Values: []any{s.Policy, nil, nil}}}}}
	}
	var ports, classes []view.Row
	for i := range s.Ports {
		p := &s.Ports[i]
		ports = append(ports, p.row())
		classes = append(classes, p.classes()...)
	}
	return []view.Status{
		{Table: switchTable, Rows: []view.Row{{Values: []any{s.Policy, units.Bytes(s.Threshold), s.Time}}}},
		{Table: poolTable, Rows: s.pools()}, {Table: portTable, Rows: ports}, {Table: classTable, Rows: classes},
		{Table: watchdogTable, Rows: s.kinds()}, {Table: alarmTable, Rows: s.alarms()},
	}
}

var _ feature.Monitor = (*feat)(nil)

func (s *State) pools() []view.Row {
	var rows []view.Row
	row := func(name string, size, used, peak uint32) {
		rows = append(rows, view.Row{Keys: []string{s.Policy, name}, Values: []any{units.Bytes(size), units.Bytes(used), units.Bytes(peak)}})
	}
	row("private", s.Size.Private, s.Used.Private, s.Peak.Private)
	row("shared", s.Size.Shared, s.Used.Shared, s.Peak.Shared)
	row("headroom", s.Size.Headroom, s.Used.Headroom, s.Peak.Headroom)
	row("insurance", s.Size.Insurance, s.Used.Insurance, s.Peak.Insurance)
	return rows
}

func (s *State) kinds() []view.Row {
	var rows []view.Row
	for _, kind := range alarmKinds {
		on := 0
		for _, a := range s.Alarms {
			if a.Kind == kind {
				on++
			}
		}
		rows = append(rows, view.Row{Keys: []string{kind}, Values: []any{on}})
	}
	return rows
}

func (s *State) alarms() []view.Row {
	var rows []view.Row
	for _, a := range s.Alarms {
		class := ""
		if a.Class >= 0 {
			class = strconv.Itoa(a.Class)
		}
		rows = append(rows, view.Row{Keys: []string{a.Kind, number(a.Port), class}, Values: []any{a.Since, a.Text}})
	}
	return rows
}

func number(port uint32) string { return strconv.Itoa(int(port)) }

func (p *PortState) row() view.Row {
	paused := "port"
	if !p.PortPaused {
		var list []string
		for c := range headroom.Classes {
			if p.Paused>>c&1 != 0 {
				list = append(list, strconv.Itoa(c))
			}
		}
		paused = strings.Join(list, ",")
	}
	return view.Row{Keys: []string{number(p.Number), p.Peer}, Values: []any{
		paused, p.Pauses, p.Resumes, p.Refreshes, p.Late, p.MostLate, units.Bytes(p.Departed), p.Victim, p.Turns,
	}}
}

// classes leaves out those that are not lossless and hold nothing.
func (p *PortState) classes() []view.Row {
	var rows []view.Row
	for c := range headroom.Classes {
		lossless := p.Lossless>>c&1 != 0
		if !lossless && p.Private[c]+p.Shared[c] == 0 {
			continue
		}
		values := []any{nil, nil, nil}
		if lossless {
			values = []any{p.Paused>>c&1 != 0, p.PausedTime[c], p.LosslessDrops[c]}
		}
		rows = append(rows, view.Row{
			Keys:   []string{number(p.Number), p.Peer, strconv.Itoa(c)},
			Values: append(values, units.Bytes(p.Private[c]), units.Bytes(p.Shared[c]), units.Bytes(p.Headroom[c])),
		})
	}
	return rows
}
