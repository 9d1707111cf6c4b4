package operator

import (
	"fmt"
	"io"
	"slices"
	"strings"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// column is a group of switches with the same capabilities.
type column struct {
	switches []string
	cells    map[string]string // by capability
}

func (c *column) head() string {
	const most = 3
	if len(c.switches) <= most {
		return strings.Join(c.switches, ",")
	}
	return fmt.Sprintf("%s +%d", c.switches[0], len(c.switches)-1)
}

// drawMatrix writes one line for each capability and one column for each group of equal switches,
// and then the reason for each "no".
func drawMatrix(w io.Writer, switches []*pb.SwitchStatus) {
	columns, names := matrix(switches)
	if len(names) == 0 {
		return
	}
	_, _ = fmt.Fprintln(w)
	head := []any{"CAPABILITY"}
	for _, c := range columns {
		head = append(head, c.head())
	}
	row(w, head...)
	for _, name := range names {
		cells := []any{name}
		for _, c := range columns {
			cells = append(cells, c.cells[name])
		}
		row(w, cells...)
	}
	drawReasons(w, switches)
}

// matrix returns the columns, and the capabilities in the order of their first occurrence.
func matrix(switches []*pb.SwitchStatus) (columns []*column, names []string) {
	for _, s := range switches {
		cells := map[string]string{}
		for _, c := range s.GetCapabilities() {
			if !slices.Contains(names, c.GetName()) {
				names = append(names, c.GetName())
			}
			if cells[c.GetName()] != "no" {
				cells[c.GetName()] = cell(c)
			}
		}
		if len(cells) == 0 {
			continue // its capabilities are not known yet
		}
		at := slices.IndexFunc(columns, func(c *column) bool { return fmt.Sprint(c.cells) == fmt.Sprint(cells) })
		if at < 0 {
			at = len(columns)
			columns = append(columns, &column{cells: cells})
		}
		columns[at].switches = append(columns[at].switches, s.GetName())
	}
	return columns, names
}

// cell names the part of the switch with a capability, the program or the traffic manager, or says
// just "yes".
func cell(c *pb.Capability) string {
	switch {
	case !c.GetSupported():
		return "no"
	case c.GetBy() == "" || c.GetBy() == "target":
		return "yes"
	}
	return c.GetBy()
}

// drawReasons writes each missing capability once, with the switches that lack it.
func drawReasons(w io.Writer, switches []*pb.SwitchStatus) {
	type reason struct{ name, detail string }
	var order []reason
	who := map[reason]*column{}
	for _, s := range switches {
		for _, c := range s.GetCapabilities() {
			r := reason{c.GetName(), c.GetDetail()}
			if c.GetSupported() {
				continue
			}
			if who[r] == nil {
				who[r] = &column{}
				order = append(order, r)
			}
			who[r].switches = append(who[r].switches, s.GetName())
		}
	}
	if len(order) == 0 {
		return
	}
	_, _ = fmt.Fprintln(w)
	row(w, "SWITCH", "CANNOT", "DETAIL")
	for _, r := range order {
		row(w, who[r].head(), r.name, r.detail)
	}
}
