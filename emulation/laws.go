package emulation

import (
	"fmt"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/emulation/network"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/dcqcn"
	"github.com/headgate/headgate/hosts/law/none"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// frameBytes is a full data packet of RoCEv2 on the wire.
const frameBytes = packet.DataOverhead - maxqd.Len + int64(network.MSS)

// notifyGap is DCQCN's least time between two notifications for one flow (Zhu et al.,
// SIGCOMM 2015, §3.1), at line rate.
const notifyGap = 50 * units.Microsecond

// patience is the least retransmission timeout, at line rate. A lossless fabric needs none;
// what is lost all the same a NAK reports.
const patience = 5 * units.Millisecond

// host makes an agent one of the scenario's. Söze is what package network gives a host.
func (s *Scenario) host(c *agent.Config, cfg *config.Config, v Variant, deliver func(agent.FlowKey, []byte)) {
	c.Deliver = deliver
	if s.Law == Soze {
		return
	}
	line := units.Rate(float64(c.Rate) * float64(network.MSS) / float64(frameBytes))
	limit := s.Limits[c.Name]
	c.NewLaw = func(agent.FlowSpec) (law.Law, error) {
		switch {
		case limit > 0:
			return none.New(units.Rate(float64(line)*limit), 0)
		case s.Law == LineRate:
			return none.New(line, 0)
		case s.Law == DCQCN:
			return dcqcn.New(dcqcn.Vendor(law.Flow{Rate: line, Scale: float64(cfg.Scale)}))
		}
		return nil, fmt.Errorf("law %q: want %s, %s or %s", s.Law, Soze, LineRate, DCQCN)
	}
	c.CNPGap = cfg.Scaled(v.CNPGap)
	c.InitialRTO, c.MinRTO, c.MaxRTO = cfg.Scaled(patience), cfg.Scaled(patience), cfg.Scaled(8*patience)
}
