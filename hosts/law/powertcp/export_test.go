package powertcp

// Power returns Γ_smooth.
func (l *Law) Power() float64 { return l.power }
