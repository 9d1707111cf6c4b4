package dctcp

// Alpha returns the estimate of the share of marked data, 0 to 1.
func (l *Law) Alpha() float64 { return l.alpha }
