package tofino

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt"
)

// The rules by which the driver refuses writes, beside those of the schema, from the driver's documentation
// (p4lang/open-p4studio, pkgsrc/bf-drivers/include/traffic_mgr and src/traffic_mgr/common):
//   - a priority group belongs to a port of its pipe, a port has up to 8, a pipe 128, and on
//     Tofino 2 ports 0 to 39 have one half of them and the rest the other;
//   - two groups of a port cannot have one class;
//   - no more headroom for a group or port than the pool of headroom has, so that the pool
//     cannot shrink below either.

// heldGroup is a priority group and the index of its counters.
type heldGroup struct {
	row bfrt.Row
	nr  uint64
}

func (s *store) group(r bfrt.Row) *heldGroup {
	for _, g := range s.groups {
		if g.row.Pipe == r.Pipe && slices.Equal(g.row.Key, r.Key) {
			return g
		}
	}
	return nil
}

func ownerOf(r bfrt.Row) uint64 { return r.Data.Uint("dev_port") }

func classMask(r bfrt.Row) (mask uint8) {
	for c := range 8 {
		if r.Data.Bool(fmt.Sprintf("icos_%d", c)) {
			mask |= 1 << c
		}
	}
	return mask
}

// headroomPool returns the cells of the pool of headroom.
func (s *store) headroomPool() uint64 {
	t := s.schema.Table("tm.pool.cfg")
	return s.row(t, bfrt.AllPipes, bfrt.Fields{text("pool", "IG_SKID_POOL")}).Data.Uint("size_cells")
}

func (s *store) writeGroup(c bfrt.Change) (codes.Code, string) {
	g := s.group(c.Row)
	switch c.Operation {
	case bfrt.Insert:
		if g != nil {
			return codes.AlreadyExists, "there is such a group"
		}
		made, why := s.newGroup(c.Row)
		if why == "" {
			why = s.groupRules(made, c.Row)
		}
		if why != "" {
			return codes.InvalidArgument, why
		}
		s.groups = append(s.groups, made)
		slices.SortFunc(s.groups, func(a, b *heldGroup) int {
			return cmp.Or(cmp.Compare(a.row.Pipe, b.row.Pipe), cmp.Compare(a.row.Key.Uint("ppg_id"), b.row.Key.Uint("ppg_id")))
		})
		return codes.OK, ""
	case bfrt.Modify:
		if g == nil {
			return codes.NotFound, "there is no such group"
		}
		next := &heldGroup{row: g.row, nr: g.nr}
		next.row.Data = slices.Clone(g.row.Data)
		if why := s.groupRules(next, c.Row); why != "" {
			return codes.InvalidArgument, why
		}
		*g = *next
		return codes.OK, ""
	}
	if g == nil {
		return codes.NotFound, "there is no such group"
	}
	s.groups = slices.DeleteFunc(s.groups, func(x *heldGroup) bool { return x == g })
	return codes.OK, ""
}

// newGroup makes a port's group with the driver's defaults.
func (s *store) newGroup(r bfrt.Row) (*heldGroup, string) {
	if r.Action != "dev_port" {
		return nil, "groups of the mirror port are not held"
	}
	port := ownerOf(r)
	if uint32(port>>7) != r.Pipe || port&0x7f >= portsPerPipe {
		return nil, fmt.Sprintf("dev_port is %d: allowed is a port of pipe %d", port, r.Pipe)
	}
	first, last := uint64(0), uint64(groupsInPipe)
	if s.facts.chip == "tofino2" {
		if first, last = 0, groupsInPipe/2; port&0x7f >= 40 {
			first, last = groupsInPipe/2, groupsInPipe
		}
	}
	ofPort, used := 0, map[uint64]bool{}
	for _, g := range s.groups {
		if g.row.Pipe == r.Pipe {
			used[g.nr] = true
		}
		if ownerOf(g.row) == port {
			ofPort++
		}
	}
	nr := first
	for used[nr] {
		nr++
	}
	if nr >= last || ofPort >= 8 {
		return nil, fmt.Sprintf("no group is left for port %d, which has %d", port, ofPort)
	}
	g := &heldGroup{row: bfrt.Row{Table: groupTable, Pipe: r.Pipe, Key: r.Key, Action: r.Action}, nr: nr}
	t := s.schema.Table(groupTable)
	for _, f := range t.Fields(t.Action(r.Action)) {
		g.row.Data = append(g.row.Data, bfrt.Named{Name: f.Name, Value: zero(&f)})
	}
	for _, n := range []bfrt.Named{number("hysteresis_cells", 32), text("pool_id", "IG_APP_POOL_0"), text("dynamic_baf", "DISABLE"), number("ppg_counter_id", nr)} {
		g.row.Data = put(g.row.Data, n)
	}
	return g, ""
}

