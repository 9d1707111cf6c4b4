package scenario

import (
	"fmt"
	"math"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/fabric/maxmin"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/scenario/inproc"
	"github.com/headgate/headgate/units"
)

// frameBytes is a full data packet on the wire; the switches' rates count exactly these.
const frameBytes = packet.DataOverhead + int64(inproc.MSS)

// measure reports the flows of a phase from their samples between from and to. Rates and
// delays are means over the second half, whatever happened before.
func (g *stage) measure(cfg *config.Config, from, to units.Time) ([]FlowReport, error) {
	s, wires := g.samples, g.fabric.Wires
	names, _ := s.names()
	capacity := make([]float64, len(wires))
	for i, w := range wires {
		capacity[i] = float64(w.Rate) * float64(inproc.MSS) / float64(frameBytes)
	}
	var (
		flows []maxmin.Flow
		out   []FlowReport
		all   []Series
	)
	for _, name := range names {
		fl, _ := s.get(name)
		path := g.tracer.path(fl.key.Src, fl.key.SrcPort)
		if len(path) == 0 {
			return nil, fmt.Errorf("flow %s: none of its packets was seen", name)
		}
		r := FlowReport{Name: name, From: fl.flow.From, To: fl.flow.To, Weight: fl.flow.Weight}
		for _, w := range path {
			r.Path = append(r.Path, wires[w].From.String())
		}
		flows = append(flows, maxmin.Flow{Weight: fl.flow.Weight, Path: path})
		out = append(out, r)
		all = append(all, fl.series.between(from, to))
	}
	if len(out) == 0 {
		return nil, nil
	}
	fair, err := maxmin.Solve(capacity, flows)
	if err != nil {
		return nil, err
	}
	window := settleWindow * cfg.Scaled(cfg.Soze.P+cfg.Soze.K)
	for i := range out {
		r, series := &out[i], all[i]
		r.Share = fair.Rate[i]
		r.Bottleneck = wires[fair.Bottleneck[i]].From.String()
		half := series.between((from+to)/2, to)
		r.Measured = math.Round(half.rate())
		r.Error = math.Round((r.Measured/r.Share-1)*10000) / 100
		r.MaxQDMS = millis(half.meanQD())
		r.RTTMS = millis(half.meanRTT())
		if after, ok := series.settle(r.Share, tolerance, window); ok {
			r.Settled, r.SettledMS = true, millis(after)
		}
	}
	return out, nil
}
