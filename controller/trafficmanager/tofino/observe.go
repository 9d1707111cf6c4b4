package tofino

import (
	"context"
	"fmt"
	"slices"

	"github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt"
)

// pair is a desired row with the chip's present row for the same key.
type pair struct {
	want
	have  bfrt.Row
	exist bool
}

// extra is a priority group of the chip that is not in the desired state.
type extra struct {
	have  bfrt.Row
	first bool // the group must be removed first, because it has a class that another group needs
}

// observed is the chip's state, as far as it is compared.
type observed struct {
	pairs  []pair
	extras []extra
	groups []bfrt.Row // all priority groups of the pipes in use
}

// queueAt names a queue of a port.
type queueAt struct {
	port  uint32
	queue int
}

// compare reads the chip and returns the differences.
func (d *Driver) compare(ctx context.Context, want *settings) ([]diff, error) {
	o, err := d.observe(ctx, want)
	if err != nil {
		return nil, err
	}
	return o.diffs(want), nil
}

// observe reads the chip's rows for the desired ones. It sets the keys of groups and queues.
func (d *Driver) observe(ctx context.Context, s *settings) (*observed, error) {
	others, err := d.others(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := d.suits(ctx, s, others); err != nil {
		return nil, err
	}
	places, err := d.places(ctx, s)
	if err != nil {
		return nil, err
	}
	o := &observed{}
	if o.groups, err = d.allGroups(ctx, s); err != nil {
		return nil, err
	}
	standard, err := d.client.Read(ctx, bfrt.Row{Table: tableEgress, Pipe: bfrt.AllPipes, Default: true})
	if err != nil {
		return nil, err
	}
	if len(standard) != 1 {
		return nil, fmt.Errorf("%s: %d default entries: want one", tableEgress, len(standard))
	}
	o.pairs = o.assign(s)
	taken := len(o.pairs)
	var ask []bfrt.Row
	for _, w := range s.rows {
		switch {
		case w.Table == tableGroup:
			continue
		case w.filter:
			if w.Table, err = d.filter(w.Table); err != nil {
				return nil, err
			}
		case w.Table == tableQueue || w.Table == tableEgress || w.Table == tableSched:
			w.Key = places[queueAt{w.port, w.queue}]
		}
		if w.Table == tablePool && w.Key.Text("pool") == skidPool {
			w.Data = bfrt.Fields{number("size_cells", w.Data.Uint("size_cells")+others)}
		}
		if w.plain {
			w.Data = defaults(standard[0], w.Data)
		}
		o.pairs = append(o.pairs, pair{want: w, exist: true})
		ask = append(ask, bfrt.Row{Table: w.Table, Pipe: w.Pipe, Key: w.Key})
	}
	have, err := d.client.Read(ctx, ask...)
	if err != nil {
		return nil, err
	}
	if len(have) != len(ask) {
		return nil, fmt.Errorf("%d rows were requested and %d arrived", len(ask), len(have))
	}
	for i := range have {
		o.pairs[taken+i].have = have[i]
	}
	return o, nil
}

// others returns the cells of headroom of the ports that s does not cover.
func (d *Driver) others(ctx context.Context, s *settings) (cells uint64, err error) {
	const field = "skid_limit_cells"
	rows, err := d.client.Read(ctx, bfrt.Row{Table: tablePort, Pipe: bfrt.AllPipes, Data: bfrt.Fields{{Name: field}}})
	for _, r := range rows {
		if !slices.Contains(s.ports, uint32(r.Key.Uint("dev_port"))) {
			cells += r.Data.Uint(field)
		}
	}
	return cells, err
}

// suits checks that the chip has the configured model's cell size, and enough cells. skid is the headroom of other
// ports.
func (d *Driver) suits(ctx context.Context, s *settings, skid uint64) error {
	ask := []bfrt.Row{{Table: tableChip, Pipe: bfrt.AllPipes}}
	for _, pool := range []string{"IG_APP_POOL_1", "IG_APP_POOL_2", "IG_APP_POOL_3", "IG_EG_NEGATIVE_MIRROR_POOL"} {
		ask = append(ask, bfrt.Row{Table: tablePool, Pipe: bfrt.AllPipes, Key: bfrt.Fields{text("pool", pool)}})
	}
	have, err := d.client.Read(ctx, ask...)
	if err != nil {
		return err
	}
	if len(have) != len(ask) {
		return fmt.Errorf("%d rows were requested and %d arrived", len(ask), len(have))
	}
	cell, total := have[0].Data.Uint("cell_size_bytes"), have[0].Data.Uint("total_cells")
	if cell != uint64(s.chip.cell) {
		return wrong("chip", fmt.Sprintf("one with cells of %d B", cell), fmt.Sprintf("%s, which has cells of %d B", s.chip.name, s.chip.cell))
	}
	others := skid
	for _, r := range have[1:] {
		others += r.Data.Uint("size_cells")
	}
	if s.policy != "off" && s.reserved+others > total {
		return wrong("buffer", fmt.Sprintf("%d cells with what other ports are guaranteed", s.reserved),
			fmt.Sprintf("%d cells: the chip has %d, %d of them in other pools and in headroom of other ports", total-min(total, others), total, others))
	}
	return nil
}

// places returns the keys of all queues.
func (d *Driver) places(ctx context.Context, s *settings) (map[queueAt]bfrt.Fields, error) {
	var ask []bfrt.Row
	for _, p := range s.ports {
		ask = append(ask, bfrt.Row{Table: tablePlace, Pipe: bfrt.AllPipes, Key: devPort(p)})
	}
	have, err := d.client.Read(ctx, ask...)
	if err != nil {
		return nil, err
	}
	places := map[queueAt]bfrt.Fields{}
	for _, r := range have {
		port, group := r.Key.Uint("dev_port"), r.Data.Get("pg_id")
		for q, at := range r.Data.Uints("egress_qid_queues") {
			places[queueAt{uint32(port), q}] = bfrt.Fields{{Name: "pg_id", Value: group}, number("pg_queue", uint64(at))}
		}
	}
	for _, p := range s.ports {
		for q := range queues {
			if places[queueAt{p, q}] == nil {
				return nil, fmt.Errorf("%s dev_port=%d: egress_qid_queues has no queue %d: want queues 0 to %d", tablePlace, p, q, queues-1)
			}
		}
	}
	return places, nil
}

// allGroups returns all priority groups of the pipes in use.
func (d *Driver) allGroups(ctx context.Context, s *settings) ([]bfrt.Row, error) {
	var ask []bfrt.Row
	last := uint32(bfrt.AllPipes)
	for _, p := range s.ports { // sorted
		if pipe := pipeOf(p); pipe != last {
			ask = append(ask, bfrt.Row{Table: tableGroup, Pipe: pipe})
			last = pipe
		}
	}
	return d.client.Read(ctx, ask...)
}

// defaults fills missing fields from the default entry.
func defaults(standard bfrt.Row, over bfrt.Fields) bfrt.Fields {
	out := slices.Clone(over)
	for _, n := range standard.Data {
		if over.Get(n.Name) == nil {
			out = append(out, n)
		}
	}
	return out
}

// assign finds the chip's priority group for each desired port and class. A desired group that the chip lacks gets
// a free identifier. All other groups of the ports become extras.
func (o *observed) assign(s *settings) []pair {
	claimed := map[string]bool{}
	used := map[uint32]map[uint64]bool{}
	for _, g := range o.groups {
		if used[g.Pipe] == nil {
			used[g.Pipe] = map[uint64]bool{}
		}
		used[g.Pipe][g.Key.Uint("ppg_id")] = true
	}
	var pairs []pair
	for _, w := range s.rows {
		if w.Table == tableGroup {
			pairs = append(pairs, pair{want: w})
		}
	}
	// First take the groups that have exactly that class, then those that an earlier Apply left without a class.
	for _, mask := range []func(class int) uint8{func(c int) uint8 { return 1 << c }, func(int) uint8 { return 0 }} {
		for i := range pairs {
			p := &pairs[i]
			for _, g := range o.groups {
				if !p.exist && !claimed[g.Name()] && portOf(g) == uint64(p.port) && classes(g) == mask(p.class) {
					claimed[g.Name()] = true
					p.have, p.exist, p.Key = g, true, g.Key
				}
			}
		}
	}
	ours := map[uint64]uint8{} // classes that groups will newly get, by port
	for _, p := range s.ports {
		ours[uint64(p)] = 0
	}
	for i := range pairs {
		p := &pairs[i]
		if !p.exist || classes(p.have) == 0 {
			ours[uint64(p.port)] |= 1 << p.class
		}
		if p.exist {
			continue
		}
		id := uint64(1)
		for used[p.Pipe][id] {
			id++
		}
		if used[p.Pipe] == nil {
			used[p.Pipe] = map[uint64]bool{}
		}
		used[p.Pipe][id] = true
		p.Key = bfrt.Fields{number("ppg_id", id)}
	}
	for _, g := range o.groups {
		if takes, known := ours[portOf(g)]; known && !claimed[g.Name()] {
			o.extras = append(o.extras, extra{g, classes(g)&takes != 0})
		}
	}
	return pairs
}

func portOf(group bfrt.Row) uint64 {
	if group.Action != "dev_port" {
		return 1 << 32 // the mirror port
	}
	return group.Data.Uint("dev_port")
}

func classes(group bfrt.Row) (mask uint8) {
	for c := range 8 {
		if group.Data.Bool(icos(c)) {
			mask |= 1 << c
		}
	}
	return mask
}
