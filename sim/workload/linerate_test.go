package workload

import (
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/none"
	"github.com/headgate/headgate/sim"
)

// lineRate makes flows that send as fast as their host can.
type lineRate struct{}

func (lineRate) NewLaw(f sim.FlowInfo) (law.Law, error) { return none.New(2*f.Rate, 0) }
