package northbound

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/headgate/headgate/controller/serving/events"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/internal/gnmi"
	"github.com/headgate/headgate/units"
)

// openConfig is the fabric as gNMI shows it: each switch is a target.
type openConfig struct{ Options }

// shown are the leaves that features know: the columns of their tables, by their metrics.
var shown = map[string]*gnmi.Leaf{
	"port_transmitted_bytes":       gnmi.OutOctets,
	"port_transmitted_packets":     gnmi.OutPkts,
	"port_refused_packets":         gnmi.OutDiscards,
	"port_queueing_delay_seconds":  gnmi.QueueingDelay,
	"port_queue_bytes":             gnmi.QueueLen,
	"pfc_pause_frames":             gnmi.PFCPauseFrames,
	"pfc_resume_frames":            gnmi.PFCResumeFrames,
	"pfc_refresh_frames":           gnmi.PFCRefreshFrames,
	"pfc_departed_bytes":           gnmi.Departed,
	"pfc_victim":                   gnmi.Victim,
	"pfc_victim_turns":             gnmi.VictimTurns,
	"pfc_ingress_private_bytes":    gnmi.ClassPrivate,
	"pfc_ingress_shared_bytes":     gnmi.ClassShared,
	"pfc_ingress_headroom_bytes":   gnmi.ClassHeadroom,
	"pfc_paused":                   gnmi.PeerPaused,
	"pfc_paused_seconds":           gnmi.PeerPausedTime,
	"pfc_lossless_dropped_packets": gnmi.LosslessDrops,
	"pfc_storm":                    gnmi.Storm,
	"pfc_storms":                   gnmi.Storms,
	"pfc_storm_dropped_packets":    gnmi.StormDrops,
	"buffer_threshold_bytes":       gnmi.Threshold,
	"buffer_size_bytes":            gnmi.PoolSize,
	"buffer_used_bytes":            gnmi.PoolUsed,
	"buffer_peak_bytes":            gnmi.PoolPeak,
}

// operStatus is what OpenConfig calls a port's state.
var operStatus = map[view.PortState]string{view.PortUp: gnmi.Up, view.PortDown: gnmi.Down, view.PortUnknown: gnmi.Unknown}

// State implements gnmi.Source.
func (o openConfig) State(target string, wants gnmi.Wants) []gnmi.State {
	var states []gnmi.State
	for _, s := range o.Backend.Glance(target, func(t *view.Table) bool {
		return slices.ContainsFunc(t.Columns, func(c view.Column) bool { return wants[shown[c.Metric]] })
	}) {
		state := gnmi.State{Target: s.Name}
		for _, p := range s.Ports {
			admin := gnmi.Up
			if p.OutOfService {
				admin = gnmi.Down
			}
			of := [2]string{strconv.FormatUint(uint64(p.Number), 10)}
			for leaf, is := range map[*gnmi.Leaf]any{
				gnmi.Type: gnmi.Ethernet, gnmi.Description: clean(p.Peer), gnmi.ID: p.Number, gnmi.AdminStatus: admin, gnmi.OperStatus: operStatus[p.State],
			} {
				if wants[leaf] {
					state.Values = append(state.Values, gnmi.Value{Leaf: leaf, Of: of, Is: is})
				}
			}
		}
		for _, t := range s.Status {
			state.Values = append(state.Values, valuesOf(t, wants)...)
		}
		states = append(states, state)
	}
	return states
}

// valuesOf returns those of a table that are wanted.
func valuesOf(t view.Status, wants gnmi.Wants) []gnmi.Value {
	var list []gnmi.Value
	for i, c := range t.Columns {
		leaf := shown[c.Metric]
		if !wants[leaf] {
			continue
		}
		for _, r := range t.Rows {
			v := gnmi.Value{Leaf: leaf, Is: leafValue(r.Values[i])}
			for k, kind := range leaf.Keys() {
				v.Of[k] = clean(r.Keys[slices.Index(t.Keys, kind)])
			}
			if v.Is != nil {
				list = append(list, v)
			}
		}
	}
	return list
}

// leafValue returns a column's value as leaves have it; nil for what is unknown.
func leafValue(v any) any {
	switch v := v.(type) {
	case int:
		return uint64(max(v, 0))
	case units.Bytes:
		return uint64(max(v, 0))
	case time.Duration:
		return uint64(max(v, 0).Nanoseconds())
	}
	return v
}

// Changed implements gnmi.Source.
func (o openConfig) Changed(ctx context.Context) <-chan struct{} {
	sub, changed := o.Events.Subscribe(events.Options[view.Event]{Buffer: 1}), make(chan struct{}, 1)
	go func() {
		defer sub.Close()
		for {
			if _, _, err := sub.Next(ctx); err != nil {
				return
			}
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}()
	return changed
}
