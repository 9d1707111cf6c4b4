package compare

import (
	"fmt"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/dcqcn"
	"github.com/headgate/headgate/hosts/law/none"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/scenario/inproc"
	"github.com/headgate/headgate/units"
)

// frameBytes is a full data packet of RoCEv2 on the wire.
const frameBytes = packet.DataOverhead - maxqd.Len + int64(inproc.MSS)

// notifyGap is DCQCN's least time between two notifications for one flow (Zhu et al.,
// SIGCOMM 2015, §3.1), at line rate.
const notifyGap = 50 * units.Microsecond

// patience is the least retransmission timeout, at line rate. A lossless fabric needs none;
// what is lost all the same a NAK reports.
const patience = 5 * units.Millisecond

// host makes an agent one of the scenario's.
func (s *Scenario) host(c *agent.Config, cfg *config.Config, v Variant, deliver func(agent.FlowKey, []byte)) {
	line := units.Rate(float64(c.Rate) * float64(inproc.MSS) / float64(frameBytes))
	kind, limit := s.Law, s.Limits[c.Name]
	c.NewLaw = func(float64) (law.Law, error) {
		switch {
		case limit > 0:
			return none.New(units.Rate(float64(line)*limit), 0)
		case kind == LineRate:
			return none.New(line, 0)
		case kind == DCQCN:
			p := dcqcn.Vendor(line)
			p.AlphaTimer, p.IncreaseTimer, p.CutInterval = cfg.Scaled(p.AlphaTimer), cfg.Scaled(p.IncreaseTimer), cfg.Scaled(p.CutInterval)
			return dcqcn.New(p)
		}
		return nil, fmt.Errorf("law %q: want %s or %s", kind, LineRate, DCQCN)
	}
	c.CNPGap = cfg.Scaled(v.CNPGap)
	c.InitialRTO, c.MinRTO, c.MaxRTO = cfg.Scaled(patience), cfg.Scaled(patience), cfg.Scaled(8*patience)
	c.Deliver = func(from agent.FlowKey, payload []byte) { deliver(from, payload) }
}
