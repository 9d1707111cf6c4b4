package controller

import (
	"maps"
	"strings"

	"github.com/headgate/headgate/controller/conduct"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/controller/feature/soze"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/controller/view"
)

// Conduct returns what judges hosts by their reports.
func (c *Controller) Conduct() *conduct.Judge { return c.conduct }

// judged returns the ports of a fabric that lead to hosts.
func judged(cfg *config.Config, g *topology.Graph) (ports []conduct.Port) {
	queue := int(qos.Of(cfg).ClassOf(soze.Of(cfg).DSCP).Queue)
	for _, s := range cfg.Switches {
		for _, p := range g.Ports(s.Name) {
			if host := cfg.Host(p.Peer); host != nil {
				ports = append(ports, conduct.Port{Switch: s.Name, Number: p.Number, Host: host.Name, Address: host.IPv4, Rate: p.Rate, Queue: queue})
			}
		}
	}
	return ports
}

// HostAlarms returns, for each host, how often each event of the kinds host.* was raised.
func (c *Controller) HostAlarms() map[view.HostAlarm]uint64 {
	c.alarmsMu.Lock()
	defer c.alarmsMu.Unlock()
	return maps.Clone(c.alarms)
}

// countAlarm counts an event that names a host of the fabric.
func (c *Controller) countAlarm(e view.Event) {
	kind, ours := strings.CutPrefix(e.Kind, "host.")
	if !ours || strings.HasSuffix(kind, "_over") {
		return
	}
	c.alarmsMu.Lock()
	defer c.alarmsMu.Unlock()
	c.alarms[view.HostAlarm{Host: e.Subject, Alarm: kind}]++
}
