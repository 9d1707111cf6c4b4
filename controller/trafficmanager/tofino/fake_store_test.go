package tofino

import (
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt"
)

// These hold for all chips.
const (
	pipes        = 4
	groupsInPipe = 128
	groupTable   = "tm.ppg.cfg"
	groupCounter = "tm.counter.ppg"
	portCounters = "$PORT_STAT"
)

// store is a chip's content. The server owns it.
type store struct {
	facts  facts
	schema *bfrt.Schema
	over   map[string]bfrt.Fields // entries that differ from their defaults, by the table's name
	groups []*heldGroup
}

func newStore(chip string, schema *bfrt.Schema) *store {
	return &store{facts: factsOf(chip), schema: schema, over: map[string]bfrt.Fields{}}
}

// put returns the fields with one value changed or added.
func put(f bfrt.Fields, n bfrt.Named) bfrt.Fields {
	if i := slices.IndexFunc(f, func(x bfrt.Named) bool { return x.Name == n.Name }); i >= 0 {
		f[i] = n
		return f
	}
	return append(f, n)
}

// zero returns the value of an unset field.
func zero(f *bfrt.Field) any {
	switch {
	case f.Repeated:
		return []uint32{}
	case f.Kind == bfrt.Boolean:
		return false
	case f.Kind == bfrt.Float:
		return float32(0)
	case f.Kind == bfrt.Text && len(f.Choices) > 0:
		return f.Choices[0]
	case f.Kind == bfrt.Text:
		return ""
	}
	return uint64(0)
}

// row returns an entry of a table of fixed size.
func (s *store) row(t *bfrt.Table, pipe uint32, key bfrt.Fields) bfrt.Row {
	r := bfrt.Row{Table: t.Name, Pipe: pipe, Key: key, Action: actionOf(t.Name)}
	for _, f := range t.Fields(t.Action(r.Action)) {
		r.Data = append(r.Data, bfrt.Named{Name: f.Name, Value: zero(&f)})
	}
	for _, n := range s.facts.defaults(t.Name, pipe, key) {
		r.Data = put(r.Data, n)
	}
	for _, n := range s.over[r.Name()] {
		r.Data = put(r.Data, n)
	}
	for _, n := range s.computed(t.Name, r) {
		r.Data = put(r.Data, n)
	}
	return r
}

// all returns the entries of a table, in all pipes or in one.
func (s *store) all(t *bfrt.Table, pipe uint32) []bfrt.Row {
	var rows []bfrt.Row
	if t.Name == groupTable {
		for _, g := range s.groups {
			if pipe == bfrt.AllPipes || g.row.Pipe == pipe {
				rows = append(rows, g.row)
			}
		}
		return rows
	}
	if t.Scope == bfrt.Device {
		for _, k := range s.facts.keys(t, 0) {
			rows = append(rows, s.row(t, bfrt.AllPipes, k))
		}
		return rows
	}
	for p := range uint32(pipes) {
		if pipe == bfrt.AllPipes || pipe == p {
			for _, k := range s.facts.keys(t, p) {
				rows = append(rows, s.row(t, p, k))
			}
		}
	}
	return rows
}

// read returns the requested entries, or why it cannot.
func (s *store) read(t *bfrt.Table, r bfrt.Row) ([]bfrt.Row, string) {
	switch {
	case r.Default:
		out := s.row(t, bfrt.AllPipes, nil)
		out.Default = true
		return []bfrt.Row{out}, ""
	case len(r.Key) == 0 && len(t.Keys) > 0:
		return s.all(t, r.Pipe), ""
	case t.Name == groupTable:
		if g := s.group(r); g != nil {
			return []bfrt.Row{g.row}, ""
		}
		return nil, "there is no such group"
	case !s.facts.has(t, r):
		return nil, "there is no such entry"
	}
	out := s.row(t, r.Pipe, r.Key)
	if t.Name == portCounters && !r.Fresh {
		for i := range out.Data {
			out.Data[i].Value = uint64(0) // the driver has not counted since the ports came up
		}
	}
	return []bfrt.Row{out}, ""
}

// write makes a change, or returns why it cannot.
func (s *store) write(c bfrt.Change) (codes.Code, string) {
	t := s.schema.Table(c.Row.Table)
	if t.Name == groupTable {
		return s.writeGroup(c)
	}
	if !s.facts.has(t, c.Row) {
		return codes.NotFound, "there is no such entry"
	}
	if why := s.rules(t, c.Row); why != "" {
		return codes.InvalidArgument, why
	}
	s.set(t, c.Row)
	return codes.OK, ""
}

// set changes fields.
func (s *store) set(t *bfrt.Table, r bfrt.Row) {
	if t.Name == groupTable {
		if g := s.group(r); g != nil {
			for _, n := range r.Data {
				g.row.Data = put(g.row.Data, n)
			}
		}
		return
	}
	if t.Scope == bfrt.Device {
		r.Pipe = bfrt.AllPipes
	}
	for _, n := range r.Data {
		s.over[r.Name()] = put(s.over[r.Name()], n)
	}
}

// facts are the initial values of a chip's drivers (p4lang/open-p4studio, pkgsrc/bf-drivers/
// src/traffic_mgr/init). Those of Tofino 1 are of a model that has less than the largest memory.
type facts struct {
	chip                            string
	cell, total                     uint64
	pool, poolLimit, guaranteed     uint64 // ingress
	egress, queueLimit, queueLeast  uint64
	groupPorts, queuesPerPort       uint32 // of a port group, and of a port in it
	reserved, ingressMost, preFIFOs uint64
}

