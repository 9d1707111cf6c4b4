package tofino

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt"
)

// diff is a row of the chip that differs from the desired row.
type diff struct {
	pair
	fields []field
	remove bool // an extra group
	first  bool // the extra group is removed first, because it has a class that another group needs
	again  bool // no field differs, but the row has to be written again
	lossy  bool // the policy is off
}

// victim reports whether SPFC's victims alone cause a diff.
func (d *diff) victim() bool {
	return d.exist && !d.remove && !d.again && !slices.ContainsFunc(d.fields, func(f field) bool {
		return f.name != "pool_max_cells" && f.name != "dynamic_baf"
	})
}

// field is a field that differs.
type field struct {
	name      string
	have, new any
}

func (f field) grows() bool {
	have, _ := f.have.(uint64)
	want, _ := f.new.(uint64)
	return want > have
}

// diffs compares the observed rows with the desired ones.
func (o *observed) diffs(s *settings) []diff {
	var list []diff
	touched := map[uint32]bool{} // ports with a group whose PFC changes
	for _, p := range o.pairs {
		d := diff{pair: p, lossy: s.policy == "off"}
		for _, n := range p.Data {
			if have := p.have.Data.Get(n.Name); !same(have, n.Value) {
				d.fields = append(d.fields, field{n.Name, have, n.Value})
				if p.Table == tableGroup && (n.Name == "pfc_enable" || strings.HasPrefix(n.Name, "icos_")) {
					touched[p.port] = true
				}
			}
		}
		if len(d.fields) > 0 || !p.exist {
			list = append(list, d)
		}
	}
	for _, e := range o.extras {
		touched[uint32(portOf(e.have))] = true
		list = append(list, diff{pair: pair{want: want{Row: bfrt.Row{Table: tableGroup, Pipe: e.have.Pipe, Action: e.have.Action, Key: e.have.Key}}, have: e.have, exist: true}, remove: true, first: e.first})
	}
	// When the mode of a port is written, the chip reads from the port's groups for which classes it sends PFC.
	seen := map[uint32]bool{}
	for _, d := range list {
		if d.Table == tableFlow {
			seen[uint32(d.Key.Uint("dev_port"))] = true
		}
	}
	for _, p := range o.pairs {
		port := uint32(p.Key.Uint("dev_port"))
		if p.Table == tableFlow && touched[port] && !seen[port] {
			list = append(list, diff{pair: p, again: true})
		}
	}
	return list
}

// tolerance is the allowed relative error of a filter's time constant, because chips round it.
const tolerance = 0.05

func same(have, want any) bool {
	switch w := want.(type) {
	case float32:
		h, ok := have.(float32)
		return ok && math.Abs(float64(h-w)) <= tolerance*math.Abs(float64(w))
	case string:
		h, ok := have.(string)
		return ok && level(h) == level(w)
	}
	return reflect.DeepEqual(have, want)
}

// level maps the names of the lowest and the highest priority to their numbers.
func level(s string) string {
	switch s {
	case "LOW":
		return "0"
	case "HIGH":
		return "7"
	}
	return s
}

// change returns a diff as a plan shows it.
func (d *diff) change() *pb.Change {
	key := strings.TrimPrefix(strings.TrimPrefix(d.Row.Name(), d.Table), " ")
	if d.Table == tableGroup {
		port, class := uint64(d.port), fmt.Sprint(d.class)
		if d.remove {
			port, class = portOf(d.have), fmt.Sprintf("mask %#x", classes(d.have))
		}
		key += fmt.Sprintf(" (port %d class %s)", port, class)
	} else if d.Pipe != bfrt.AllPipes {
		key += fmt.Sprintf(" (port %d queue %d)", d.port, d.queue)
	}
	c := &pb.Change{Kind: pb.Change_KIND_MODIFY, Table: d.Table, Key: key}
	switch {
	case d.remove:
		c.Kind = pb.Change_KIND_DELETE
	case !d.exist:
		c.Kind, c.New = pb.Change_KIND_INSERT, d.Data.String()
	case d.again:
		c.Old = d.Data.String()
		c.New = c.Old + " (again)"
	default:
		var old, to []string
		for _, f := range d.fields {
			old, to = append(old, fmt.Sprintf("%s=%v", f.name, f.have)), append(to, fmt.Sprintf("%s=%v", f.name, f.new))
		}
		c.Old, c.New = strings.Join(old, " "), strings.Join(to, " ")
	}
	return c
}
