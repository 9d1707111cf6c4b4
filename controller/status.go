package controller

import (
	"net"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/device"
	"github.com/headgate/headgate/controller/view"
)

// Fabric returns the running configuration with the state of its links and switches; the
// zero Fabric before the first Apply.
func (c *Controller) Fabric() view.Fabric {
	c.mu.RLock()
	cur, generation := c.current, c.generation
	c.mu.RUnlock()
	if cur == nil {
		return view.Fabric{Generation: generation}
	}
	cfg := cur.config
	f := view.Fabric{Name: cfg.Name, Generation: generation, Config: string(cfg.Source), Switches: c.switches(cur)}
	for _, h := range cfg.Hosts {
		f.Hosts = append(f.Hosts, view.Host{Name: h.Name, IPv4: h.IPv4.String(), MAC: net.HardwareAddr(h.MAC[:]).String()})
	}
	for _, l := range cfg.Links {
		f.Links = append(f.Links, view.Link{
			A: view.Endpoint(l.A), B: view.Endpoint(l.B), RateBPS: uint64(l.Rate),
			Delay: cfg.Scaled(l.Delay).Duration(), Up: c.links.up(l.Name),
		})
	}
	return f
}

// Switches returns every switch's session, capabilities and ports, in the order of the
// configuration.
func (c *Controller) Switches() []view.Switch {
	c.mu.RLock()
	cur := c.current
	c.mu.RUnlock()
	if cur == nil {
		return nil
	}
	return c.switches(cur)
}

func (c *Controller) switches(a *applied) []view.Switch {
	list := make([]view.Switch, 0, len(a.config.Switches))
	loops := c.paccLoops(a.config)
	for _, s := range a.config.Switches {
		v := a.devices[s.Name].Status()
		for _, p := range a.graph.Ports(s.Name) {
			v.Ports = append(v.Ports, view.Port{Number: p.Number, Peer: p.Peer, Up: c.links.up(p.Link)})
		}
		v.Buffer = c.buffer(s.Name)
		v.PACC = loops[s.Name]
		list = append(list, v)
	}
	return list
}

func (c *Controller) buffer(sw string) *view.Buffer {
	c.buffersMu.Lock()
	defer c.buffersMu.Unlock()
	return c.buffers[sw]
}

// paccLoops returns how the PACC loops stand, by switch; nil where they do not run in the
// controller.
func (c *Controller) paccLoops(cfg *config.Config) map[string]*view.PACC {
	if !cfg.PACC.Enabled || cfg.PACC.At != config.AtController {
		return nil
	}
	c.paccMu.Lock()
	defer c.paccMu.Unlock()
	loops := map[string]*view.PACC{}
	for sw, p := range c.pacc {
		loops[sw] = &p
	}
	return loops
}

// Config returns the running configuration, nil before the first Apply. It is immutable.
func (c *Controller) Config() *config.Config {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.current == nil {
		return nil
	}
	return c.current.config
}

// Stats returns every switch's counters, by name.
func (c *Controller) Stats() map[string]device.Stats {
	c.mu.RLock()
	cur := c.current
	c.mu.RUnlock()
	stats := map[string]device.Stats{}
	if cur == nil {
		return stats
	}
	for name, u := range cur.devices {
		stats[name] = u.Stats()
	}
	return stats
}
