package scenario

import (
	"cmp"
	"context"
	"slices"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/units"
)

// Snapshot is a run at one moment.
type Snapshot struct {
	Elapsed, Total units.Time
	Lag            units.Time // of the process behind the wall clock
	Flows          []FlowNow
	Switches       []SwitchNow
}

// FlowNow is a running flow at one moment.
type FlowNow struct {
	Name, From, To string
	Weight         float64
	Rate           units.Rate // payload, over the last half second
	History        []float64  // rates before, oldest first, bits per second
	MaxQD, RTT     units.Time
}

// SwitchNow is a switch at one moment, as the controller sees it.
type SwitchNow struct {
	Name    string
	State   string
	Entries uint64
	Busiest *pb.TelemetrySample // port with the longest queues; nil before the first poll
}

// historyPoints is how many rates a FlowNow remembers, half a second each.
const historyPoints = 32

// Snapshot returns the run as it is now.
func (r *Run) Snapshot(ctx context.Context) Snapshot {
	lag, _ := r.stage.fabric.Loop.Lag()
	names, now := r.stage.samples.names()
	s := Snapshot{Elapsed: now - r.began, Total: r.each * units.Time(len(r.opts.Script.Phases)), Lag: lag}
	for _, name := range names {
		f, ok := r.stage.samples.get(name)
		if !ok || len(f.series) == 0 {
			continue
		}
		last := f.series[len(f.series)-1]
		fn := FlowNow{Name: name, From: f.flow.From, To: f.flow.To, Weight: f.flow.Weight, MaxQD: last.MaxQD, RTT: last.RTT}
		const span = 500 * units.Millisecond
		for i := historyPoints; i > 0; i-- {
			end := now - units.Time(i-1)*span
			if end-span >= f.series[0].At {
				fn.History = append(fn.History, f.series.between(end-span, end).rate())
			}
		}
		if n := len(fn.History); n > 0 {
			fn.Rate = units.Rate(fn.History[n-1])
		}
		s.Flows = append(s.Flows, fn)
	}
	s.Switches = r.switchesNow(ctx)
	return s
}

func (r *Run) switchesNow(ctx context.Context) []SwitchNow {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	list, err := r.stage.Admin.ListSwitches(ctx, &pb.ListSwitchesRequest{})
	if err != nil {
		return nil
	}
	out := make([]SwitchNow, 0, len(list.Switches))
	for _, sw := range list.Switches {
		out = append(out, SwitchNow{
			Name: sw.Name, State: stateName(sw.State), Entries: sw.Entries, Busiest: r.stage.Telemetry.Busiest(sw.Name),
		})
	}
	slices.SortFunc(out, func(a, b SwitchNow) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func stateName(s pb.SwitchStatus_State) string {
	switch s {
	case pb.SwitchStatus_STATE_DISCONNECTED:
		return "disconnected"
	case pb.SwitchStatus_STATE_BACKUP:
		return "backup"
	case pb.SwitchStatus_STATE_RECONCILING:
		return "reconciling"
	case pb.SwitchStatus_STATE_READY:
		return "ready"
	case pb.SwitchStatus_STATE_DEGRADED:
		return "degraded"
	}
	return "unknown"
}
