package compare

import (
	"context"
	"fmt"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// pollWithin bounds how long a poll of a switch may take that is late already.
const pollWithin = 20 * time.Second

// pools adds to a result what the controller knows of the switches' buffers, once each has
// been polled after the end of the measurement.
func (r *Run) pools(ctx context.Context, res *Result) error {
	ended := time.Now()
	ctx, cancel := context.WithTimeout(ctx, pollWithin)
	defer cancel()
	for {
		list, err := r.control.Admin.ListSwitches(ctx, &pb.ListSwitchesRequest{})
		if err != nil {
			return fmt.Errorf("state of the buffers: %w", err)
		}
		missing := ""
		for _, sw := range list.Switches {
			policy := r.Config.Switch(sw.Name).Buffer
			if policy.On() && (sw.Buffer.GetTime() == nil || sw.Buffer.Time.AsTime().Before(ended)) {
				missing = sw.Name
			}
		}
		if missing == "" {
			res.takePools(list.Switches)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("state of the buffers: no poll of %s came back after the end", missing)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (v *Result) takePools(switches []*pb.SwitchStatus) {
	for _, sw := range switches {
		b := sw.Buffer
		if b.GetTime() == nil {
			continue
		}
		if v.Pools == nil {
			v.Pools = map[string]Pools{}
		}
		v.Pools[sw.Name] = Pools{
			Private: b.Peak.GetPrivateBytes(), Shared: b.Peak.GetSharedBytes(),
			Headroom: b.Peak.GetHeadroomBytes(), Insurance: b.Peak.GetInsuranceBytes(),
		}
		for _, p := range b.Ports {
			for _, n := range p.LosslessDrops {
				v.LosslessDrops += n
			}
		}
	}
}
