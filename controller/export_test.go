package controller

import "github.com/headgate/headgate/controller/p4runtime/device"

// Stats returns every switch's counters, by name.
func (c *Controller) Stats() map[string]device.Stats {
	c.mu.RLock()
	defer c.mu.RUnlock()
	stats := map[string]device.Stats{}
	if c.current != nil {
		for name, u := range c.current.devices {
			stats[name] = u.Stats()
		}
	}
	return stats
}
