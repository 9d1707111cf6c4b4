package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/units"
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
	return e.print(only, func(w io.Writer) { drawStatus(w, e, only.GetSwitches()) })
}

func drawStatus(w io.Writer, e *env, switches []*pb.SwitchStatus) {
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
					cells = append(cells, statusText(e, v))
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

// statusText formats a value with its unit. An unknown value is "".
func statusText(e *env, v *pb.StatusValue) string {
	switch x := v.GetValue().(type) {
	case *pb.StatusValue_Text:
		return x.Text
	case *pb.StatusValue_Number:
		return fmt.Sprint(x.Number)
	case *pb.StatusValue_Count:
		return fmt.Sprint(x.Count)
	case *pb.StatusValue_Truth:
		if x.Truth {
			return "yes"
		}
		return "no"
	case *pb.StatusValue_Bytes:
		return units.Bytes(x.Bytes).String()
	case *pb.StatusValue_Ns:
		return nanoseconds(x.Ns).String()
	case *pb.StatusValue_Time:
		return e.ago(x.Time) + " ago"
	}
	return ""
}
