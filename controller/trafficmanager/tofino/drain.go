package tofino

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt"
)

const (
	tableGroupCounter = "tm.counter.ppg"
	skidUsage         = "skid_pool_usage_cells"
)

// How long a port may take to empty its headroom, and how often it is looked at.
const (
	drainTime  = time.Second
	drainEvery = 10 * time.Millisecond
)

// drain waits until nothing is in the headroom of some ports, so that it can shrink without
// a packet finding it full.
func (d *Driver) drain(ctx context.Context, ports []uint32) error {
	s := &settings{ports: slices.Compact(sortPorts(slices.Clone(ports)))}
	groups, err := d.allGroups(ctx, s)
	if err != nil {
		return err
	}
	var ask []bfrt.Row
	for _, g := range groups {
		if port := portOf(g); port <= 1<<31 && slices.Contains(s.ports, uint32(port)) {
			ask = append(ask, bfrt.Row{Table: tableGroupCounter, Pipe: g.Pipe, Key: bfrt.Fields{{Name: "ppg_counter_id", Value: g.Data.Get("ppg_counter_id")}}})
		}
	}
	for end := time.Now().Add(drainTime); ; {
		have, err := d.client.Read(ctx, ask...)
		if err != nil {
			return err
		}
		full := slices.IndexFunc(have, func(r bfrt.Row) bool { return r.Data.Uint(skidUsage) > 0 })
		if full < 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s: %s is %v after %v: it has to be 0 before headroom shrinks", have[full].Name(), skidUsage, have[full].Data.Get(skidUsage), drainTime)
		}
		select {
		case <-time.After(drainEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
