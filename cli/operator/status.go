package operator

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

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
	var names []string // of tables, in the order of their first occurrence
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
