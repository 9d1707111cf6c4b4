package scenario

import (
	"fmt"
	"math"

	"github.com/headgate/headgate/fabric/maxmin"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// frameBytes is a full data packet on the wire; the switches' rates count exactly these.
const frameBytes = packet.DataOverhead + int64(mss)

// measure reports the flows of a phase from their samples between from and to. Rates and
// delays are means over the second half, whatever happened before.
func (f *Fabric) measure(s *sampler, from, to units.Time) ([]FlowReport, error) {
	names, _ := s.names()
	capacity := make([]float64, len(f.wires))
	for i, w := range f.wires {
		capacity[i] = float64(w.rate) * float64(mss) / float64(frameBytes)
	}
	var (
		flows []maxmin.Flow
		out   []FlowReport
		all   []Series
	)
	for _, name := range names {
		fl, _ := s.get(name)
		path := f.tracer.path(fl.key.Src, fl.key.SrcPort)
		if len(path) == 0 {
			return nil, fmt.Errorf("flow %s: none of its packets was seen", name)
		}
		r := FlowReport{Name: name, From: fl.flow.From, To: fl.flow.To, Weight: fl.flow.Weight}
		for _, w := range path {
			r.Path = append(r.Path, f.wires[w].name)
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
	window := settleWindow * (f.cfg.Scaled(f.cfg.Soze.P + f.cfg.Soze.K))
	for i := range out {
		r, series := &out[i], all[i]
		r.Share = fair.Rate[i]
		r.Bottleneck = f.wires[fair.Bottleneck[i]].name
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

// losses adds up where packets were lost so far; on the loop.
func (f *Fabric) losses() Losses {
	l := f.buried
	for _, n := range f.switches {
		l.add(switchLosses(n))
	}
	for _, link := range f.links {
		for _, st := range link.Stats() {
			l.Links += st.Lost
		}
	}
	return l
}

func switchLosses(n *node) Losses {
	var l Losses
	st := n.sw.Stats()
	l.Switches = st.NoPipeline + st.UnknownPort + st.AgainDropped
	for _, p := range n.sw.PortStats() {
		l.Queues += p.Queues.Dropped().Packets
		l.Links += p.TxLost
	}
	return l
}

func (l *Losses) add(o Losses) {
	l.Queues += o.Queues
	l.Pipelines += o.Pipelines
	l.Links += o.Links
	l.Switches += o.Switches
}

// since returns what was lost after o was taken.
func (l Losses) since(o Losses) Losses {
	l.Queues -= o.Queues
	l.Pipelines -= o.Pipelines
	l.Links -= o.Links
	l.Switches -= o.Switches
	return l
}
