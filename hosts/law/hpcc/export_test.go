package hpcc

// Utilisation returns U.
func (l *Law) Utilisation() float64 { return l.u }
