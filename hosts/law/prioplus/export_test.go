package prioplus

// Flows returns #flow, the estimate of how many flows have this priority.
func (l *Law) Flows() float64 { return l.flows }

// Stopped reports whether the flow has yielded and probes.
func (l *Law) Stopped() bool { return l.stopped }
