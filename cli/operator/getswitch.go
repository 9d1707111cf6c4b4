package operator

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/units"
)

func getSwitch(ctx context.Context, e *env, name string, recent uint32) error {
	r, err := e.fabric().ListSwitches(ctx, &pb.ListSwitchesRequest{Name: name, Recent: recent})
	if err != nil {
		return err
	}
	if n := len(r.GetSwitches()); n != 1 || r.GetSwitches()[0].GetName() != name {
		return fmt.Errorf("the controller answered with %s, want %q alone: it is of another version", units.Count(n, "switch"), name)
	}
	s := r.GetSwitches()[0]
	if e.Format != command.Table {
		return e.print(s, nil)
	}
	f, err := e.fabric().GetFabric(ctx, &pb.GetFabricRequest{})
	if err != nil {
		return err
	}
	for i, part := range []func(io.Writer){
		func(w io.Writer) { e.drawSession(w, s) },
		func(w io.Writer) { drawPorts(w, s, f.GetLinks()) },
		func(w io.Writer) { drawTables(w, s.GetTables()) },
		func(w io.Writer) { drawStatus(w, r.GetSwitches()) },
		func(w io.Writer) { drawEvents(w, s.GetEvents()) },
	} {
		var b strings.Builder
		sub := *e
		sub.Out = &b
		if err := sub.Tabs(part); err != nil {
			return err
		}
		if i > 0 && b.Len() > 0 {
			_, _ = fmt.Fprintln(e.Out)
		}
		if _, err := io.WriteString(e.Out, b.String()); err != nil {
			return err
		}
	}
	return e.Tabs(func(w io.Writer) { drawMatrix(w, r.GetSwitches()) })
}

func (e *env) drawSession(w io.Writer, s *pb.SwitchStatus) {
	row(w, "switch", s.GetName())
	row(w, "device", s.GetDeviceId())
	row(w, "address", s.GetAddress())
	row(w, "state", fmt.Sprintf("%s for %s", pb.Word(s.GetState()), cmp.Or(e.ago(s.GetSince()), "ever")))
	if s.GetError() != "" {
		row(w, "reason", s.GetError())
	}
	row(w, "election id", s.GetElectionId())
	row(w, "program", program(s))
	row(w, "entries", fmt.Sprintf("%d, compared %s", s.GetEntries(), units.Count(s.GetReconciles(), "time")))
}

// program is the hash of a switch's program, as P4Runtime's cookie in hexadecimal.
func program(s *pb.SwitchStatus) string { return fmt.Sprintf("%016x", s.GetProgram()) }

// drawPorts writes the ports with the rates of their links.
func drawPorts(w io.Writer, s *pb.SwitchStatus, links []*pb.Link) {
	if len(s.GetPorts()) == 0 {
		return
	}
	rates := map[uint32]units.Rate{}
	for _, l := range links {
		for _, end := range []*pb.Endpoint{l.GetA(), l.GetB()} {
			if end.GetNode() == s.GetName() {
				rates[end.GetPort()] = units.Rate(l.GetRateBps())
			}
		}
	}
	row(w, "PORT", "PEER", "LINK RATE", "STATE", "REASON")
	for _, p := range s.GetPorts() {
		row(w, p.GetPort(), p.GetPeer(), rates[p.GetPort()], pb.Word(p.GetState()), p.GetReason())
	}
}

func drawTables(w io.Writer, tables []*pb.TableUse) {
	if len(tables) == 0 {
		return
	}
	row(w, "TABLE", "ENTRIES", "SIZE", "USED")
	for _, t := range tables {
		row(w, t.GetName(), t.GetEntries(), cmp.Or(strings.TrimPrefix(fmt.Sprint(t.GetSize()), "0"), "not said"), share(t))
	}
}

// share is how much of a table is used, empty where its size is not known.
func share(t *pb.TableUse) string {
	if t.GetSize() == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %%", 100*float64(t.GetEntries())/float64(t.GetSize()))
}

// fullest names the table with the largest share used.
func fullest(tables []*pb.TableUse) string {
	var most *pb.TableUse
	for _, t := range tables {
		if t.GetSize() > 0 && (most == nil || t.GetEntries()*most.GetSize() > most.GetEntries()*t.GetSize()) {
			most = t
		}
	}
	if most == nil {
		return ""
	}
	return most.GetName() + " " + share(most)
}

func drawEvents(w io.Writer, events []*pb.Event) {
	if len(events) == 0 {
		return
	}
	row(w, "TIME", "SEVERITY", "EVENT", "PORT", "MESSAGE")
	for _, v := range events {
		port := ""
		if v.GetPort() > 0 {
			port = fmt.Sprint(v.GetPort())
		}
		row(w, at(v.GetTime()), pb.Word(v.GetSeverity()), v.GetKind(), port, v.GetMessage())
	}
}

// getStatus shows the status that a feature reports for the switches, or with "" that of all
// features. Each table has the rows of all switches.
func getStatus(ctx context.Context, e *env, feature string) error {
	r, err := e.fabric().ListSwitches(ctx, &pb.ListSwitchesRequest{})
	if err != nil {
		return err
	}
	only, known := &pb.ListSwitchesResponse{}, []string{}
	for _, s := range r.GetSwitches() {
		out := &pb.SwitchStatus{Name: s.GetName(), State: s.GetState()}
		for _, t := range s.GetStatus() {
			if !slices.Contains(known, t.GetFeature()) {
				known = append(known, t.GetFeature())
			}
			if feature == "" || feature == t.GetFeature() {
				out.Status = append(out.Status, t)
			}
		}
		only.Switches = append(only.Switches, out)
	}
	if feature != "" && !slices.Contains(known, feature) {
		return fmt.Errorf("no switch has a status of the feature %q, want one of: %s", feature, strings.Join(known, ", "))
	}
	return e.print(only, func(w io.Writer) { drawStatus(w, only.GetSwitches()) })
}

func drawStatus(w io.Writer, switches []*pb.SwitchStatus) {
	var names []string // names of tables, in the order of their first occurrence
	rows := map[string][][]any{}
	for _, s := range switches {
		for _, t := range s.GetStatus() {
			name := t.GetFeature() + " " + t.GetName()
			if len(t.GetRows()) > 0 && rows[name] == nil {
				names = append(names, name)
				head := []any{"SWITCH"}
				for _, k := range t.GetKeys() {
					head = append(head, strings.ToUpper(k))
				}
				for _, c := range t.GetColumns() {
					head = append(head, c.GetHead())
				}
				rows[name] = [][]any{head}
			}
			for _, r := range t.GetRows() {
				cells := []any{s.GetName()}
				for _, k := range r.GetKeys() {
					cells = append(cells, k)
				}
				for _, v := range r.GetValues() {
					cells = append(cells, v.GetShown())
				}
				rows[name] = append(rows[name], cells)
			}
		}
	}
	for i, name := range names {
		if i > 0 {
			_, _ = fmt.Fprintln(w)
		}
		_, _ = fmt.Fprintln(w, name)
		for _, cells := range rows[name] {
			row(w, cells...)
		}
	}
}
