package emulation

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/feature/buffer"
)

// pollWithin bounds how late a poll of a switch may be.
const pollWithin = 20 * time.Second

// pools returns the controller's values of the switches' buffers, once each switch was polled after
// the end of the measurement. It also returns the reasons against the play: a poll not answered within
// pollWithin, and switches that the controller lost after began.
func (r *Run) pools(ctx context.Context, began time.Time) (pools map[string]Pools, bad []string, err error) {
	ended := time.Now()
	missing, err := r.control.Poll(ctx, pollWithin, func(list []*pb.SwitchStatus) (missing string) {
		for _, sw := range list {
			policy := buffer.Of(r.Config.Switch(sw.Name))
			if at := polled(sw); policy.On() && (at == nil || at.AsTime().Before(ended)) {
				missing = fmt.Sprintf("no poll of %s's buffer came back after the end", sw.Name)
			}
		}
		pools = PoolsOf(list)
		if bad = nil; len(r.opts.Restarts) == 0 {
			bad = unsteady(list, began)
		}
		return missing
	})
	if missing != "" {
		bad = append(bad, missing)
	}
	return pools, bad, err
}

// unsteady names the switches that have not been ready all the time since a moment.
func unsteady(list []*pb.SwitchStatus, since time.Time) (bad []string) {
	for _, sw := range list {
		if sw.State != pb.SwitchStatus_STATE_READY || sw.Since.AsTime().After(since) {
			bad = append(bad, fmt.Sprintf("the controller did not hold %s ready all the time", sw.Name))
		}
	}
	return bad
}

// polled returns when the last poll of a switch's buffer came back; nil if none has.
func polled(sw *pb.SwitchStatus) *timestamppb.Timestamp {
	return sw.GetFeatures().GetBuffer().GetSwitch().GetPolled()
}

// PoolsOf returns the most that each pool held, by switch, as the controller knows it.
func PoolsOf(switches []*pb.SwitchStatus) (all map[string]Pools) {
	for _, sw := range switches {
		if polled(sw) == nil {
			continue
		}
		if all == nil {
			all = map[string]Pools{}
		}
		peaks := map[string]uint64{} // by pool
		for _, p := range sw.GetFeatures().GetBuffer().GetPools() {
			peaks[p.GetPool()] = p.GetPeakBytes()
		}
		all[sw.Name] = Pools{Private: peaks["private"], Shared: peaks["shared"], Headroom: peaks["headroom"], Insurance: peaks["insurance"]}
	}
	return all
}
