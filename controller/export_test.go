package controller

import (
	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/p4runtime/device"
)

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

// sameChange reports whether two changes are equal apart from their texts.
func sameChange(a, b *pb.Change) bool {
	return a.GetKind() == b.GetKind() && a.GetTable() == b.GetTable() && a.GetKey() == b.GetKey() && a.GetOld() == b.GetOld() && a.GetNew() == b.GetNew()
}