func factsOf(chip string) facts {
	if chip == "tofino2" {
		return facts{
			chip: chip, cell: 176, total: 384 * 1024, pool: 80579, poolLimit: 1103, guaranteed: 72,
			egress: 50195, queueLimit: 43, queueLeast: 36, groupPorts: 8, queuesPerPort: 16, reserved: 0x6000, ingressMost: 0x3e800, preFIFOs: 0xc0,
		}
	}
	return facts{
		chip: chip, cell: 80, total: 260 * 1024, pool: 89260, poolLimit: 305, guaranteed: 40,
		egress: 30284, queueLimit: 13, queueLeast: 20, groupPorts: 4, queuesPerPort: 8,
	}
}

// actionOf returns the action of entries that are read.
func actionOf(table string) string {
	if table == "tm.queue.buffer" {
		return "shared_pool"
	}
	return ""
}

// defaults returns the fields that are not zero initially.
func (f facts) defaults(table string, pipe uint32, key bfrt.Fields) bfrt.Fields {
	switch table {
	case "tm.cfg":
		d := bfrt.Fields{number("cell_size_bytes", f.cell), number("total_cells", f.total)}
		if f.ingressMost > 0 {
			d = append(d, number("ig_buffer_limit_cells", f.ingressMost), flag("ig_buffer_limit_enable", true))
		}
		return d
	case "tm.pool.cfg":
		size := map[string]uint64{
			"IG_APP_POOL_0": f.pool, "EG_APP_POOL_0": f.egress, "EG_APP_POOL_3": 0x3000, "IG_EG_NEGATIVE_MIRROR_POOL": 20 * (portsPerPipe + 1),
			"IG_EG_GUARANTEED_MIN": f.reserved, "EG_PRE_FIFO": f.preFIFOs,
		}
		return bfrt.Fields{number("size_cells", size[key.Text("pool")])}
	case "tm.pool.skid":
		return bfrt.Fields{number("resume_limit_cells", 128)}
	case "tm.pool.app_pfc":
		if key.Text("pool") == "IG_APP_POOL_0" {
			return bfrt.Fields{number("pfc_limit_cells", f.pool)}
		}
	case "tm.port.cfg":
		return f.place(uint32(key.Uint("dev_port")) & 0x7f)
	case "tm.port.buffer":
		d := bfrt.Fields{number("uc_ct_limit_cells", 15), number("ig_limit_cells", f.total), number("eg_limit_cells", f.total), number("eg_hysteresis_cells", 32)}
		if f.chip == "tofino1" {
			d = append(d, number("ig_hysteresis_cells", 32))
		}
		return d
	case "tm.port.flowcontrol":
		return bfrt.Fields{text("mode_tx", "NONE"), text("mode_rx", "PFC"), {Name: "cos_to_icos", Value: []uint32{0, 1, 2, 3, 4, 5, 6, 7}}}
	case "tm.port.dpg":
		return bfrt.Fields{
			number("guaranteed_cells", f.guaranteed), number("hysteresis_cells", 32), text("pool_id", "IG_APP_POOL_0"),
			number("pool_max_cells", f.poolLimit), text("dynamic_baf", "80%"),
		}
	case "tm.queue.buffer":
		return bfrt.Fields{
			number("guaranteed_cells", f.queueLeast), number("hysteresis_cells", 32), flag("tail_drop_enable", true),
			text("pool_id", "EG_APP_POOL_0"), number("pool_max_cells", f.queueLimit), text("dynamic_baf", "80%"),
		}
	case "tm.queue.sched_cfg":
		return bfrt.Fields{text("min_priority", "LOW"), text("max_priority", "LOW"), number("dwrr_weight", 1023), flag("scheduling_enable", true)}
	case "$PORT":
		return bfrt.Fields{text("$SPEED", "BF_SPEED_100G"), flag("$PORT_UP", true)}
	}
	return nil
}

// place returns a port's position among the port groups of its pipe.
func (f facts) place(port uint32) bfrt.Fields {
	at, first := port%f.groupPorts, port%f.groupPorts*f.queuesPerPort
	var own, all []uint32
	for q := range f.queuesPerPort {
		own, all = append(own, q), append(all, first+q)
	}
	return bfrt.Fields{
		number("pg_id", uint64(port/f.groupPorts)), number("pg_port_nr", uint64(at)), number("port_queues_count", uint64(f.queuesPerPort)),
		{Name: "ingress_qid_map", Value: own}, {Name: "egress_qid_queues", Value: all},
	}
}

// keys returns the keys of a table of fixed size; an empty key for a table without one.
func (f facts) keys(t *bfrt.Table, pipe uint32) []bfrt.Fields {
	if t.Scope == bfrt.Device && len(t.Keys) > 0 && t.Keys[0].Kind == bfrt.Number && t.Keys[0].Name != "$LPF_INDEX" {
		var out []bfrt.Fields
		for p := range uint64(pipes) {
			for i := range uint64(portsPerPipe) {
				out = append(out, bfrt.Fields{number(t.Keys[0].Name, p<<7|i)})
			}
		}
		return out
	}
	out := []bfrt.Fields{nil}
	for _, k := range t.Keys {
		var next []bfrt.Fields
		for _, have := range out {
			if k.Kind == bfrt.Text {
				for _, c := range k.Choices {
					next = append(next, append(slices.Clone(have), text(k.Name, c)))
				}
				continue
			}
			for n := k.Min; n <= k.Max; n++ {
				next = append(next, append(slices.Clone(have), number(k.Name, n)))
			}
		}
		out = next
	}
	return out
}

// has reports whether a table of fixed size has an entry with this key, which is in range.
func (f facts) has(t *bfrt.Table, r bfrt.Row) bool {
	for _, name := range []string{"dev_port", "$DEV_PORT"} {
		if n, ok := r.Key.Get(name).(uint64); ok {
			return n&0x7f < portsPerPipe && n>>7 < pipes
		}
	}
	return true
}