// groupRules changes a group that is not yet in place.
func (s *store) groupRules(g *heldGroup, r bfrt.Row) string {
	if p, ok := r.Data.Get("dev_port").(uint64); ok && r.Action != "" && ownerOf(g.row) != 0 && p != ownerOf(g.row) {
		return fmt.Sprintf("dev_port is %v: allowed is that of the group, %d", p, ownerOf(g.row))
	}
	for _, n := range r.Data {
		g.row.Data = put(g.row.Data, n)
	}
	for _, other := range s.groups {
		if other.row.Pipe == g.row.Pipe && slices.Equal(other.row.Key, g.row.Key) || ownerOf(other.row) != ownerOf(g.row) {
			continue
		}
		if both := classMask(other.row) & classMask(g.row); both != 0 {
			return fmt.Sprintf("classes %#x belong to another group of port %d", both, ownerOf(g.row))
		}
	}
	if skid, pool := g.row.Data.Uint("pfc_skid_max_cells"), s.headroomPool(); skid > pool {
		return fmt.Sprintf("pfc_skid_max_cells is %d: allowed is up to the pool's %d", skid, pool)
	}
	return ""
}

// rules checks a write to a table of fixed size.
func (s *store) rules(t *bfrt.Table, r bfrt.Row) string {
	switch t.Name {
	case "tm.port.buffer":
		if skid, pool := r.Data.Uint("skid_limit_cells"), s.headroomPool(); skid > pool {
			return fmt.Sprintf("skid_limit_cells is %d: allowed is up to the pool's %d", skid, pool)
		}
	case "tm.pool.cfg":
		if r.Key.Text("pool") != "IG_SKID_POOL" {
			return ""
		}
		size := r.Data.Uint("size_cells")
		for _, g := range s.groups {
			if n := g.row.Data.Uint("pfc_skid_max_cells"); n > size {
				return fmt.Sprintf("size_cells is %d: %s has %d", size, g.row.Name(), n)
			}
		}
		for _, p := range s.all(s.schema.Table("tm.port.buffer"), bfrt.AllPipes) {
			if n := p.Data.Uint("skid_limit_cells"); n > size {
				return fmt.Sprintf("size_cells is %d: %s has %d", size, p.Name(), n)
			}
		}
	}
	return ""
}

// computed returns the fields of an entry that follow from other fields.
func (s *store) computed(table string, r bfrt.Row) bfrt.Fields {
	switch table {
	case "tm.port.dpg":
		port := r.Key.Uint("dev_port")
		owner := make([]uint32, 8)
		for _, g := range s.groups {
			for c := range 8 {
				if ownerOf(g.row) == port && classMask(g.row)>>c&1 != 0 {
					owner[c] = uint32(g.row.Key.Uint("ppg_id"))
				}
			}
		}
		out := bfrt.Fields{{Name: "icos_ppg_map", Value: owner}}
		for c, id := range owner {
			out = append(out, flag(fmt.Sprintf("icos_%d", c), id == 0))
		}
		return out
	case groupCounter:
		for _, g := range s.groups {
			if g.row.Pipe == r.Pipe && g.nr == r.Key.Uint("ppg_counter_id") {
				return bfrt.Fields{{Name: "ppg_id", Value: g.row.Key.Get("ppg_id")}}
			}
		}
	}
	return nil
}
