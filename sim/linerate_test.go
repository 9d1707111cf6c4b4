package sim

import (
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/none"
)

// lineRate makes flows without congestion control: they send as fast as their host can.
type lineRate struct{}

// NewLaw implements LawMaker. The law allows twice the rate, so that the NIC limits the flow, not pacing.
func (lineRate) NewLaw(f FlowInfo) (law.Law, error) { return none.New(2*f.Rate, 0) }
