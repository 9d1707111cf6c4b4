package dcqcn

import "github.com/headgate/headgate/units"

// Target returns R_T, the rate to which the flow recovers first.
func (l *Law) Target() units.Rate { return units.Rate(l.target) }
