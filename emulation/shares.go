package emulation

import (
	"math"
	"slices"

	"github.com/headgate/headgate/controller/feature/soze"
	"github.com/headgate/headgate/emulation/network"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/sim/maxmin"
	"github.com/headgate/headgate/units"
)

// wireShare is the payload's part of a full data packet with its shim; the switches' rates count
// exactly its bytes.
const wireShare = float64(network.MSS) / float64(packet.DataOverhead+int64(network.MSS))

// settleWindow is how long a rate is averaged to judge whether a flow has settled, in multiples
// of the largest target round-trip time of the fabric.
const settleWindow = 4

// shares adds to the flows of a phase, which are tracks, their weighted max-min shares on the
// paths that their packets took. A flow without a path has none.
func (rec *Record) shares(s *Scenario, p *PhaseResult, tracks []int, paths [][]int, all Series) error {
	wires, scale := rec.Wires, units.Time(s.scale(rec.Config))
	capacity := make([]float64, len(wires))
	for i, w := range wires {
		capacity[i] = float64(w.Rate) * wireShare * float64(scale)
	}
	var flows []maxmin.Flow
	var of []*FlowPhase
	for i, k := range tracks {
		if path := paths[k]; len(path) > 0 {
			f := &p.Flows[i]
			t := s.flow(f.Name)
			weight := all[len(all)/2].Flows[k].Weight
			f.Share = &Share{From: t.From[0], To: t.To, Weight: weight}
			for _, w := range path {
				f.Path = append(f.Path, wires[w].From.String())
			}
			flows, of = append(flows, maxmin.Flow{Weight: weight, Path: path}), append(of, f)
		}
	}
	if len(flows) == 0 {
		return nil
	}
	fair, err := maxmin.Solve(capacity, flows)
	if err != nil {
		return err
	}
	law := soze.Of(rec.Config)
	window := settleWindow * rec.Config.Scaled(law.P+law.K) / scale
	for i, f := range of {
		k := slices.IndexFunc(rec.Flows, func(t FlowTotal) bool { return t.Name == f.Name })
		f.Share.Share, f.Bottleneck = fair.Rate[i], wires[fair.Bottleneck[i]].From.String()
		f.Error = math.Round((f.Measured/fair.Rate[i]-1)*10000) / 100
		f.SettledUS = all.settle(func(s Series) float64 { return s.rate(k) }, fair.Rate[i], tolerance/100.0, window)
	}
	return nil
}
