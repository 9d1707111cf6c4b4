package tm

// Rest returns the counters of the queues that packets for unknown ports go through.
func (m *Manager) Rest(s *PortStats) { m.rest.fill(s) }
