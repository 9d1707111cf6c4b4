package dcqcn

import "github.com/headgate/headgate/units"

// Target returns R_T, the rate that the flow returns to first.
func (l *Law) Target() units.Rate { return units.Rate(l.target) }
