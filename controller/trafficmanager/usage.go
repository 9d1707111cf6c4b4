package trafficmanager

import (
	"context"

	"github.com/headgate/headgate/controller/bfrt"
	"github.com/headgate/headgate/units"
)

// Usage is how a chip's memory is used, by whole cells.
type Usage struct {
	Shared     units.Bytes // of the application pool, now
	SharedPeak units.Bytes // since the driver's counters were cleared
	Groups     []GroupUsage
}

// GroupUsage is what a priority group holds.
type GroupUsage struct {
	Port                         uint32
	Classes                      uint8 // bit n for class n
	Guaranteed, Shared, Headroom units.Bytes
	Peak                         units.Bytes
	Drops                        uint64 // packets that the group refused; 0 while it is lossless
}

// Usage reads the counters of the priority groups of the settings' ports.
func (d *Driver) Usage(ctx context.Context, s *Settings) (*Usage, error) {
	u := &Usage{}
	err := d.do(ctx, s, func() error {
		groups, err := d.allGroups(ctx, s)
		if err != nil {
			return err
		}
		ask := []bfrt.Row{{Table: "tm.counter.pool", Pipe: bfrt.AllPipes, Key: bfrt.Fields{text("pool", appPool)}}}
		known := map[uint32]bool{}
		for _, p := range s.ports {
			known[p] = true
		}
		for _, g := range groups {
			if port := portOf(g); port <= 1<<31 && known[uint32(port)] {
				u.Groups = append(u.Groups, GroupUsage{Port: uint32(port), Classes: classes(g)})
				ask = append(ask, bfrt.Row{Table: tableGroupCounter, Pipe: g.Pipe, Key: bfrt.Fields{{Name: "ppg_counter_id", Value: g.Data.Get("ppg_counter_id")}}})
			}
		}
		have, err := d.client.Read(ctx, ask...)
		if err != nil || len(have) != len(ask) {
			return err
		}
		bytes := func(r bfrt.Row, name string) units.Bytes {
			return units.Bytes(r.Data.Get(name).Uint()) * s.chip.cell
		}
		u.Shared, u.SharedPeak = bytes(have[0], "usage_cells"), bytes(have[0], "watermark_cells")
		for i, r := range have[1:] {
			g := &u.Groups[i]
			g.Guaranteed, g.Shared, g.Headroom = bytes(r, "guaranteed_min_usage_cells"), bytes(r, "shared_pool_usage_cells"), bytes(r, skidUsage)
			g.Peak, g.Drops = bytes(r, "watermark_cells"), r.Data.Get("drop_count_packets").Uint()
		}
		return nil
	})
	return u, err
}
